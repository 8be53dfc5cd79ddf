/* The declarations that the server and the client share. */
#ifndef STACK_H
#define STACK_H

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdbool.h>

enum { FAILED = 1, NOT_OFFERED = 127, CHUNK_BYTES = 1 << 16, HEAD_BYTES = 1 << 12 };

/* Returns whether there is a congestion control of this name. */
bool offered(const char *called);

void serve(void);
void fetch(void);

/* Prints the reason in one line and ends the program. */
_Noreturn void fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the reason for a failure: OpenSSL's earliest queued error, or else errno's, or else a closed connection. */
const char *why(void);

/* Returns the value of an environment variable that the contract promises. */
const char *setting(const char *name);

/* Returns the address on which the server listens and to which the client connects. */
struct sockaddr_in endpoint(void);

/* Returns a context for TLS 1.3 and nothing older, which writes TLS secrets to SSLKEYLOGFILE if that is set. */
SSL_CTX *tls_context(const SSL_METHOD *method);

/* Reads an HTTP head, which ends with an empty line, into `head`, which has room for HEAD_BYTES + 1 bytes, and adds a
 * zero byte. Returns how many bytes after the empty line were read with it, or -1 if no complete head came. */
int read_head(SSL *tls, char *head);

#endif

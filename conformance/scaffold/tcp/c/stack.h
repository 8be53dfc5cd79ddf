/* What the server and the client share. */
#ifndef STACK_H
#define STACK_H

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdbool.h>

enum { FAILED = 1, NOT_OFFERED = 127, CHUNK_BYTES = 1 << 16, HEAD_BYTES = 1 << 12 };

/* Whether there is a congestion control of that name. */
bool offered(const char *called);

void serve(void);
void fetch(void);

/* Says why in one line and ends the program. */
_Noreturn void fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last error of OpenSSL, or else of the system. */
const char *why(void);

/* The value of an environment variable that the contract promises. */
const char *setting(const char *name);

/* Where the server listens and the client connects. */
struct sockaddr_in endpoint(void);

/* TLS 1.3 and nothing older; writes its secrets to SSLKEYLOGFILE where that is set. */
SSL_CTX *tls_context(const SSL_METHOD *method);

/* Reads an HTTP head, which ends with an empty line, and ends it with a zero; `head` has room for HEAD_BYTES + 1.
 * Returns how many bytes after the empty line came with it, or -1 if there is no such head. */
int read_head(SSL *tls, char *head);

#endif

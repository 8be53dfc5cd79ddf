/* Fetch https://CC_HOSTNAME:CC_PORT/CC_BYTES over HTTP/1.1 and print what it took as one JSON line.
 *
 * A small program of our own, because in virtual time a trial's cost is its system calls and page faults: curl makes
 * five calls a packet (poll, two clock readings, a signal mask, recv), and an interpreter's start costs as much as half of
 * a transfer. This one makes one blocking recv for 32 KB, which the kernel fills, acknowledging packets as they come in, and
 * towards the end one for whatever has arrived.
 * The clock starts before the TCP connect and stops at the end of the body.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BUFFER_BYTES = 1 << 16, HEAD_BYTES = 1 << 14, CHUNK_BYTES = 1 << 15 };

/* Of the connection, and whether so much is still to come that the next CHUNK_BYTES may be waited for. */
static int socket_fd, far_from_the_end;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static const char *why(void)
{
    unsigned long code = ERR_peek_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    return reason ? reason : errno ? strerror(errno) : "the connection ended";
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        fail("%s is not set", name);
    return value;
}

/* Exact: the difference of two readings in seconds would depend on the uptime in its last digit. */
static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Secrets of the connection, in NSS key log format, where a trace is wanted. */
static void keep_secret(const SSL *tls, const char *line)
{
    FILE *log = fopen(getenv("SSLKEYLOGFILE"), "a");
    (void)tls;
    if (log) {
        fprintf(log, "%s\n", line);
        fclose(log);
    }
}

static SSL_CTX *trusting(const char *ca)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || SSL_CTX_load_verify_locations(context, ca, NULL) != 1)
        fail("cannot read %s: %s", ca, why());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (getenv("SSLKEYLOGFILE"))
        SSL_CTX_set_keylog_callback(context, keep_secret);
    return context;
}

static int connected(const char *address, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 || connect(fd, (struct sockaddr *)&to, sizeof to))
        fail("cannot connect to %s:%d: %s", address, port, strerror(errno));
    return fd;
}

/* Whether `result` says that OpenSSL needs more of the server; then that is received, and the call to be made again.
 * OpenSSL reads from memory, so that we say how to receive: its own way is two calls for each record. */
static int again(SSL *tls, int result)
{
    static char chunk[BUFFER_BYTES];
    if (result > 0 || SSL_get_error(tls, result) != SSL_ERROR_WANT_READ)
        return 0;
    int got = recv(socket_fd, chunk, far_from_the_end ? CHUNK_BYTES : BUFFER_BYTES, far_from_the_end ? MSG_WAITALL : 0);
    return got > 0 && BIO_write(SSL_get_rbio(tls), chunk, got) == got;
}

static int read_some(SSL *tls, char *to, int size)
{
    int got;
    do
        got = SSL_read(tls, to, size);
    while (again(tls, got));
    return got;
}

/* Reads the response's head; returns how many bytes of the body came with it. */
static long read_head(SSL *tls)
{
    static char head[HEAD_BYTES + 1];
    int have = 0, got;
    const char *end;
    do {
        if ((got = read_some(tls, head + have, HEAD_BYTES - have)) <= 0)
            fail("no response: %s", why());
        have += got;
        head[have] = '\0';
    } while (!(end = strstr(head, "\r\n\r\n")));
    if (strncmp(head, "HTTP/1.1 200 ", 13))
        fail("the server answered %.*s", (int)strcspn(head, "\r\n"), head);
    return have - (end + 4 - head);
}

int main(int count, char **arguments)
{
    if (count == 2 && !strcmp(arguments[1], "version"))
        return puts(OpenSSL_version(OPENSSL_VERSION)) < 0;
    static char buffer[BUFFER_BYTES];
    const char *host = setting("CC_HOSTNAME");
    long size = atol(setting("CC_BYTES"));
    SSL_CTX *context = trusting(setting("CC_CA"));
    int64_t start_ns = now_ns();
    socket_fd = connected(setting("CC_ADDRESS"), atoi(setting("CC_PORT")));
    SSL *tls = SSL_new(context);
    SSL_set_bio(tls, BIO_new(BIO_s_mem()), BIO_new_socket(socket_fd, BIO_NOCLOSE));
    SSL_set_tlsext_host_name(tls, host);
    SSL_set1_host(tls, host);
    int done;
    do
        done = SSL_connect(tls);
    while (again(tls, done));
    if (done != 1)
        fail("no TLS connection: %s", why());
    double handshake_s = (now_ns() - start_ns) / 1e9;
    int length = snprintf(buffer, sizeof buffer, "GET /%ld HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", size, host);
    if (SSL_write(tls, buffer, length) != length)
        fail("cannot send the request: %s", why());
    long received = read_head(tls);
    int got;
    while (received < size && (got = read_some(tls, buffer, sizeof buffer)) > 0) {
        received += got;
        far_from_the_end = size - received > 2 * BUFFER_BYTES;
    }
    if (received < size)
        fail("the connection ended after %ld of %ld bytes: %s", received, size, why());
    printf("{\"bytes\": %ld, \"completion_s\": %.6f, \"handshake_s\": %.6f}\n", received, (now_ns() - start_ns) / 1e9,
           handshake_s);
    return 0;
}

/* Fetches https://CC_HOSTNAME:CC_PORT/CC_BYTES once, and prints its size and the times as one JSON line. */
#include "stack.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Integers give exact differences: with seconds in floating point, the last digit would depend on the uptime. */
static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Returns a TLS connection to CC_ADDRESS; fails unless CC_CA signed the server's certificate, for `host`. */
static SSL *connected(SSL_CTX *context, const char *host)
{
    struct sockaddr_in to = endpoint();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to))
        fail(FAILED, "cannot connect: %s", strerror(errno));
    SSL *tls = SSL_new(context);
    if (!tls || SSL_set_fd(tls, fd) != 1 || SSL_set_tlsext_host_name(tls, host) != 1 || SSL_set1_host(tls, host) != 1 ||
        SSL_connect(tls) != 1)
        fail(FAILED, "no TLS connection: %s", why());
    return tls;
}

void fetch(void)
{
    static char buffer[CHUNK_BYTES];
    char head[HEAD_BYTES + 1];
    const char *host = setting("CC_HOSTNAME");
    long long size = atoll(setting("CC_BYTES"));
    SSL_CTX *context = tls_context(TLS_client_method());
    if (SSL_CTX_load_verify_locations(context, setting("CC_CA"), NULL) != 1)
        fail(FAILED, "cannot use CC_CA: %s", why());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);

    int64_t start_ns = now_ns();
    /* YOUR STACK: connect, send the request, receive the body. */
    SSL *tls = connected(context, host);
    double handshake_s = (now_ns() - start_ns) / 1e9;
    int length = snprintf(head, sizeof head, "GET /%lld HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", size, host);
    if (SSL_write(tls, head, length) != length)
        fail(FAILED, "cannot send the request: %s", why());
    long long received = read_head(tls, head);
    if (received < 0)
        fail(FAILED, "no answer: %s", why());
    if (strncmp(head, "HTTP/1.1 200 ", 13))
        fail(FAILED, "the server answered %.*s", (int)strcspn(head, "\r\n"), head);
    int got;
    while (received < size && (got = SSL_read(tls, buffer, sizeof buffer)) > 0)
        received += got;
    double completion_s = (now_ns() - start_ns) / 1e9;
    if (received != size)
        fail(FAILED, "the body has %lld bytes, not %lld", received, size);
    printf("{\"bytes\": %lld, \"completion_s\": %.6f, \"handshake_s\": %.6f}\n", received, completion_s, handshake_s);
}

/* Serves the files of CC_WWW with HTTP/1.1 over TLS 1.3, one connection after the other. */
#include "stack.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int listening(const char *called)
{
    struct sockaddr_in at = endpoint();
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        fail(FAILED, "no socket: %s", strerror(errno));
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, called, strlen(called)))
        fail(NOT_OFFERED, "the kernel refuses %s: %s", called, strerror(errno));
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) || bind(fd, (struct sockaddr *)&at, sizeof at) ||
        listen(fd, SOMAXCONN))
        fail(FAILED, "cannot listen: %s", strerror(errno));
    return fd;
}

/* Opens the body that a request's head asks for and returns its file descriptor, or -1 if there is no such body. */
static int body_of(const char *head)
{
    /* Bodies are named by their size. Refusing all other names also blocks paths that lead out of the folder. */
    char name[21], after, path[4096];
    if (sscanf(head, "GET /%20[0-9]%c", name, &after) != 2 || after != ' ')
        return -1;
    snprintf(path, sizeof path, "%s/%s", setting("CC_WWW"), name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Answers one request; returns whether the whole answer was sent. */
static bool answer(SSL *tls)
{
    static char buffer[CHUNK_BYTES];
    char head[HEAD_BYTES + 1];
    struct stat about;
    ssize_t got;
    if (SSL_accept(tls) != 1 || read_head(tls, head) < 0)
        return false;
    int body = body_of(head);
    if (body < 0) {
        static const char none[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return SSL_write(tls, none, sizeof none - 1) > 0;
    }
    if (fstat(body, &about))
        fail(FAILED, "cannot look at a body: %s", strerror(errno));
    int size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\nConnection: close\r\n\r\n",
                        (long long)about.st_size);
    bool sent = SSL_write(tls, head, size) > 0;
    while (sent && (got = read(body, buffer, sizeof buffer)) != 0)
        sent = got > 0 && SSL_write(tls, buffer, got) > 0;
    close(body);
    return sent;
}

void serve(void)
{
    const char *called = setting("CC_CALLED");
    if (!offered(called))
        fail(NOT_OFFERED, "there is no %s", called);
    SSL_CTX *context = tls_context(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(context, setting("CC_CERT")) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, setting("CC_KEY"), SSL_FILETYPE_PEM) != 1)
        fail(FAILED, "cannot use CC_CERT and CC_KEY: %s", why());
    signal(SIGPIPE, SIG_IGN); /* a client that disconnects must not end the server */
    /* YOUR STACK, from here on and in listening(): serve, with the congestion control `called`. */
    int listener = listening(called);
    for (;;) { /* until a signal ends it */
        int connection = accept(listener, NULL, NULL);
        SSL *tls = SSL_new(context);
        if (connection < 0 || !tls || SSL_set_fd(tls, connection) != 1)
            fail(FAILED, "cannot take a connection: %s", why());
        if (answer(tls))
            SSL_shutdown(tls);
        else
            fprintf(stderr, "my-stack: a connection failed: %s\n", why());
        ERR_clear_error();
        SSL_free(tls);
        close(connection);
    }
}

/* Serve the files of CC_WWW over HTTP/3, on OpenSSL's own QUIC, everything that decides about sending as it comes.
 *
 * One thread: each turn lets OpenSSL look at the socket and its timers, serves what can be served, and waits.
 */
#define _GNU_SOURCE
#include "http3.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/quic.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 64, STREAMS = 16, REQUEST_BYTES = 16 << 10, PATH_BYTES = 256, FORCED_WAIT_MS = 1000 };

/* A stream that the client opened. An answer is its head, then its body. */
struct stream {
    SSL *quic;
    size_t received, head_bytes, body_bytes, sent;
    int is_answered, is_done;
    uint8_t *body, head[HTTP3_HEAD_BYTES], request[REQUEST_BYTES];
};

struct connection {
    SSL *quic, *control;
    struct stream *streams[STREAMS];
};

static struct connection connections[CONNECTIONS];

static void fail(const char *format, ...)
{
    va_list arguments;
    char why[200];
    unsigned long error = ERR_peek_last_error();
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    ERR_error_string_n(error, why, sizeof why);
    fprintf(stderr, "%s%s\n", error ? ": " : "", error ? why : "");
    exit(1);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        fail("%s is not set", name);
    return value;
}

static int choose_protocol(SSL *quic, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
                           unsigned offered_bytes, void *argument)
{
    static const unsigned char http3[] = "\x02h3";
    (void)quic, (void)argument;
    return SSL_select_next_proto((unsigned char **)chosen, length, http3, sizeof http3 - 1, offered, offered_bytes) ==
                   OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void write_secret(const SSL *quic, const char *line)
{
    FILE *file = fopen(setting("SSLKEYLOGFILE"), "a");
    (void)quic;
    if (file) {
        fprintf(file, "%s\n", line);
        fclose(file);
    }
}

static SSL *listen_on(int socket)
{
    SSL_CTX *context = SSL_CTX_new(OSSL_QUIC_server_method());
    SSL *listener;
    if (!context || SSL_CTX_use_certificate_chain_file(context, setting("CC_CERT")) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, setting("CC_KEY"), SSL_FILETYPE_PEM) != 1)
        fail("cannot read certificate and key");
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (getenv("SSLKEYLOGFILE"))
        SSL_CTX_set_keylog_callback(context, write_secret);
    /* No Retry: it would cost a round trip that no other server here takes. */
    listener = SSL_new_listener(context, SSL_LISTENER_FLAG_NO_VALIDATE);
    if (!listener || !SSL_set_fd(listener, socket) || !SSL_set_blocking_mode(listener, 0) || !SSL_listen(listener))
        fail("cannot listen");
    return listener;
}

static int open_socket(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(setting("CC_PORT")))};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || inet_pton(AF_INET, setting("CC_ADDRESS"), &at.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&at, sizeof at))
        fail("cannot bind %s:%s", setting("CC_ADDRESS"), setting("CC_PORT"));
    return fd;
}

/* Read a file of CC_WWW into memory; 0 where there is none of that name. */
static int read_file(struct stream *stream, const char *name)
{
    char place[4096];
    FILE *file;
    long size = 0;
    if (!*name || strchr(name, '/') || !strcmp(name, "..") || !strcmp(name, "."))
        return 0;
    snprintf(place, sizeof place, "%s/%s", setting("CC_WWW"), name);
    if (!(file = fopen(place, "rb")))
        return 0;
    if (fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) ||
        !(stream->body = malloc((size_t)size + 1)) || fread(stream->body, 1, (size_t)size, file) != (size_t)size)
        fail("cannot read %s", place);
    fclose(file);
    stream->body_bytes = (size_t)size;
    return 1;
}

static void prepare_answer(struct stream *stream)
{
    char path[PATH_BYTES];
    stream->is_answered = 1;
    if (http3_path(stream->request, stream->received, path, sizeof path) && *path == '/' && read_file(stream, path + 1)) {
        stream->head_bytes = http3_head(stream->head, stream->body_bytes);
        return;
    }
    memcpy(stream->head, http3_not_found, sizeof http3_not_found);
    stream->head_bytes = sizeof http3_not_found;
}

/* Read what came; once a request's stream has ended, there is an answer. */
static void receive(struct stream *stream)
{
    size_t got;
    while (stream->received < REQUEST_BYTES &&
           SSL_read_ex(stream->quic, stream->request + stream->received, REQUEST_BYTES - stream->received, &got))
        /* What is on the client's control stream and those of QPACK says nothing that is needed here. */
        stream->received += SSL_get_stream_type(stream->quic) == SSL_STREAM_TYPE_BIDI ? got : 0;
    if (SSL_get_stream_type(stream->quic) == SSL_STREAM_TYPE_BIDI &&
        SSL_get_stream_read_state(stream->quic) == SSL_STREAM_STATE_FINISHED)
        prepare_answer(stream);
}

/* Hand over as much of an answer as OpenSSL takes now. */
static void respond(struct stream *stream)
{
    size_t all = stream->head_bytes + stream->body_bytes, put;
    while (stream->sent < all) {
        int is_head = stream->sent < stream->head_bytes;
        const uint8_t *from = is_head ? stream->head + stream->sent : stream->body + stream->sent - stream->head_bytes;
        if (!SSL_write_ex(stream->quic, from, (is_head ? stream->head_bytes : all) - stream->sent, &put)) {
            /* The client may have stopped it, or gone. */
            stream->is_done = SSL_get_stream_write_state(stream->quic) != SSL_STREAM_STATE_OK;
            return;
        }
        stream->sent += put;
    }
    SSL_stream_conclude(stream->quic, 0);
    stream->is_done = 1;
}

static void accept_connections(SSL *listener)
{
    SSL *quic;
    while ((quic = SSL_accept_connection(listener, SSL_ACCEPT_CONNECTION_NO_BLOCK))) {
        struct connection *free_one = connections;
        while (free_one->quic && free_one < connections + CONNECTIONS - 1)
            free_one++;
        if (free_one->quic)
            fail("more than %d connections", CONNECTIONS);
        SSL_set_default_stream_mode(quic, SSL_DEFAULT_STREAM_MODE_NONE);
        SSL_set_incoming_stream_policy(quic, SSL_INCOMING_STREAM_POLICY_ACCEPT, 0);
        SSL_set_mode(quic, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        free_one->quic = quic;
    }
}

static void accept_streams(struct connection *connection)
{
    SSL *quic;
    for (int n = 0; n < STREAMS; n++) {
        if (connection->streams[n])
            continue;
        if (!(quic = SSL_accept_stream(connection->quic, SSL_ACCEPT_STREAM_NO_BLOCK)))
            return;
        SSL_set_mode(quic, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        if (!(connection->streams[n] = calloc(1, sizeof *connection->streams[n])))
            fail("no memory");
        connection->streams[n]->quic = quic;
    }
}

static void open_control(struct connection *connection)
{
    size_t put;
    if (connection->control || !SSL_is_init_finished(connection->quic))
        return;
    connection->control = SSL_new_stream(connection->quic, SSL_STREAM_FLAG_UNI | SSL_STREAM_FLAG_NO_BLOCK);
    if (connection->control && !SSL_write_ex(connection->control, http3_control, sizeof http3_control, &put))
        fail("cannot send settings");
}

static void forget_stream(struct stream **stream)
{
    SSL_free((*stream)->quic);
    free((*stream)->body);
    free(*stream);
    *stream = NULL;
}

static void forget(struct connection *connection)
{
    for (int n = 0; n < STREAMS; n++)
        if (connection->streams[n])
            forget_stream(&connection->streams[n]);
    SSL_free(connection->control);
    SSL_free(connection->quic);
    memset(connection, 0, sizeof *connection);
}

static void serve(struct connection *connection)
{
    SSL_CONN_CLOSE_INFO closed;
    accept_streams(connection);
    open_control(connection);
    for (int n = 0; n < STREAMS; n++) {
        struct stream *stream = connection->streams[n];
        if (stream && !stream->is_answered)
            receive(stream);
        if (stream && stream->is_answered && !stream->is_done)
            respond(stream);
        /* Its slot is for the next request; OpenSSL goes on sending what it took. */
        if (stream && stream->is_done)
            forget_stream(&connection->streams[n]);
    }
    if (SSL_get_conn_close_info(connection->quic, &closed, sizeof closed))
        forget(connection);
}

/* Wait for a packet, or until OpenSSL has something to do. */
static void wait_for(SSL *listener, int fd)
{
    struct timeval left;
    struct timespec timeout = {.tv_sec = FORCED_WAIT_MS / 1000};
    struct pollfd socket = {.fd = fd, .events = POLLIN};
    int is_infinite = 1;
    if (SSL_net_write_desired(listener))
        socket.events |= POLLOUT;
    if (SSL_get_event_timeout(listener, &left, &is_infinite) && !is_infinite)
        timeout = (struct timespec){.tv_sec = left.tv_sec, .tv_nsec = left.tv_usec * 1000};
    ppoll(&socket, 1, &timeout, NULL);
}

int main(int count, char **words)
{
    if (count == 2 && !strcmp(words[1], "version")) {
        puts(OpenSSL_version(OPENSSL_VERSION_STRING));
        return 0;
    }
    int fd = open_socket();
    SSL *listener = listen_on(fd);
    for (;;) {
        SSL_handle_events(listener);
        accept_connections(listener);
        for (struct connection *one = connections; one < connections + CONNECTIONS; one++)
            if (one->quic)
                serve(one);
        ERR_clear_error();
        wait_for(listener, fd);
    }
}

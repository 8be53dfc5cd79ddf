/* What the parts of the client share: the plan that the variables of the contract make (plan.c), connections
 * (connection.c), their TLS (tls.c), and errors in words (words.c). The loop is in client.c. */
#ifndef CLIENT_H
#define CLIENT_H

#include <netinet/in.h>
#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <sys/socket.h>

/* The libraries pass a callback more than it needs. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { DATAGRAM_BYTES = 1500, TIMEOUT_S = 30 };
enum { MOST_REQUESTS = 1000, MOST_CONNECTIONS = 100, MOST_RESETS = 16 };
enum { MOST_PARAMETERS_BYTES = 512, MOST_TOKEN_BYTES = 1024 };

/* One request: the next one on its connection comes so long after the bodies so far are there (`pauses`), or after this
 * one was due. */
struct request {
    long size, received;
    uint64_t wait_ns, made_ns, first_ns, end_ns;
    int64_t stream;
    int connection; /* its index */
    int pauses, is_stopped, is_done;
    long unread; /* bytes that a slow reader has not taken yet */
    struct request *next; /* on the same connection */
};

/* A UDP socket. The one that is read alone blocks in recvmmsg, for block_ns at most. */
struct socket {
    int fd;
    uint64_t block_ns;
    struct sockaddr_in from, to;
    ngtcp2_path path;
};

struct connection {
    /* What is planned: when it starts, after the clock's start or (`follows`) after the end of the one before; and
     * whether it returns the ticket and the token that an earlier one was given. */
    uint64_t wait_ns;
    int follows, resumes;
    struct request *first;
    int count;

    struct socket sockets[2]; /* the second one: once it has migrated */
    int socket_count, is_open, is_confirmed;
    ngtcp2_conn *quic;
    ngtcp2_crypto_conn_ref reference;
    nghttp3_conn *http;
    SSL *tls;
    uint64_t start_ns, handshake_ns, end_ns;
    struct request *next;        /* the one to make next */
    int made, done;
    uint64_t due_ns, blocked_ns; /* the next one's time, UINT64_MAX: not known yet; since when it has no stream */
    uint64_t waits_ns;           /* how long it comes after the bodies so far */
    long unread;                 /* of all requests */
    uint64_t read_ns;            /* when a slow reader last took bytes */
    const char *early_data, *migration;
    uint64_t resets[MOST_RESETS];
    int reset_count;
    char problem[300]; /* a callback notes it; it is printed when the library returns */
};

/* When to acknowledge: after so many packets, or after a share of the RTT, and after longest_ns; 0: as ngtcp2 does. */
struct acknowledgements {
    size_t packets;
    double share;
    uint64_t longest_ns;
};

/* What is asked for. 0 is the default of all numbers, UINT64_MAX that of migrate_ns. */
struct plan {
    const char *host, *port, *address, *authority, *options;
    struct request requests[MOST_REQUESTS];
    struct connection connections[MOST_CONNECTIONS];
    int request_count, connection_count;
    struct acknowledgements acknowledgements;
    uint64_t migrate_ns, idle_ns;
    uint64_t connection_window, stream_window;
    long stop_bytes, read_bytes_per_s;
    int has_requests, has_connections; /* whether the report lists them */
};

/* What a server gave for a later connection. */
struct memory {
    SSL_SESSION *session;
    uint8_t parameters[MOST_PARAMETERS_BYTES], token[MOST_TOKEN_BYTES];
    size_t parameters_length, token_length;
};

extern struct plan plan;
extern struct memory memory;
extern uint64_t start_ns, now_ns; /* now: at the last wake-up */

#define SAY(connection, ...) snprintf((connection)->problem, sizeof(connection)->problem, __VA_ARGS__)
#define PROBLEM(connection, ...) (SAY(connection, __VA_ARGS__), NGTCP2_ERR_CALLBACK_FAILURE)

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* plan.c */
void read_plan(void);
uint64_t longest_wait_ns(const struct connection *connection);

/* connection.c */
void open_connection(struct connection *connection);
void close_connection(struct connection *connection);
void make_requests(struct connection *connection);
void read_on(struct connection *connection);
void migrate(struct connection *connection);
void read_packet(struct connection *connection, const struct socket *socket, const uint8_t *packet, size_t length,
                 uint8_t ecn);
void write_packets(struct connection *connection);
void handle_expiry(struct connection *connection);
uint64_t next_deadline_ns(const struct connection *connection);
void random_bytes(uint8_t *to, size_t length, const ngtcp2_rand_ctx *context);

/* tls.c */
void prepare_tls(void);
void open_tls(struct connection *connection);
int send_parameters(ngtcp2_conn *quic, void *user);

/* words.c */
const char *http_error(uint64_t code);
const char *why(struct connection *connection, int error);

#endif

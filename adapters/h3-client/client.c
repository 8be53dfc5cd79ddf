/* Fetch https://CC_HOSTNAME:CC_PORT/CC_BYTES over HTTP/3, or what the lines of CC_REQUESTS ask for, on one connection
 * or on those of CC_CONNECTIONS, and print what it took as one JSON line.
 *
 * The common client of every QUIC server here, with ngtcp2, nghttp3 and BoringSSL. In virtual time a trial's cost is
 * its system calls, so a wake-up makes few: one recvmmsg that waits and takes all that has arrived, one clock reading
 * (no call), one send where something is to be said. On the wire it is a plain RFC 9000 receiver: an ACK for every
 * second packet (one for all that arrived together), of one packet after an eighth of the RTT, at once after a gap or
 * a CE mark, and windows that never hold a sender back; other behaviour can be asked for.
 * The clock starts before the first packet and stops at the end of the last body.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

enum { BATCH = 32, CONTROL_BYTES = CMSG_SPACE(sizeof(int)) };
/* How long a receive waits by itself, in ticks of the system (1 ms in guests): long; or short, once ROW wake-ups have
 * come faster than that. At 10 Mbit/s, packets are 1.2 ms apart. */
enum { LONG_TICKS = 20, SHORT_TICKS = 2, ROW = 16 };

uint64_t start_ns, now_ns;
static uint64_t tick_ns, waited_ns; /* waited: for the last wake-up */
static int in_row;                  /* wake-ups that came within SHORT_TICKS */
static struct mmsghdr messages[BATCH];

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NGTCP2_SECONDS + now.tv_nsec;
}

static void prepare_messages(void)
{
    static uint8_t buffers[BATCH][DATAGRAM_BYTES];
    static _Alignas(struct cmsghdr) uint8_t controls[BATCH][CONTROL_BYTES];
    static struct iovec places[BATCH];
    for (int i = 0; i < BATCH; i++) {
        places[i] = (struct iovec){buffers[i], DATAGRAM_BYTES};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &places[i], .msg_iovlen = 1, .msg_control = controls[i]};
    }
}

static int is_complete(const struct connection *connection)
{
    return connection->done == connection->count;
}

/* When a connection that is not open yet starts; UINT64_MAX: not known yet. */
static uint64_t opening_ns(const struct connection *connection)
{
    if (!connection->follows)
        return start_ns + connection->wait_ns;
    return is_complete(connection - 1) ? connection[-1].end_ns + connection->wait_ns : UINT64_MAX;
}

static uint64_t deadline_ns(void)
{
    uint64_t first_ns = UINT64_MAX;
    for (int i = 0; i < plan.connection_count; i++) {
        const struct connection *connection = &plan.connections[i];
        uint64_t next_ns = connection->is_open            ? next_deadline_ns(connection)
                           : is_complete(connection) ? UINT64_MAX
                                                     : opening_ns(connection);
        first_ns = next_ns < first_ns ? next_ns : first_ns;
    }
    return first_ns;
}

static void set_block(struct socket *socket, uint64_t ns)
{
    const struct timeval block = {ns / NGTCP2_SECONDS, ns % NGTCP2_SECONDS / NGTCP2_MICROSECONDS};
    if (setsockopt(socket->fd, SOL_SOCKET, SO_RCVTIMEO, &block, sizeof block))
        fail("cannot set the socket's timeout: %s", strerror(errno));
    socket->block_ns = ns;
}

/* Takes what has arrived at a socket; returns how many datagrams that is. */
static int take(struct socket *socket, int flags)
{
    for (int i = 0; i < BATCH; i++)
        messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    int count = recvmmsg(socket->fd, messages, BATCH, flags, NULL);
    if (count < 0 && errno != EAGAIN && errno != EINTR)
        fail("cannot receive: %s", strerror(errno));
    return count < 0 ? 0 : count;
}

/* Reads the clock, as it is at a wake-up. */
static void wake_up(void)
{
    uint64_t before_ns = now_ns;
    now_ns = clock_ns();
    waited_ns = now_ns - before_ns;
    in_row = waited_ns < SHORT_TICKS * tick_ns ? in_row + 1 : 0;
}

static void read_packets(struct connection *connection, const struct socket *socket, int count)
{
    for (int i = 0; i < count && !is_complete(connection); i++) {
        struct msghdr *message = &messages[i].msg_hdr;
        struct cmsghdr *tos = CMSG_FIRSTHDR(message); /* the one kind asked for */
        read_packet(connection, socket, message->msg_iov->iov_base, messages[i].msg_len, tos ? *CMSG_DATA(tos) : 0);
        if (plan.acknowledgements.longest_ns && !is_complete(connection))
            write_packets(connection); /* packets that arrive together count singly */
    }
}

/* Waits for datagrams at the one socket there is, until the next deadline at most.
 * Mostly in recvmmsg alone, which gives up by the socket's timeout: at most a tick after it, and a call to change
 * (recvmmsg's own does not end a wait). So it is short while packets come in a row, as then it is over before a delayed
 * ACK is due, and long where it would end waits for nothing. A deadline before that, and the rest of a long silence,
 * get a ppoll with an exact timeout. */
static void receive_from(struct connection *connection, struct socket *socket, uint64_t left_ns)
{
    uint64_t block_ns = (in_row < ROW ? LONG_TICKS : SHORT_TICKS) * tick_ns;
    struct timespec wait = {left_ns / NGTCP2_SECONDS, left_ns % NGTCP2_SECONDS};
    struct pollfd readable = {.fd = socket->fd, .events = POLLIN};
    if (block_ns != socket->block_ns)
        set_block(socket, block_ns);
    int is_polled = left_ns < block_ns + tick_ns || waited_ns >= block_ns;
    int count = is_polled && ppoll(&readable, 1, &wait, NULL) <= 0
                    ? 0
                    : take(socket, is_polled ? MSG_DONTWAIT : MSG_WAITFORONE);
    wake_up();
    read_packets(connection, socket, count);
}

/* Waits for datagrams at all sockets, until the next deadline at most. */
static void receive_from_all(uint64_t left_ns)
{
    static struct pollfd readable[2 * MOST_CONNECTIONS];
    struct timespec wait = {left_ns / NGTCP2_SECONDS, left_ns % NGTCP2_SECONDS};
    int count = 0;
    for (int i = 0; i < plan.connection_count; i++)
        for (int j = 0; plan.connections[i].is_open && j < plan.connections[i].socket_count; j++)
            readable[count++] = (struct pollfd){.fd = plan.connections[i].sockets[j].fd, .events = POLLIN};
    int is_any = ppoll(readable, count, left_ns == UINT64_MAX ? NULL : &wait, NULL) > 0;
    wake_up();
    count = 0;
    for (int i = 0; i < plan.connection_count; i++)
        for (int j = 0; plan.connections[i].is_open && j < plan.connections[i].socket_count; j++)
            if (readable[count++].revents && is_any)
                read_packets(&plan.connections[i], &plan.connections[i].sockets[j],
                             take(&plan.connections[i].sockets[j], MSG_DONTWAIT));
}

static void receive(void)
{
    uint64_t next_ns = deadline_ns(), left_ns = next_ns > now_ns ? next_ns - now_ns : 0;
    if (plan.connection_count == 1 && plan.connections[0].socket_count == 1)
        receive_from(&plan.connections[0], &plan.connections[0].sockets[0], left_ns);
    else
        receive_from_all(left_ns);
}

/* Does what is due on each connection; returns whether one is not complete. */
static int go_on(void)
{
    int is_any = 0;
    for (int i = 0; i < plan.connection_count; i++) {
        struct connection *connection = &plan.connections[i];
        if (connection->is_open && is_complete(connection))
            close_connection(connection);
        if (is_complete(connection))
            continue;
        is_any = 1;
        if (!connection->is_open && opening_ns(connection) <= now_ns)
            open_connection(connection);
        if (!connection->is_open)
            continue;
        if (connection->is_confirmed && !connection->migration && plan.migrate_ns != UINT64_MAX &&
            start_ns + plan.migrate_ns <= now_ns)
            migrate(connection);
        read_on(connection);
        make_requests(connection);
        write_packets(connection);
    }
    return is_any;
}

static double seconds(uint64_t ns)
{
    return (ns - start_ns) / 1e9;
}

static void print_connections(void)
{
    printf(", \"connections\": [");
    for (int i = 0; i < plan.connection_count; i++) {
        const struct connection *connection = &plan.connections[i];
        printf("%s{\"start_s\": %.6f, \"handshake_s\": %.6f, \"end_s\": %.6f", i ? ", " : "",
               seconds(connection->start_ns), seconds(connection->handshake_ns), seconds(connection->end_ns));
        for (int j = 0; j < 2; j++) {
            const char *word = j ? connection->migration : connection->early_data, *quote = word ? "\"" : "";
            printf(", \"%s\": %s%s%s", j ? "migration" : "early_data", quote, word ? word : "null", quote);
        }
        printf(", \"resets\": [");
        for (int j = 0; j < connection->reset_count; j++)
            printf("%s\"%s\"", j ? ", " : "", http_error(connection->resets[j]));
        printf("]}");
    }
    printf("]");
}

static void report(void)
{
    long received = 0;
    for (int i = 0; i < plan.request_count; i++)
        received += plan.requests[i].received;
    printf("{\"bytes\": %ld, \"completion_s\": %.6f, \"handshake_s\": %.6f", received, seconds(now_ns),
           seconds(plan.connections[0].handshake_ns));
    for (int i = 0; plan.has_requests && i < plan.request_count; i++) {
        const struct request *request = &plan.requests[i];
        printf("%s[%ld, %.6f, %.6f, %.6f]", i ? ", " : ", \"requests\": [",
               request->is_stopped ? request->received : request->size, seconds(request->made_ns),
               seconds(request->first_ns), seconds(request->end_ns));
    }
    if (plan.has_requests)
        printf("]");
    if (plan.has_connections)
        print_connections();
    puts("}");
}

int main(void)
{
    struct timespec tick;
    read_plan();
    prepare_messages();
    prepare_tls();
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    tick_ns = tick.tv_nsec;
    start_ns = now_ns = clock_ns();
    while (go_on()) {
        receive();
        for (int i = 0; i < plan.connection_count; i++)
            if (plan.connections[i].is_open && !is_complete(&plan.connections[i]))
                handle_expiry(&plan.connections[i]);
    }
    report();
    return 0;
}

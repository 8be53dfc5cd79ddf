/* Split TCP connections that a router hands over: each becomes two, from client to proxy and from proxy to server.
 *
 *     splitter -p PORT [-c CC] [-s CC] [-S BYTES] [-R BYTES] [-L BYTES] [-b BYTES] [-u UID]
 *
 * Transparent on both sides (IP_TRANSPARENT): the client sees the server's address, the server sees the client's address
 * and port. What hands over the connections is routing by rule, or TPROXY (docs/proxy.md). The server is connected to
 * when the client's handshake is done, so that a refusal reaches the client as a reset. Ends of data (FIN) and resets are
 * passed on as they come, each direction for itself.
 *
 * One thread, level-triggered epoll, and splice(2) from socket to pipe to socket: payload is never looked at nor copied.
 * Memory: a pipe (64 KB) for each direction whose receiver is behind, and the kernel's socket buffers. On SIGTERM every
 * connection is reset, so that none of them looks complete, and a line of JSON says what went through.
 *
 * -b BYTES is back-pressure: no more than so many bytes are in the proxy and unacknowledged on the sending side together
 * (SIOCOUTQ); more is read only as they are acknowledged, which the kernel says by transmit timestamps (TX_ACK). What the
 * proxy has not read the kernel still acknowledges to the sender, up to the receive buffer (-R; BYTES unless given).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CLIENT, SERVER,
    PIPE_BYTES = 1 << 16, SEGMENT_BYTES = 1448,
    EVENTS = 256, WELCOMES = 64, TURNS = 8, SPARE_PIPES = 64,
    FDS_A_PAIR = 6, FDS_WANTED = 1 << 16, FDS_OF_OURS = 16 + 2 * SPARE_PIPES,
    RETRY_MS = 100,
};

/* One socket of a pair, and the direction that comes in there and leaves at the other one. */
struct side {
    struct pair *pair;
    int fd;             /* -1 when closed */
    bool watched;       /* epoll has it ... */
    uint32_t events;    /* ... for these events */
    int pipe[2];        /* holds `held` bytes; -1 while there are none */
    size_t held;
    bool ended;         /* all it sent is read, and its FIN */
    bool passed_on;     /* the other side has been sent ours */
    bool paused;        /* not read from until the other side's receiver acknowledges */
};

struct pair {
    struct side side[2];
    bool connected, dead;
    struct pair *next, *previous;
};

static struct {
    const char *to_client, *to_server;
    int port, send_bytes, receive_bytes, unsent_bytes, user;
    int back_pressure_bytes;
} option = {.user = -1};

static int poller, listener = -1, signals;
static bool listening;
static struct pair all = {.next = &all, .previous = &all}, *graveyard;
static int spare[SPARE_PIPES][2], spares;
static long open_pairs, most_pairs, paused_sides;
static struct { long connections, refused, resets, most_at_once; unsigned long long bytes[2]; } count;

static void fail(const char *what)
{
    fprintf(stderr, "splitter: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct side *other(struct side *side)
{
    return &side->pair->side[side == &side->pair->side[CLIENT] ? SERVER : CLIENT];
}

static int error_of(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
}

/* --- sockets */

static bool set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

/* What could not be set, or NULL. All of this accepted connections inherit from the listener. */
static const char *prepare(int fd, const char *congestion_control)
{
    const int notes = SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;
    if (!set(fd, SOL_IP, IP_TRANSPARENT, 1))
        return "IP_TRANSPARENT, which needs CAP_NET_ADMIN";
    if (congestion_control && setsockopt(fd, SOL_TCP, TCP_CONGESTION, congestion_control, strlen(congestion_control)))
        return congestion_control;
    if (!set(fd, SOL_SOCKET, SO_REUSEADDR, 1) || !set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) || !set(fd, SOL_TCP, TCP_NODELAY, 1) ||
        (option.send_bytes && !set(fd, SOL_SOCKET, SO_SNDBUF, option.send_bytes)) ||
        (option.receive_bytes && !set(fd, SOL_SOCKET, SO_RCVBUF, option.receive_bytes)) ||
        (option.unsent_bytes && !set(fd, SOL_TCP, TCP_NOTSENT_LOWAT, option.unsent_bytes)) ||
        (option.back_pressure_bytes && !set(fd, SOL_SOCKET, SO_TIMESTAMPING, notes)))
        return "a socket's options";
    return NULL;
}

static void listen_again(bool yes)
{
    struct epoll_event event = {.events = yes ? EPOLLIN : 0, .data.ptr = &listener};
    if (listening != yes && epoll_ctl(poller, EPOLL_CTL_MOD, listener, &event))
        fail("epoll_ctl");
    listening = yes;
}

/* A connection to an address of this machine's own would come back to us, for ever. */
static bool is_ours(struct sockaddr_in to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_port = 0;
    bool ours = fd >= 0 && bind(fd, (struct sockaddr *)&to, sizeof to) == 0;
    close(fd);
    return ours;
}

static void reset_on_close(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* --- pipes: a direction has one only while it holds bytes */

static bool take_pipe(struct side *side)
{
    if (spares) {
        memcpy(side->pipe, spare[--spares], sizeof side->pipe);
        return true;
    }
    return pipe2(side->pipe, O_NONBLOCK | O_CLOEXEC) == 0;
}

static void give_pipe_back(struct side *side)
{
    if (side->pipe[0] < 0)
        return;
    if (side->held == 0 && spares < SPARE_PIPES) {
        memcpy(spare[spares++], side->pipe, sizeof side->pipe);
    } else {
        close(side->pipe[0]);
        close(side->pipe[1]);
    }
    side->pipe[0] = side->pipe[1] = -1;
    side->held = 0;
}

/* --- pairs */

static void pause_side(struct side *side, bool yes)
{
    paused_sides += yes - side->paused;
    side->paused = yes;
}

/* Closed with a reset unless both directions came to their end. */
static void end_pair(struct pair *pair, bool reset)
{
    for (int i = 0; i < 2; i++) {
        struct side *side = &pair->side[i];
        if (side->fd >= 0 && reset)
            reset_on_close(side->fd);
        if (side->fd >= 0)
            close(side->fd);
        side->fd = -1;
        give_pipe_back(side);
        pause_side(side, false);
    }
    count.resets += reset;
    pair->dead = true;
    pair->next->previous = pair->previous;
    pair->previous->next = pair->next;
    /* Events of this round may still point at it. */
    pair->next = graveyard;
    graveyard = pair;
}

static void bury(void)
{
    while (graveyard) {
        struct pair *pair = graveyard;
        graveyard = pair->next;
        free(pair);
        open_pairs--;
        listen_again(true);
    }
}

/* What epoll should say of this socket. It always says when one is reset or closed in both directions; the latter would
 * be said for ever of one that is shut for writing and not read from, because its data has nowhere to go yet. */
static void watch(struct side *side)
{
    struct side *to = other(side);
    uint32_t wanted = 0;
    if (side->fd < 0)
        return;
    if (!side->pair->connected)
        wanted = side == &side->pair->side[SERVER] ? EPOLLOUT : 0;
    else
        wanted = (!side->ended && !side->held && !side->paused ? EPOLLIN : 0) | (to->held ? EPOLLOUT : 0);
    bool on = wanted || !to->passed_on;
    struct epoll_event event = {.events = wanted, .data.ptr = side};
    if (on == side->watched && wanted == side->events)
        return;
    int change = !on ? EPOLL_CTL_DEL : side->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if ((on || side->watched) && epoll_ctl(poller, change, side->fd, &event))
        fail("epoll_ctl");
    side->watched = on;
    side->events = wanted;
}

/* How much may be read for this receiver now. */
static size_t room(struct side *to)
{
    int limit = option.back_pressure_bytes, unacknowledged = 0;
    if (!limit)
        return PIPE_BYTES;
    ioctl(to->fd, SIOCOUTQ, &unacknowledged);
    int left = limit - unacknowledged;
    /* No silly windows (RFC 1122, 4.2.3.4): a segment, or half of all there may be. */
    if (left < (limit / 2 < SEGMENT_BYTES ? limit / 2 : SEGMENT_BYTES))
        return 0;
    return left < PIPE_BYTES ? left : PIPE_BYTES;
}

/* Move what came in at `from` to the other side, as far as that takes it. False: the pair must be reset. */
static bool pump(struct side *from)
{
    struct side *to = other(from);
    bool more = true;
    for (int turn = 0; more && turn < TURNS && !from->passed_on; turn++) {
        more = false;
        if (!from->held && !from->ended) {
            size_t most = room(to);
            pause_side(from, most == 0);
            if (from->paused)
                return true;
            if (from->pipe[0] < 0 && !take_pipe(from))
                return false;
            ssize_t got = splice(from->fd, NULL, from->pipe[1], NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
            if (got < 0 && errno != EAGAIN && errno != EINTR)
                return false;
            from->ended = got == 0;
            from->held = got > 0 ? got : 0;
            more = (size_t)from->held == most;
            count.bytes[from == &from->pair->side[CLIENT] ? SERVER : CLIENT] += from->held;
        }
        if (from->held) {
            ssize_t put = splice(from->pipe[0], NULL, to->fd, NULL, from->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
            if (put < 0 && errno != EAGAIN && errno != EINTR)
                return false;
            from->held -= put > 0 ? put : 0;
        }
        if (from->held)
            return true;
        give_pipe_back(from);
        if (from->ended) {
            if (shutdown(to->fd, SHUT_WR))
                return false;
            from->passed_on = true;
        }
    }
    return true;
}

/* After anything happened: close what is done, wait for the rest. */
static void settle(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        struct side *side = &pair->side[i];
        if (side->fd >= 0 && side->passed_on && other(side)->passed_on) {
            close(side->fd);
            side->fd = -1;
        }
        watch(side);
    }
    if (pair->side[CLIENT].fd < 0 && pair->side[SERVER].fd < 0)
        end_pair(pair, false);
}

/* The kernel's notes that bytes were acknowledged: only that there is one matters. */
static void read_notes(int fd)
{
    struct msghdr empty = {0};
    while (recvmsg(fd, &empty, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
        empty = (struct msghdr){0};
}

static void happened(struct side *side, uint32_t events)
{
    struct pair *pair = side->pair;
    struct side *back = other(side);
    if (pair->dead)
        return;
    if (events & EPOLLERR && option.back_pressure_bytes)
        read_notes(side->fd);
    if ((events & EPOLLERR || !pair->connected) && error_of(side->fd)) {
        end_pair(pair, true);
        return;
    }
    if (!pair->connected)
        pair->connected = side == &pair->side[SERVER] && events & EPOLLOUT;
    bool well = true;
    if (pair->connected && (events & (EPOLLIN | EPOLLHUP) || side->paused))
        well = pump(side);
    if (pair->connected && well && (events & EPOLLOUT || back->paused))
        well = pump(back);
    if (well)
        settle(pair);
    else
        end_pair(pair, true);
}

/* Whoever waits for acknowledgements is looked at now and then too: under memory pressure the kernel drops its notes. */
static void retry_paused(void)
{
    for (struct pair *pair = all.next, *next; pair != &all; pair = next) {
        next = pair->next;
        for (int i = 0; i < 2; i++)
            if (!pair->dead && pair->side[i].paused)
                happened(&pair->side[i], 0);
    }
}

/* The second half of a client's connection; false where there can be none. */
static bool connect_on(struct pair *pair, struct sockaddr_in *client, struct sockaddr_in *server)
{
    int fd = pair->side[SERVER].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || prepare(fd, option.to_server) || bind(fd, (struct sockaddr *)client, sizeof *client))
        return false;
    return connect(fd, (struct sockaddr *)server, sizeof *server) == 0 || errno == EINPROGRESS;
}

static void welcome(void)
{
    for (int i = 0; i < WELCOMES && listening; i++) {
        struct sockaddr_in client, server;
        socklen_t size = sizeof client;
        int fd = accept4(listener, (struct sockaddr *)&client, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            /* Out of descriptors or memory: wait, rather than be told again at once. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                listen_again(false);
            return;
        }
        struct pair *pair = calloc(1, sizeof *pair);
        size = sizeof server;
        if (!pair || getsockname(fd, (struct sockaddr *)&server, &size) || is_ours(server)) {
            count.refused++;
            reset_on_close(fd);
            close(fd);
            free(pair);
            continue;
        }
        for (int j = 0; j < 2; j++)
            pair->side[j] = (struct side){.pair = pair, .fd = j == CLIENT ? fd : -1, .pipe = {-1, -1}};
        pair->next = all.next;
        pair->previous = &all;
        all.next->previous = pair;
        all.next = pair;
        count.connections++;
        if (++open_pairs > count.most_at_once)
            count.most_at_once = open_pairs;
        if (open_pairs >= most_pairs)
            listen_again(false);
        if (connect_on(pair, &client, &server))
            settle(pair);
        else
            end_pair(pair, true);
    }
}

/* --- the process */

static int made_socket(const char *congestion_control)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const char *refused = fd < 0 ? "socket" : prepare(fd, congestion_control);
    if (refused)
        fail(refused);
    return fd;
}

static void start_listening(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(option.port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
    /* One to see that it can be had, rather than when somebody connects. */
    close(made_socket(option.to_server));
    listener = made_socket(option.to_client);
    if (bind(listener, (struct sockaddr *)&any, sizeof any) || listen(listener, SOMAXCONN) ||
        epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event))
        fail("cannot listen");
    listening = true;
}

static void raise_limits(void)
{
    struct rlimit limit = {FDS_WANTED, FDS_WANTED};
    if (setrlimit(RLIMIT_NOFILE, &limit)) {
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    most_pairs = ((long)limit.rlim_cur - FDS_OF_OURS) / FDS_A_PAIR;
    if (most_pairs < 1) {
        errno = EMFILE;
        fail("open files");
    }
}

/* Of all rights of root's, the one to use addresses of others is enough. */
static void give_up_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[2] = {{.effective = 1 << CAP_NET_ADMIN, .permitted = 1 << CAP_NET_ADMIN}};
    uid_t id = option.user;
    if (option.user >= 0 && (prctl(PR_SET_KEEPCAPS, 1) || setgroups(0, NULL) || setresgid(id, id, id) || setresuid(id, id, id)))
        fail("cannot become the user given by -u");
    if (syscall(SYS_capset, &head, rights))
        fail("cannot give up rights");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int bytes(const char *text, int least)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || end == text || value < least || value > 1 << 30) {
        fprintf(stderr, "splitter: %s is not a whole number from %d to %d\n", text, least, 1 << 30);
        exit(64);
    }
    return value;
}

static void read_options(int argc, char **argv)
{
    for (int letter; (letter = getopt(argc, argv, "p:c:s:S:R:L:b:u:")) != -1;)
        switch (letter) {
        case 'p': option.port = bytes(optarg, 1); break;
        case 'c': option.to_client = optarg; break;
        case 's': option.to_server = optarg; break;
        case 'S': option.send_bytes = bytes(optarg, 1); break;
        case 'R': option.receive_bytes = bytes(optarg, 1); break;
        case 'L': option.unsent_bytes = bytes(optarg, 1); break;
        case 'b': option.back_pressure_bytes = bytes(optarg, 2); break;
        case 'u': option.user = bytes(optarg, 0); break;
        default: exit(64);
        }
    if (optind < argc || option.port < 1 || option.port > 65535) {
        fprintf(stderr, "usage: splitter -p PORT [-c CC to clients] [-s CC to servers] [-S send buffer] [-R receive buffer]"
                        " [-L unsent low water] [-b back-pressure] [-u uid]\n");
        exit(64);
    }
    if (option.back_pressure_bytes && !option.receive_bytes)
        option.receive_bytes = option.back_pressure_bytes;
}

static void end_all(void)
{
    while (all.next != &all)
        end_pair(all.next, true);
    printf("{\"connections\": %ld, \"refused\": %ld, \"resets\": %ld, \"most_at_once\": %ld,"
           " \"bytes_to_client\": %llu, \"bytes_to_server\": %llu}\n",
           count.connections, count.refused, count.resets, count.most_at_once, count.bytes[CLIENT], count.bytes[SERVER]);
}

int main(int argc, char **argv)
{
    static struct epoll_event events[EVENTS];
    sigset_t ends;
    read_options(argc, argv);
    raise_limits();
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    poller = epoll_create1(EPOLL_CLOEXEC);
    signals = signalfd(-1, &ends, SFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &signals};
    if (poller < 0 || signals < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, signals, &event))
        fail("epoll");
    start_listening();
    give_up_rights();
    for (;;) {
        bool wait_shortly = paused_sides || (!listening && open_pairs < most_pairs);
        int n = epoll_wait(poller, events, EVENTS, wait_shortly ? RETRY_MS : -1);
        if (n < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &signals) {
                end_all();
                return 0;
            }
            if (events[i].data.ptr == &listener)
                welcome();
            else
                happened(events[i].data.ptr, events[i].events);
        }
        if (n == 0) {
            retry_paused();
            if (open_pairs < most_pairs)
                listen_again(true);
        }
        bury();
    }
}

/* Split TCP connections that a router hands over: each becomes two, from client to proxy and from proxy to server.
 *
 *     splitter -p PORT [-c CC] [-s CC] [-S BYTES] [-R BYTES] [-L BYTES] [-b BYTES] [-u UID]
 *
 * The splitter is transparent on both sides (IP_TRANSPARENT): the client sees the server's address, the server sees the
 * client's address and port. Routing by rule, or TPROXY, hands connections over to it (docs/proxy.md). It connects to
 * the server when the client's handshake is done, so that a refusal reaches the client as a reset. Ends of data (FIN)
 * and resets are passed on as they come, each direction for itself.
 *
 * It has one thread, and uses epoll, and splice(2) from socket to pipe to socket: payload is neither
 * inspected nor copied. Its memory is a pipe (64 KB) for each direction whose receiver is behind, and the kernel's
 * socket buffers. On SIGTERM it resets every connection, so that none of them looks complete, and prints a line of JSON
 * that says what went through. If it dies in another way, the kernel resets them.
 *
 * -b BYTES is back-pressure: the bytes in the proxy and the bytes unacknowledged on its sending side (SIOCOUTQ) are no
 * more than BYTES together. The proxy reads more only as they are acknowledged, which the kernel reports by transmit
 * timestamps (TX_ACK). The kernel still acknowledges to the sender what the proxy has not read, up to the receive
 * buffer (-R; BYTES unless given).
 */
#define _GNU_SOURCE
#include "splitter.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, RETRY_MS = 100, FDS_A_PAIR = 6, FDS_WANTED = 1 << 16, FDS_OF_OURS = 256 };

struct options option = {.user = -1};

void fail(const char *what)
{
    fprintf(stderr, "splitter: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int made_socket(const char *congestion_control)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const char *refused = fd < 0 ? "cannot open a socket" : prepare(fd, congestion_control);
    if (refused)
        fail(refused);
    return fd;
}

static int listening_socket(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(option.port)};
    /* Make a socket now to see that this is possible, rather than when a client connects. */
    close(made_socket(option.to_server));
    int fd = made_socket(option.to_client);
    prepare_ends(fd);
    if (bind(fd, (struct sockaddr *)&any, sizeof any) || listen(fd, SOMAXCONN))
        fail("cannot listen");
    return fd;
}

/* Raise the limit on open files. Return how many pairs of connections it has room for. */
static long raise_limits(void)
{
    struct rlimit limit = {FDS_WANTED, FDS_WANTED};
    if (setrlimit(RLIMIT_NOFILE, &limit)) {
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    long most = ((long)limit.rlim_cur - FDS_OF_OURS) / FDS_A_PAIR;
    if (most < 1) {
        errno = EMFILE;
        fail("RLIMIT_NOFILE");
    }
    if (limit.rlim_cur < FDS_WANTED)
        fprintf(stderr, "splitter: RLIMIT_NOFILE is below %d: at most %ld connections at a time\n", FDS_WANTED, most);
    return most;
}

/* Give up all of root's privileges except the one to use other hosts' addresses. */
static void give_up_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[2] = {{.effective = 1 << CAP_NET_ADMIN, .permitted = 1 << CAP_NET_ADMIN}};
    uid_t id = option.user;
    if (option.user >= 0 && (prctl(PR_SET_KEEPCAPS, 1) || setgroups(0, NULL) || setresgid(id, id, id) || setresuid(id, id, id)))
        fail("cannot become the user given by -u");
    if (syscall(SYS_capset, &head, rights))
        fail("cannot drop privileges");
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

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    static struct epoll_event events[EVENTS];
    sigset_t ends;
    read_options(argc, argv);
    long most_pairs = raise_limits();
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    int poller = epoll_create1(EPOLL_CLOEXEC), signals = signalfd(-1, &ends, SFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &ends};
    if (poller < 0 || signals < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, signals, &event))
        fail("epoll");
    begin(poller, listening_socket(), most_pairs);
    give_up_rights();
    for (long long since_ms = 0;;) {
        bool waited = waits();
        int n = epoll_wait(poller, events, EVENTS, waited ? RETRY_MS : -1);
        if (n < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &ends) {
                end_all();
                return 0;
            }
            happened(events[i].data.ptr, events[i].events);
        }
        /* Events of other pairs may come all the time. */
        bool due = waited && (n == 0 || now_ms() - since_ms >= RETRY_MS);
        if (due)
            retry(n == 0);
        if (due || !waited)
            since_ms = now_ms();
        bury();
    }
}

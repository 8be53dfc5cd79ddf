/* Run a group of flows of the kernel's TCP: one process sends them all, and one receives them all.
 *
 *     flows receive ADDRESS PORT [REQUESTS]
 *     flows read ADDRESS PORT
 *     flows send ADDRESS PORT ALGORITHM LOCAL_PORT SAMPLE_NS FLOWS
 *
 * The file FLOWS has a line for each flow: START_NS BYTES STOP_NS PACE. A flow begins at START_NS of the monotonic
 * clock, from port LOCAL_PORT plus its index. It ends when BYTES have been acknowledged or at STOP_NS (0: at SIGTERM),
 * whichever comes first. PACE is the most bytes a second, 0 for no bound. Flows that are stopped are reset, so that
 * none of them looks complete.
 *
 * With BYTES 0, a flow sends what its far end requests, and ends when the far end closes. The file REQUESTS says what
 * the far end of each flow requests, with a line for each body: BYTES pause|every SECONDS (docs/contract.md:
 * CC_REQUESTS). At its end, the receiver then prints a line of JSON for each connection: its port at the sender and,
 * for each request, its bytes, when it was made, and when the first and the last byte of the body arrived.
 *
 * A thread for each flow makes few, long system calls: sendfile(2) of a file that is one hole, so that no payload is
 * copied or stored, and recv(2) with MSG_TRUNC, which discards payload in the kernel. A thread that waits in the kernel
 * costs no system call. Every SAMPLE_NS the first thread queries the kernel about each flow. A receiver wakes up once
 * for some KB. That delays acknowledgements, so that CUBIC gets half of a link beside Reno instead of two thirds; one
 * that is told to read does not.
 *
 * At its end, the sender prints a line of JSON for each flow: times in ns of the monotonic clock (0: never), TCP_INFO
 * at the end, and samples of TCP_INFO while the flow ran. Status 3: the kernel lacks the algorithm.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "requests.h"

enum { LOW_WATER_BYTES = 16 << 10, NO_ALGORITHM = 3 };
static const int64_t FOREVER = INT64_MAX;

struct look { int64_t at_ns; uint64_t acked_bytes; uint32_t rtt_us, cwnd; };

struct flow {
    int64_t start_ns, bytes, stop_ns, pace; /* as requested */
    int64_t connect_ns, connected_ns, end_ns;
    int fd, error;
    bool running, complete;
    struct tcp_info info;
    unsigned char own[64]; /* TCP_CC_INFO, the congestion control's own data */
    socklen_t own_bytes;
    struct look *looks;
    int look_count, look_room;
    pthread_t thread;
};

static struct flow *flows;
static int flow_count, zeros;
static struct sockaddr_in peer;
static const char *algorithm;
static int local_port;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void ask(struct flow *flow)
{
    socklen_t size = sizeof flow->info;
    getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, &flow->info, &size);
    flow->own_bytes = sizeof flow->own;
    if (getsockopt(flow->fd, IPPROTO_TCP, TCP_CC_INFO, flow->own, &flow->own_bytes) != 0)
        flow->own_bytes = 0;
}

/* --- the sender */

static int connected(struct flow *flow)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(local_port + (flow - flows))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    uint64_t pace = flow->pace;
    if (fd < 0)
        fail("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&own, sizeof own) != 0)
        fail("bind");
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, strlen(algorithm)) != 0) {
        fprintf(stderr, "flows: %s: %s\n", algorithm, strerror(errno));
        exit(NO_ALGORITHM);
    }
    if (pace && setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof pace) != 0)
        fail("SO_MAX_PACING_RATE");
    if (!flow->bytes)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* the end of a body leaves at once */
    return fd;
}

/* Send `left` bytes. Return whether that was possible. */
static bool send_bytes(int fd, int64_t left)
{
    while (left > 0) {
        off_t at = 0;
        ssize_t sent = sendfile(fd, zeros, &at, left < 1 << 30 ? left : 1 << 30);
        if (sent <= 0)
            return false;
        left -= sent;
    }
    return true;
}

/* Send what the far end requests until it closes. Return whether it did. */
static bool answer(int fd)
{
    int64_t size;
    ssize_t got;
    while ((got = recv(fd, &size, sizeof size, MSG_WAITALL)) == sizeof size)
        if (!send_bytes(fd, size))
            return false;
    return got == 0;
}

static void *send_one(void *argument)
{
    struct flow *flow = argument;
    char byte;
    sleep_until(flow->start_ns);
    flow->connect_ns = now_ns();
    if (connect(flow->fd, (struct sockaddr *)&peer, sizeof peer) != 0) {
        flow->error = errno;
        return NULL;
    }
    pthread_mutex_lock(&lock);
    flow->connected_ns = now_ns();
    flow->running = true;
    pthread_mutex_unlock(&lock);
    if (!flow->bytes) {
        if (!answer(flow->fd))
            return NULL; /* the flow was stopped */
    } else {
        if (!send_bytes(flow->fd, flow->bytes))
            return NULL;
        /* The far end closes when it has everything: its FIN comes with the last acknowledgement. */
        shutdown(flow->fd, SHUT_WR);
        if (recv(flow->fd, &byte, 1, 0) != 0)
            return NULL;
    }
    pthread_mutex_lock(&lock);
    if (flow->running) {
        flow->end_ns = now_ns();
        flow->running = false;
        flow->complete = true;
        ask(flow);
    }
    pthread_mutex_unlock(&lock);
    if (!flow->bytes)
        shutdown(flow->fd, SHUT_WR);
    return NULL;
}

static void stop(struct flow *flow)
{
    struct linger none = {.l_onoff = 1};
    pthread_mutex_lock(&lock);
    if (flow->running) {
        flow->end_ns = now_ns();
        flow->running = false;
        ask(flow);
    }
    pthread_mutex_unlock(&lock);
    setsockopt(flow->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    shutdown(flow->fd, SHUT_RDWR);
}

static void look(struct flow *flow)
{
    pthread_mutex_lock(&lock);
    if (flow->running) {
        ask(flow);
        if (flow->look_count == flow->look_room) {
            flow->look_room = flow->look_room ? 2 * flow->look_room : 64;
            flow->looks = realloc(flow->looks, flow->look_room * sizeof *flow->looks);
            if (!flow->looks)
                fail("realloc");
        }
        flow->looks[flow->look_count++] = (struct look){
            now_ns(), flow->info.tcpi_bytes_acked, flow->info.tcpi_rtt, flow->info.tcpi_snd_cwnd};
    }
    pthread_mutex_unlock(&lock);
}

static void print_looks(const struct flow *flow)
{
    printf("\"looks\": {\"at_ns\": [");
    for (int i = 0; i < flow->look_count; i++)
        printf("%s%lld", i ? ", " : "", (long long)flow->looks[i].at_ns);
    printf("], \"acked_bytes\": [");
    for (int i = 0; i < flow->look_count; i++)
        printf("%s%llu", i ? ", " : "", (unsigned long long)flow->looks[i].acked_bytes);
    printf("], \"rtt_us\": [");
    for (int i = 0; i < flow->look_count; i++)
        printf("%s%u", i ? ", " : "", flow->looks[i].rtt_us);
    printf("], \"cwnd_segments\": [");
    for (int i = 0; i < flow->look_count; i++)
        printf("%s%u", i ? ", " : "", flow->looks[i].cwnd);
    printf("]}");
}

static void print(const struct flow *flow)
{
    const struct tcp_info *info = &flow->info;
    /* TCP_INFO's acknowledged bytes include the SYN, and the FIN of a flow that is complete and closed first. */
    uint64_t extra = (flow->connected_ns ? 1 : 0) + (flow->complete && flow->bytes), acked = info->tcpi_bytes_acked;
    printf("{\"connect_ns\": %lld, \"connected_ns\": %lld, \"end_ns\": %lld, \"complete\": %s, \"error\": %d, ",
           (long long)flow->connect_ns, (long long)flow->connected_ns, (long long)flow->end_ns,
           flow->complete ? "true" : "false", flow->error);
    printf("\"acked_bytes\": %llu, \"sent_bytes\": %llu, \"retransmitted_bytes\": %llu, ",
           (unsigned long long)(acked > extra ? acked - extra : 0), (unsigned long long)info->tcpi_bytes_sent,
           (unsigned long long)info->tcpi_bytes_retrans);
    printf("\"out_segments\": %u, \"retransmitted_segments\": %u, \"marked_segments\": %u, \"min_rtt_us\": %u, ",
           info->tcpi_segs_out, info->tcpi_total_retrans, info->tcpi_delivered_ce, info->tcpi_min_rtt);
    printf("\"own\": \"");
    for (socklen_t i = 0; i < flow->own_bytes; i++)
        printf("%02x", flow->own[i]);
    printf("\", ");
    print_looks(flow);
    printf("}\n");
}

static void read_flows(const char *path)
{
    long long start, bytes, stop_at, pace;
    FILE *file = fopen(path, "re");
    flows = calloc(MOST_FLOWS, sizeof *flows);
    if (!flows || !file)
        fail(path);
    while (flow_count < MOST_FLOWS && fscanf(file, "%lld %lld %lld %lld", &start, &bytes, &stop_at, &pace) == 4)
        flows[flow_count++] = (struct flow){
            .start_ns = start, .bytes = bytes, .stop_ns = stop_at ? stop_at : FOREVER, .pace = pace};
    fclose(file);
}

static void send_all(int64_t sample_ns, const char *path)
{
    pthread_attr_t small;
    sigset_t end;
    int64_t next_ns = FOREVER;
    bool ended = false;
    zeros = memfd_create("zeros", MFD_CLOEXEC);
    if (zeros < 0 || ftruncate(zeros, 1LL << 30) != 0)
        fail("memfd_create");
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    signal(SIGPIPE, SIG_IGN);
    read_flows(path);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    for (int i = 0; i < flow_count; i++) {
        flows[i].fd = connected(&flows[i]);
        if (flows[i].start_ns < next_ns)
            next_ns = flows[i].start_ns;
        if (pthread_create(&flows[i].thread, &small, send_one, &flows[i]) != 0)
            fail("pthread_create");
    }
    /* Samples are at whole multiples of SAMPLE_NS after the first start, however long a sample takes. */
    for (next_ns += sample_ns; !ended;) {
        int64_t at_ns = next_ns, now = now_ns(), left;
        bool over = true;
        for (int i = 0; i < flow_count; i++)
            if (flows[i].stop_ns < at_ns)
                at_ns = flows[i].stop_ns;
        left = at_ns > now ? at_ns - now : 0;
        struct timespec wait = {.tv_sec = left / SECOND, .tv_nsec = left % SECOND};
        ended = sigtimedwait(&end, NULL, &wait) == SIGTERM;
        now = now_ns();
        if (now >= next_ns)
            next_ns += sample_ns;
        else
            at_ns = 0; /* no sample is due */
        for (int i = 0; i < flow_count; i++) {
            if (ended || now >= flows[i].stop_ns) {
                stop(&flows[i]);
                flows[i].stop_ns = FOREVER;
            } else if (at_ns)
                look(&flows[i]);
            over = over && (flows[i].end_ns || flows[i].error);
        }
        ended = ended || over;
    }
    for (int i = 0; i < flow_count; i++)
        print(&flows[i]);
    fflush(stdout);
    _exit(0);
}

/* --- the receiver */

static void *receive_one(void *argument)
{
    int fd = (int)(intptr_t)argument;
    while (recv(fd, &zeros, 1 << 30, MSG_TRUNC | MSG_WAITALL) > 0)
        ;
    close(fd);
    return NULL;
}

static void receive_all(bool asks, bool waits)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, low = LOW_WATER_BYTES;
    pthread_attr_t small;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&peer, sizeof peer) != 0 || listen(fd, MOST_FLOWS) != 0)
        fail("listen");
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    if (asks)
        print_requests_at_the_end(&small);
    for (;;) {
        pthread_t thread;
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        int one = accept4(fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);
        if (one < 0)
            fail("accept");
        if (asks) {
            begin_asking(one, &from, &small);
            continue;
        }
        /* Wake up once for this many bytes, not for each packet; it is less than the first window, and so does not
           change that. */
        if (waits)
            setsockopt(one, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low);
        if (pthread_create(&thread, &small, receive_one, (void *)(intptr_t)one) != 0)
            fail("pthread_create");
    }
}

int main(int count, char **arguments)
{
    bool sends = count == 8 && !strcmp(arguments[1], "send");
    bool reads = count == 4 && !strcmp(arguments[1], "read");
    struct rlimit files = {.rlim_cur = MOST_FLOWS + 64, .rlim_max = MOST_FLOWS + 64};
    setrlimit(RLIMIT_NOFILE, &files);
    if (!sends && !reads && !((count == 4 || count == 5) && !strcmp(arguments[1], "receive"))) {
        fprintf(stderr, "usage: flows receive ADDRESS PORT [REQUESTS]\n"
                        "       flows read ADDRESS PORT\n"
                        "       flows send ADDRESS PORT ALGORITHM LOCAL_PORT SAMPLE_NS FLOWS\n");
        return 2;
    }
    peer = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(arguments[3]))};
    if (inet_pton(AF_INET, arguments[2], &peer.sin_addr) != 1)
        fail("address");
    if (count == 5)
        read_requests(arguments[4]);
    if (!sends)
        receive_all(count == 5, !reads);
    algorithm = arguments[4];
    local_port = atoi(arguments[5]);
    send_all(atoll(arguments[6]), arguments[7]);
}

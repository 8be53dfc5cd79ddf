/* Read packets from a packet socket, number them or put them in order, and write them to another.
 *
 * The number of a packet is the identification in its IPv4 header, which nothing else needs, as nothing is fragmented;
 * so packets keep their length. Each side reads all its packets from one socket, with one system call for each, and
 * writes them to another socket, with another call for each. It runs before all other programs, as it would be late if
 * it had to wait for the processor.
 */
#define _GNU_SOURCE
#include "bond.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = sizeof(struct virtio_net_hdr), FRAME = 1 << 16, NOBODY = 65534, ROOM_BYTES = 1 << 26, IP = HEAD + ETH_HLEN };
static const int64_t SECOND = 1000000000;

static int in_fd, out_fd, out_index;
static volatile sig_atomic_t ended;
/* stood_ns: the longest time from when the kernel recorded a packet until it was read. */
static struct { long long packets[2], bytes[2], other, came, came_bytes, stood_ns; } counted;

static int index_of(const char *name)
{
    int found = (int)if_nametoindex(name);
    if (!found)
        fail(name);
    return found;
}

static int packet_socket(void)
{
    int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1, bytes = ROOM_BYTES;
    /* Packets whose checksum is left to the hardware stay that way (struct virtio_net_hdr). */
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on)
        || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on)
        || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on)
        || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes)
        || setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
        fail("cannot open a packet socket");
    return fd;
}

/* Read packets that come in by one interface, or by two: then the socket gets those of the whole namespace, and a
   filter leaves out those of other interfaces. */
static void open_in(int one, int two)
{
    struct sock_filter ours[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)one, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)two, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, FRAME),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {sizeof ours / sizeof *ours, ours};
    struct sockaddr_ll where = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = one == two ? one : 0};
    in_fd = packet_socket();
    if (setsockopt(in_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program)
        || bind(in_fd, (struct sockaddr *)&where, sizeof where))
        fail("cannot open a packet socket");
    out_fd = packet_socket();
}

/* Make the next system calls read what is there, and then report that there is no more. */
static void end(int signal)
{
    (void)signal;
    ended = 1;
    fcntl(in_fd, F_SETFL, O_NONBLOCK);
}

/* Get priority over other programs; then give up all privileges, as none is needed from here on. */
static void get_ready(void)
{
    struct sched_param first = {.sched_priority = 1};
    struct sigaction ends = {.sa_handler = end};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    if (sched_setscheduler(0, SCHED_FIFO, &first))
        fail("priority");
    sigaction(SIGTERM, &ends, NULL);
    if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)
        || syscall(SYS_capset, &head, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        fail("cannot drop privileges");
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

/* Read a packet. Return its size with HEAD, 0 if there was none, and -1 at the end; `index`: the interface that it came
   in by. */
static ssize_t read_packet(unsigned char *frame, int *index)
{
    static unsigned char about[256];
    struct sockaddr_ll from;
    struct iovec part = {frame, HEAD + FRAME};
    struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1,
                             .msg_control = about, .msg_controllen = sizeof about};
    ssize_t got = recvmsg(in_fd, &message, 0);
    if (got < 0 && (errno == EINTR || errno == ENETDOWN))
        return 0;
    if (got < 0 && errno == EAGAIN)
        return -1;
    if (got < 0)
        fail("receive");
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(one), sizeof stamp);
            int64_t stood_ns = clock_ns(CLOCK_REALTIME) - (stamp.tv_sec * SECOND + stamp.tv_nsec);
            if (stood_ns > counted.stood_ns)
                counted.stood_ns = stood_ns;
        }
    *index = from.sll_ifindex;
    return got;
}

static void write_packet(int index, const unsigned char *frame, size_t size)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = index};
    while (sendto(out_fd, frame, size, 0, (struct sockaddr *)&to, sizeof to) != (ssize_t)size)
        if (errno != EINTR)
            fail("send");
}

static bool is_ipv4(const unsigned char *frame, ssize_t size)
{
    return size >= IP + 20 && frame[HEAD + 12] == 8 && frame[HEAD + 13] == 0;
}

/* Write the number into the header, and update its checksum (RFC 1624). */
static void set_number(unsigned char *ip, unsigned number)
{
    uint32_t old = ip[4] << 8 | ip[5], sum = (~(ip[10] << 8 | ip[11]) & 0xFFFF) + (~old & 0xFFFF) + number;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = ~((sum & 0xFFFF) + (sum >> 16)) & 0xFFFF;
    ip[4] = number >> 8, ip[5] = number & 0xFF;
    ip[10] = sum >> 8, ip[11] = sum & 0xFF;
}

/* Return how many packets the kernel had no room for. */
static unsigned dropped(void)
{
    struct tpacket_stats found = {0};
    socklen_t size = sizeof found;
    getsockopt(in_fd, SOL_PACKET, PACKET_STATISTICS, &found, &size);
    return found.tp_drops;
}

static void count(int link, ssize_t size)
{
    counted.packets[link]++;
    counted.bytes[link] += size - HEAD;
}

_Noreturn void run_split(const char *in, char *const out[2], const struct turns *turns)
{
    static unsigned char frame[HEAD + FRAME];
    int to[2] = {index_of(out[0]), index_of(out[1])}, own = index_of(in), index;
    uint64_t number = 0;
    open_in(own, own);
    get_ready();
    for (ssize_t size; (size = read_packet(frame, &index)) >= 0;) {
        if (size == 0)
            continue;
        int link = 0;
        counted.came++;
        counted.came_bytes += size - HEAD;
        if (is_ipv4(frame, size)) {
            set_number(frame + IP, number % NUMBERS);
            link = link_of(turns, number++);
            if (turns->copies) {
                write_packet(to[!link], frame, size);
                count(!link, size);
            }
        } else {
            counted.other++;
        }
        write_packet(to[link], frame, size);
        count(link, size);
    }
    printf("{\"came\": %lld, \"came_bytes\": %lld, \"one\": %lld, \"one_bytes\": %lld, \"two\": %lld, \"two_bytes\": %lld, "
           "\"other\": %lld, \"dropped\": %u, \"stood_ns\": %lld}\n",
           counted.came, counted.came_bytes, counted.packets[0], counted.bytes[0], counted.packets[1], counted.bytes[1],
           counted.other, dropped(), counted.stood_ns);
    _exit(fflush(stdout) ? 1 : 0);
}

static void give(const unsigned char *frame, size_t size)
{
    write_packet(out_index, frame, size);
}

_Noreturn void run_merge(char *const in[2], const char *out, int64_t timer_ns)
{
    static unsigned char frame[HEAD + FRAME];
    int from[2] = {index_of(in[0]), index_of(in[1])}, index = 0;
    ssize_t size = 0;
    out_index = index_of(out);
    open_in(from[0], from[1]);
    begin_order(timer_ns, give);
    get_ready();
    while (size >= 0) {
        int64_t expires_ns = timer_expires_ns(), now_ns = clock_ns(CLOCK_MONOTONIC);
        if (expires_ns <= now_ns) {
            timer_expired(now_ns);
            continue;
        }
        if (expires_ns != NEVER && !ended) {
            struct pollfd wait = {.fd = in_fd, .events = POLLIN};
            struct timespec patience = {(expires_ns - now_ns) / SECOND, (expires_ns - now_ns) % SECOND};
            if (ppoll(&wait, 1, &patience, NULL) <= 0)
                continue;
        }
        if ((size = read_packet(frame, &index)) <= 0)
            continue;
        count(index == from[0] ? 0 : 1, size);
        if (is_ipv4(frame, size)) {
            packet_came(frame[IP + 4] << 8 | frame[IP + 5], frame, size, clock_ns(CLOCK_MONOTONIC));
        } else {
            counted.other++;
            write_packet(out_index, frame, size);
        }
    }
    printf("{\"one\": %lld, \"one_bytes\": %lld, \"two\": %lld, \"two_bytes\": %lld, \"other\": %lld, \"left\": %lld, "
           "\"copies\": %lld, \"late\": %lld, \"beyond\": %lld, \"reordered\": %lld, \"missing\": %lld, \"expiries\": %lld, "
           "\"held\": %lld, \"held_ns\": %lld, \"held_peak\": %lld, \"waiting\": %lld, \"dropped\": %u, \"stood_ns\": %lld, "
           "\"left_bytes\": %lld}\n",
           counted.packets[0], counted.bytes[0], counted.packets[1], counted.bytes[1], counted.other, tally.left,
           tally.copies, tally.late, tally.beyond, tally.reordered, tally.missing, tally.expiries, tally.held,
           tally.held_ns, tally.held_peak, tally.waiting, dropped(), counted.stood_ns,
           tally.left_bytes - tally.left * HEAD);
    _exit(fflush(stdout) ? 1 : 0);
}

/* Impair packets in ways that the kernel's queues do not, in one direction of a link: from one interface to another.
 *
 *     hop run IN OUT RULES SEED       as root, in a namespace that has both interfaces
 *     hop simulate RULES SEED         the same for packets that stdin describes, as a test
 *
 * The file RULES has a line for each rule, in order of time: AT_NS of the monotonic clock, when the rule begins to
 * apply, and the other numbers of struct rule. The first rule applies from the start. Shares are in billionths. All
 * random numbers come from SEED, the same number of them for each packet, so that what happens to one packet does not
 * depend on what happened to others.
 *
 * A packet's time is when it arrived at the interface, as the kernel recorded it. A packet that need not wait leaves 1
 * us later, which is what a system call costs; a packet that waits leaves at its time. Frames that are not IPv4 pass
 * unchanged.
 *
 * On SIGTERM `run` writes a line of JSON with what it counted. `simulate` reads lines "NS BYTES" (bytes of IP; each is
 * an ECN-capable UDP packet or, with a third number, a TCP packet with that sequence number) and writes lines "NS INDEX
 * ECN".
 */
#define _GNU_SOURCE
#include "rebind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = sizeof(struct virtio_net_hdr), FRAME = 1 << 16, ACK_BYTES = 120, MOST_LOST = 4096 };
/* what system calls cost in virtual time (conformance/lab/virtual.py) */
enum { CALL_NS = 1000, EMPTY_POLL_NS = 20000 };
enum { NONE, BLEACHED, ALL_CE };
enum { NOT_ECT, CE = 3 };
static const int64_t SECOND = 1000000000, BILLION = 1000000000;

struct rule {
    long long at_ns;
    long long reorder_ppb, reorder_every, reorder_packets, reorder_ns;
    long long duplicate_ppb;
    long long enter_ppb, leave_ppb, bad_ppb, between_ppb;
    long long jitter_ns;
    long long slot_ns, newest;
    long long mark_ppb, ecn, largest;
    long long lose_first, lose_count, lose_least, lose_every, lose_of, lose_again;
    long long hold_first, hold_count, hold_least, hold_every, hold_of, hold_ns;
    long long rebind;
};
enum { NUMBERS = sizeof(struct rule) / sizeof(long long) };

struct packet { int64_t due_ns; uint64_t order, index, flow; long long passes; size_t size; bool thin; unsigned char data[]; };

/* A segment that was lost, and how many of its retransmissions are still to be lost. */
struct lost { uint64_t flow; uint32_t sequence; long long left; };

static struct rule *rules;
static size_t rule_count, rule_at;
static uint64_t state, order;
static bool bad, rebinds;
static long long counted, lose_seen, hold_seen;
static int64_t last_ns;
static struct lost lost[MOST_LOST];
static size_t lost_count;
/* a heap of packets that wait for their time, by time and order; and packets that wait for others to pass */
static struct packet **heap, **held;
static size_t heap_count, heap_room, held_count, held_room;
static struct {
    long long came, left, other, too_long, chosen, again, burst, in_bad, between, marked, not_markable, bleached, duplicated,
        reordered, held, thinned, rebound, stale, late_ns;
    /* From the last packet before clients were rebound: the longest gap between packets that passed, and when the last
       one did. */
    int64_t quiet_ns, passed_ns;
} tally;

static void fail(const char *what)
{
    fprintf(stderr, "hop: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* splitmix64 */
static uint64_t drawn(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static bool happens(uint64_t draw, long long ppb)
{
    return (long long)((unsigned __int128)draw * BILLION >> 64) < ppb;
}

static void read_rules(const char *path)
{
    FILE *file = fopen(path, "r");
    long long number;
    size_t at = 0, room = 0;
    if (!file)
        fail(path);
    while (fscanf(file, "%lld", &number) == 1) {
        if (at / NUMBERS == room && !(rules = realloc(rules, (room = 2 * room + 8) * sizeof *rules)))
            fail("memory");
        ((long long *)rules)[at++] = number;
    }
    if (ferror(file) || !feof(file) || at == 0 || at % NUMBERS != 0)
        fail("cannot read the rules");
    rule_count = at / NUMBERS;
    for (at = 0; at < rule_count; at++)
        rebinds = rebinds || rules[at].rebind;
    fclose(file);
}

static bool before(const struct packet *one, const struct packet *other)
{
    return one->due_ns != other->due_ns ? one->due_ns < other->due_ns : one->order < other->order;
}

static void *grown(void *list, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return list;
    list = realloc(list, (*room = 2 * *room + 64) * size);
    if (!list)
        fail("memory");
    return list;
}

static void push(struct packet *packet)
{
    size_t at = heap_count;
    heap = grown(heap, heap_count, &heap_room, sizeof *heap);
    packet->order = order++;
    for (heap_count++; at && before(packet, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = packet;
}

static struct packet *pop(void)
{
    struct packet *first = heap[0], *last = heap[--heap_count];
    size_t at = 0, next;
    while ((next = 2 * at + 1) < heap_count) {
        if (next + 1 < heap_count && before(heap[next + 1], heap[next]))
            next++;
        if (!before(heap[next], last))
            break;
        heap[at] = heap[next];
        at = next;
    }
    heap[at] = last;
    return first;
}

/* A packet that is due at due_ns passes: packets held until enough others have passed follow it. */
static void passed(int64_t due_ns)
{
    for (size_t i = 0; i < held_count;)
        if (--held[i]->passes > 0) {
            i++;
        } else {
            held[i]->due_ns = due_ns;
            push(held[i]);
            memmove(held + i, held + i + 1, (--held_count - i) * sizeof *held);
        }
}

static uint64_t mixed(uint64_t key, const unsigned char *at, size_t size)
{
    while (size--)
        key = (key ^ *at++) * 1099511628211u;
    return key;
}

/* Set the ECN field and update the header's checksum. */
static void set_ecn(unsigned char *ip, unsigned ecn)
{
    uint32_t old = word(ip), new = (old & ~3u) | ecn;
    set_word(ip, new);
    mend(ip + 10, old, new);
}

/* Whether the checksum of TCP or UDP is left to the hardware. */
static bool has_no_sum(const struct packet *packet)
{
    return ((const struct virtio_net_hdr *)(const void *)packet->data)->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
}

/* Whether this is a retransmission of a segment that was lost and is to be lost again. */
static bool lost_again(uint64_t flow, uint32_t sequence)
{
    for (size_t i = 0; i < lost_count; i++)
        if (lost[i].flow == flow && lost[i].sequence == sequence && lost[i].left > 0) {
            lost[i].left--;
            return true;
        }
    return false;
}

/* Remember a segment that was lost, so that its next retransmissions are lost, too. */
static void remember(struct lost segment)
{
    size_t i = 0;
    while (i < lost_count && lost[i].left > 0)
        i++;
    if (i == MOST_LOST) {
        errno = ENOBUFS;
        fail("too many segments are to be lost again");
    }
    lost[i] = segment;
    if (i == lost_count)
        lost_count++;
}

static void follow_rules(int64_t at_ns)
{
    while (rule_at + 1 < rule_count && rules[rule_at + 1].at_ns <= at_ns) {
        rule_at++;
        counted = lose_seen = hold_seen = 0;
        bad = false;
    }
}

/* Whether a packet is among `count` from the `first` on; and, of each `every` of these, among the first `of`. */
static bool chosen(long long *seen, size_t bytes, long long least, long long first, long long count, long long every,
                   long long of)
{
    if (!count || (long long)bytes < least)
        return false;
    ++*seen;
    return *seen >= first && *seen - first < count && (*seen - first) % every < of;
}

/* Of the pure acknowledgements of one flow that wait for the same slot, drop the older ones. */
static void thin(const struct packet *newer)
{
    for (size_t i = 0; i < heap_count; i++)
        if (heap[i]->thin && heap[i]->flow == newer->flow && heap[i]->due_ns == newer->due_ns) {
            tally.thinned++;
            heap[i]->size = 0; /* it is not sent */
            heap[i]->thin = false;
        }
}

/* Decide what happens to a packet that arrived at at_ns. Unless it is lost, it is then in the heap, or held. */
static void came(struct packet *packet, int64_t at_ns)
{
    unsigned char *ip = packet->data + HEAD + ETH_HLEN, *beyond;
    uint64_t draw_change = drawn(), draw_loss = drawn(), draw_mark = drawn(), draw_copy = drawn(), draw_order = drawn(),
             draw_late = drawn();
    const struct rule *rule;
    size_t bytes;
    bool segment, pure_ack, shift;
    enum fate fate = PASSES;
    uint32_t sequence = 0;
    packet->due_ns = at_ns;
    packet->passes = 0;
    packet->thin = false;
    if (packet->size < HEAD + ETH_HLEN + 28 || packet->data[HEAD + 12] != 8 || packet->data[HEAD + 13] != 0) {
        tally.other++;
        push(packet);
        return;
    }
    tally.came++;
    follow_rules(at_ns);
    rule = &rules[rule_at];
    bytes = ip[2] << 8 | ip[3];
    beyond = ip + (ip[0] & 15) * 4;
    packet->flow = mixed(mixed(14695981039346656037u, ip + 12, 8), beyond, 4);
    segment = ip[9] == IPPROTO_TCP && packet->size >= HEAD + ETH_HLEN + (ip[0] & 15) * 4u + 20;
    if (segment)
        memcpy(&sequence, beyond + 4, 4);
    pure_ack = segment ? beyond[13] == 0x10 && bytes == (ip[0] & 15) * 4u + (beyond[12] >> 4) * 4u : ip[9] == IPPROTO_UDP;

    if (rule->enter_ppb) {
        bad = bad ? !happens(draw_change, rule->leave_ppb) : happens(draw_change, rule->enter_ppb);
        tally.in_bad += bad;
        tally.between += !bad;
    }
    counted++;
    if (rule->largest && (long long)bytes > rule->largest) {
        tally.too_long++;
    } else if (chosen(&lose_seen, bytes, rule->lose_least, rule->lose_first, rule->lose_count, rule->lose_every,
                      rule->lose_of)) {
        tally.chosen++;
        if (segment && rule->lose_again)
            remember((struct lost){packet->flow, sequence, rule->lose_again});
    } else if (segment && lost_count && lost_again(packet->flow, sequence)) {
        tally.again++;
    } else if (rule->enter_ppb && happens(draw_loss, bad ? rule->bad_ppb : rule->between_ppb)) {
        tally.burst++;
    } else if (happens(draw_mark, rule->mark_ppb) && (ip[1] & 3) == NOT_ECT) {
        tally.not_markable++;
    } else if (rule->rebind && (fate = rebind(ip, beyond, has_no_sum(packet), rule->rebind)) == STALE) {
        tally.stale++;
    } else {
        tally.rebound += fate == REWRITTEN;
        if (rule->rebind && tally.passed_ns && at_ns - tally.passed_ns > tally.quiet_ns)
            tally.quiet_ns = at_ns - tally.passed_ns;
        tally.passed_ns = at_ns;
        if (rule->ecn == BLEACHED && (ip[1] & 3) != NOT_ECT) {
            tally.bleached++;
            set_ecn(ip, NOT_ECT);
        } else if ((ip[1] & 3) != NOT_ECT && (rule->ecn == ALL_CE || happens(draw_mark, rule->mark_ppb))) {
            tally.marked++;
            set_ecn(ip, CE);
        }
        if (rule->jitter_ns)
            packet->due_ns = at_ns + (int64_t)((unsigned __int128)draw_late * (rule->jitter_ns + 1) >> 64);
        if (rule->slot_ns) {
            int64_t since_ns = at_ns - rules[0].at_ns;
            packet->due_ns = rules[0].at_ns + (since_ns + rule->slot_ns - 1) / rule->slot_ns * rule->slot_ns;
        }
        /* No packet overtakes another, except those that are displaced on purpose. */
        if (packet->due_ns < last_ns)
            packet->due_ns = last_ns;
        shift = happens(draw_order, rule->reorder_ppb) || (rule->reorder_every && counted % rule->reorder_every == 0);
        if (chosen(&hold_seen, bytes, rule->hold_least, rule->hold_first, rule->hold_count, rule->hold_every,
                   rule->hold_of)) {
            tally.held++;
            packet->due_ns += rule->hold_ns;
            push(packet);
            return;
        }
        if (shift && rule->reorder_packets) {
            tally.reordered++;
            packet->passes = rule->reorder_packets;
            packet->due_ns += SECOND; /* in case too few packets follow */
            held = grown(held, held_count, &held_room, sizeof *held);
            held[held_count++] = packet;
            return;
        }
        if (shift && rule->reorder_ns) {
            tally.reordered++;
            packet->due_ns += rule->reorder_ns;
            push(packet);
            return;
        }
        last_ns = packet->due_ns;
        packet->thin = rule->newest && rule->slot_ns && pure_ack && bytes <= ACK_BYTES;
        if (packet->thin)
            thin(packet);
        push(packet);
        if (happens(draw_copy, rule->duplicate_ppb)) {
            struct packet *copy = malloc(sizeof *copy + packet->size);
            if (!copy)
                fail("memory");
            memcpy(copy, packet, sizeof *copy + packet->size);
            copy->thin = false;
            tally.duplicated++;
            push(copy);
        }
        passed(packet->due_ns);
        return;
    }
    free(packet);
}

/* Return when the next packet is due; INT64_MAX if none waits. */
static int64_t next_ns(void)
{
    int64_t found = heap_count ? heap[0]->due_ns : INT64_MAX;
    for (size_t i = 0; i < held_count; i++)
        if (held[i]->due_ns < found)
            found = held[i]->due_ns;
    return found;
}

/* Remove and return the packet that is due first. */
static struct packet *next(void)
{
    for (size_t i = 0; i < held_count; i++)
        if (!heap_count || held[i]->due_ns < heap[0]->due_ns) {
            struct packet *found = held[i];
            memmove(held + i, held + i + 1, (--held_count - i) * sizeof *held);
            return found;
        }
    return pop();
}

/* --- packets of a network */

static int in_fd, out_fd;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static int packet_socket(const char *name, int protocol)
{
    int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1, bytes = 1 << 26;
    struct sockaddr_ll where = {
        .sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = (int)if_nametoindex(name)};
    if (!where.sll_ifindex)
        fail(name);
    /* Packets whose checksum is left to the hardware stay that way (struct virtio_net_hdr). */
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0
        || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0
        || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0
        || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0
        || setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0
        || bind(fd, (struct sockaddr *)&where, sizeof where) != 0)
        fail("cannot open a packet socket");
    return fd;
}

static void receive(int64_t offset_ns)
{
    static unsigned char buffer[HEAD + FRAME];
    char about[128];
    struct iovec part = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = about, .msg_controllen = sizeof about};
    ssize_t got = recvmsg(in_fd, &message, 0);
    int64_t at_ns = clock_ns(CLOCK_MONOTONIC) - CALL_NS;
    struct packet *packet;
    if (got < 0 && (errno == EINTR || errno == ENETDOWN))
        return;
    if (got < 0)
        fail("receive");
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(one), sizeof stamp);
            at_ns = stamp.tv_sec * SECOND + stamp.tv_nsec - offset_ns;
        }
    packet = malloc(sizeof *packet + got);
    if (!packet)
        fail("memory");
    packet->size = got;
    packet->index = 0;
    packet->flow = 0;
    memcpy(packet->data, buffer, got);
    came(packet, at_ns);
}

static void tell(int signal)
{
    char more[160] = "";
    long long waiting = (long long)held_count;
    (void)signal;
    for (size_t i = 0; i < heap_count; i++)
        waiting += heap[i]->size != 0; /* a packet that was thinned out does not wait, and counts as thinned */
    if (rebinds)
        snprintf(more, sizeof more, ", \"rebound\": %lld, \"stale\": %lld, \"quiet_ns\": %lld, \"passed_ns\": %lld",
                 tally.rebound, tally.stale, (long long)tally.quiet_ns,
                 (long long)(tally.passed_ns ? tally.passed_ns - rules[0].at_ns : 0));
    dprintf(1,
            "{\"came\": %lld, \"left\": %lld, \"other\": %lld, \"too_long\": %lld, \"chosen\": %lld, \"again\": %lld, "
            "\"burst\": %lld, \"in_bad\": %lld, \"between\": %lld, \"marked\": %lld, \"not_markable\": %lld, "
            "\"bleached\": %lld, \"duplicated\": %lld, \"reordered\": %lld, \"held\": %lld, \"thinned\": %lld, "
            "\"waiting\": %lld, \"late_ns\": %lld%s}\n",
            tally.came, tally.left, tally.other, tally.too_long, tally.chosen, tally.again, tally.burst, tally.in_bad,
            tally.between, tally.marked, tally.not_markable, tally.bleached, tally.duplicated, tally.reordered, tally.held,
            tally.thinned, waiting, tally.late_ns, more);
    _exit(0);
}

static void run(const char *in, const char *out)
{
    struct sched_param first = {.sched_priority = 1};
    struct sigaction end = {.sa_handler = tell};
    int64_t offset_ns;
    in_fd = packet_socket(in, ETH_P_ALL);
    out_fd = packet_socket(out, 0);
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        fail("priority");
    sigaction(SIGTERM, &end, NULL);
    offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    for (;;) {
        struct pollfd wait = {.fd = in_fd, .events = POLLIN};
        int64_t due_ns, now_ns;
        /* A packet is sent when the call begins; the call's cost is charged after that (change.c). */
        while ((due_ns = next_ns()) != INT64_MAX && due_ns <= (now_ns = clock_ns(CLOCK_MONOTONIC))) {
            struct packet *packet = next();
            if (packet->size) {
                if (now_ns - due_ns > tally.late_ns)
                    tally.late_ns = now_ns - due_ns;
                if (write(out_fd, packet->data, packet->size) != (ssize_t)packet->size)
                    fail("send");
                tally.left++;
            }
            free(packet);
        }
        if (due_ns != INT64_MAX) {
            int64_t left_ns = due_ns - CALL_NS - now_ns;
            struct timespec patience = {left_ns / SECOND, left_ns % SECOND};
            if (left_ns < EMPTY_POLL_NS) {
                /* A poll that finds nothing in so short a time costs more than that time. Packets that arrive meanwhile
                   wait. */
                if (left_ns > 0)
                    clock_nanosleep(CLOCK_MONOTONIC, 0, &patience, NULL);
                continue;
            }
            if (ppoll(&wait, 1, &patience, NULL) <= 0)
                continue;
        }
        receive(offset_ns);
    }
}

/* --- packets that stdin describes */

static void send_until(int64_t at_ns)
{
    while (next_ns() <= at_ns) {
        struct packet *packet = next();
        if (packet->size)
            printf("%lld %llu %d\n", (long long)packet->due_ns, (unsigned long long)packet->index,
                   packet->data[HEAD + ETH_HLEN + 1] & 3);
        free(packet);
    }
}

static void simulate(void)
{
    char line[128];
    for (uint64_t index = 0; fgets(line, sizeof line, stdin); index++) {
        long long at_ns, bytes;
        unsigned sequence;
        int numbers = sscanf(line, "%lld %lld %u", &at_ns, &bytes, &sequence);
        struct packet *packet = calloc(1, sizeof *packet + HEAD + ETH_HLEN + 40);
        unsigned char *ip = packet->data + HEAD + ETH_HLEN;
        if (numbers < 2)
            fail("stdin");
        send_until(at_ns - 1);
        packet->size = HEAD + ETH_HLEN + 40;
        packet->index = index;
        packet->data[HEAD + 12] = 8;
        ip[0] = 0x45, ip[1] = 2, ip[2] = bytes >> 8, ip[3] = bytes & 0xFF, ip[9] = IPPROTO_UDP;
        if (numbers == 3) {
            ip[9] = IPPROTO_TCP;
            sequence = htonl(sequence);
            memcpy(ip + 24, &sequence, 4);
            ip[32] = 5 << 4, ip[33] = 0x10;
        }
        came(packet, at_ns);
    }
    send_until(INT64_MAX - 1);
}

int main(int arguments, char **argument)
{
    if (arguments == 6 && strcmp(argument[1], "run") == 0) {
        read_rules(argument[4]);
        state = strtoull(argument[5], NULL, 10);
        run(argument[2], argument[3]);
    } else if (arguments == 4 && strcmp(argument[1], "simulate") == 0) {
        read_rules(argument[2]);
        state = strtoull(argument[3], NULL, 10);
        simulate();
        return 0;
    }
    fprintf(stderr, "usage: hop run IN OUT RULES SEED | hop simulate RULES SEED\n");
    return 2;
}

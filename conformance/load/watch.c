/* Measure how long packets stand in a queue: from when each enters a node to when it leaves by the queue's interface.
 *
 *     watch INTERFACE SAMPLE_MASK [trips]
 *
 * Run it in the network namespace of the node. One packet socket sees packets that come in by any other interface, and
 * packets that leave by this one, after its queue. A filter in the kernel passes only headers, and of TCP only packets
 * whose IP identification, spread, has none of SAMPLE_MASK's bits set (so that a packet is seen both times or not at
 * all). They go into a ring that is mapped into this process, so that watching makes hardly any system calls. A packet
 * is recognized by its addresses, ports, identification, and sequence number or first encrypted bytes. Lengths do not
 * count, as some queues split super-packets; the first segment then stands for the whole. Resolution: nanoseconds.
 *
 * With `trips` it also sees packets that come in by this interface, and measures round trips (trips.c). The mask is
 * then 0, since both transmissions of a retransmitted packet must be seen.
 *
 * On SIGTERM it writes, in binary and native byte order: the numbers of packets that entered, that left, and that were
 * lost before they could be read, and the number of connections with round trips (64 bits each); a struct trips for
 * each connection; then for each packet that entered and left: when it left, and how long it stood (in ns, 64 bits
 * each).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trips.h"

/* SPREAD turns consecutive identifications into numbers that are not consecutive. */
enum { SPREAD = 40503, SNAP = 96, BLOCK = 1 << 18, BLOCKS = 64, RETIRE_MS = 20, SLOTS = 1 << 18, PROBES = 64 };

struct slot { uint64_t key; int64_t at_ns; };

static struct slot *slots;
static int64_t *stood;
static uint64_t stood_count, stood_room, came, left;
static unsigned out_index;
static int with_trips;

static void fail(const char *what)
{
    fprintf(stderr, "watch: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* FNV-1a over what stays the same of a packet; key_of() returns 0 for a packet that is neither TCP nor UDP over IPv4 */
static uint64_t mixed(uint64_t key, const uint8_t *at, size_t size)
{
    while (size--)
        key = (key ^ *at++) * 1099511628211u;
    return key;
}

static uint64_t key_of(const uint8_t *frame, size_t size)
{
    const uint8_t *ip = frame + ETH_HLEN, *beyond;
    uint64_t key = 14695981039346656037u;
    size_t head;
    if (size < ETH_HLEN + 28 || frame[12] != 8 || frame[13] != 0)
        return 0;
    head = (ip[0] & 15) * 4u;
    beyond = ip + head;
    key = mixed(key, ip + 4, 2);
    key = mixed(key, ip + 12, 8);
    if (ip[9] == IPPROTO_TCP && size >= ETH_HLEN + head + 20)
        key = mixed(key, beyond, 12);
    else if (ip[9] == IPPROTO_UDP && size >= ETH_HLEN + head + 8) {
        key = mixed(key, beyond, 4);
        key = mixed(key, beyond + 8, size - (ETH_HLEN + head + 8));
    } else
        return 0;
    return key ? key : 1;
}

static void enters(uint64_t key, int64_t at_ns)
{
    uint64_t oldest = key & (SLOTS - 1);
    came++;
    /* A packet that was dropped never leaves: a newer packet takes its slot. */
    for (unsigned i = 0; i < PROBES; i++) {
        uint64_t at = (key + i) & (SLOTS - 1);
        if (!slots[at].key) {
            oldest = at;
            break;
        }
        if (slots[at].at_ns < slots[oldest].at_ns)
            oldest = at;
    }
    slots[oldest] = (struct slot){key, at_ns};
}

static void leaves(uint64_t key, int64_t at_ns)
{
    left++;
    for (unsigned i = 0; i < PROBES; i++) {
        struct slot *slot = &slots[(key + i) & (SLOTS - 1)];
        if (slot->key != key)
            continue;
        if (stood_count == stood_room) {
            stood_room = stood_room ? 2 * stood_room : 1 << 16;
            stood = realloc(stood, stood_room * 2 * sizeof *stood);
            if (!stood)
                fail("realloc");
        }
        stood[2 * stood_count] = at_ns;
        stood[2 * stood_count++ + 1] = at_ns - slot->at_ns;
        slot->key = 0;
        return;
    }
}

static void read_block(struct tpacket_block_desc *block)
{
    struct tpacket3_hdr *packet = (void *)((char *)block + block->hdr.bh1.offset_to_first_pkt);
    for (unsigned i = 0; i < block->hdr.bh1.num_pkts; i++) {
        const struct sockaddr_ll *about = (void *)((char *)packet + TPACKET_ALIGN(sizeof *packet));
        const uint8_t *frame = (uint8_t *)packet + packet->tp_mac;
        int64_t at_ns = packet->tp_sec * 1000000000LL + packet->tp_nsec;
        int leaving = about->sll_pkttype == PACKET_OUTGOING, back = !leaving && (unsigned)about->sll_ifindex == out_index;
        uint64_t key = back ? 0 : key_of(frame, packet->tp_snaplen);
        if (key && leaving)
            leaves(key, at_ns);
        else if (key)
            enters(key, at_ns);
        if (back)
            trips_acknowledged(frame, packet->tp_snaplen, at_ns);
        else if (with_trips && !leaving && trips_sent(frame, packet->tp_snaplen, at_ns) != 0)
            fail("trips");
        packet = (void *)((char *)packet + packet->tp_next_offset);
    }
}

static int watched(const char *name, unsigned mask)
{
    /* Pass IPv4 packets that go out by the interface, or come in by another; of TCP only a sample. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_IFINDEX),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, out_index, 2, 11),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_IFINDEX),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, out_index, 9, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SKF_AD_OFF + SKF_AD_PROTOCOL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 7),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + 9),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 4),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_HLEN + 4),
        BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, SPREAD),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 8),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SNAP),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    struct tpacket_req3 ring = {
        .tp_block_size = BLOCK, .tp_block_nr = BLOCKS, .tp_frame_size = 256, .tp_frame_nr = BLOCK / 256 * BLOCKS,
        .tp_retire_blk_tov = RETIRE_MS};
    struct sockaddr_ll all = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int fd, version = TPACKET_V3;
    out_index = if_nametoindex(name);
    if (!out_index)
        fail(name);
    code[3].k = code[5].k = out_index;
    if (with_trips)
        code[5].jt = 0;
    fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0
        || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0
        || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0
        || bind(fd, (struct sockaddr *)&all, sizeof all) != 0)
        fail("cannot open a packet socket");
    return fd;
}

static void put(const void *data, size_t size)
{
    if (size && fwrite(data, size, 1, stdout) != 1)
        fail("write");
}

int main(int count, char **arguments)
{
    struct tpacket_stats_v3 statistics;
    socklen_t size = sizeof statistics;
    sigset_t end;
    unsigned at = 0;
    char *ring;
    uint64_t words[4];
    with_trips = count == 4 && strcmp(arguments[3], "trips") == 0;
    if (count != 3 && !with_trips) {
        fprintf(stderr, "usage: watch INTERFACE SAMPLE_MASK [trips]\n");
        return 2;
    }
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    struct pollfd waits[2] = {{.fd = watched(arguments[1], atoi(arguments[2])), .events = POLLIN},
                              {.fd = signalfd(-1, &end, SFD_CLOEXEC), .events = POLLIN}};
    ring = mmap(NULL, (size_t)BLOCK * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, waits[0].fd, 0);
    slots = calloc(SLOTS, sizeof *slots);
    if (ring == MAP_FAILED || !slots)
        fail("memory");
    for (int ended = 0; ended < 2;) {
        /* After the signal, go on until the kernel has handed over the block that is not full. */
        if (poll(waits, ended ? 1 : 2, ended ? 5 * RETIRE_MS : -1) == 0)
            ended = 2;
        ended = ended ? ended : waits[1].revents != 0;
        for (;;) {
            struct tpacket_block_desc *block = (void *)(ring + (size_t)at * BLOCK);
            if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
                break;
            read_block(block);
            __atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
            at = (at + 1) % BLOCKS;
        }
    }
    getsockopt(waits[0].fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size);
    words[0] = came, words[1] = left, words[2] = statistics.tp_drops, words[3] = trips_count();
    put(words, sizeof words);
    for (size_t n = 0; n < trips_count(); n++)
        put(trips_of(n), sizeof *trips_of(n));
    put(stood, stood_count * 2 * sizeof *stood);
    if (fflush(stdout))
        fail("write");
    return 0;
}

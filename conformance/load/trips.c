/* Measure round trips of TCP data packets in front of a queue: from when a packet reaches the queue until the first
 * acknowledgement that covers it, cumulative or selective, comes back. A round trip thus includes the time in the
 * queue, the path in both directions, and whatever holds acknowledgements back.
 *
 * Retransmitted packets do not count: it is unknown which transmission was acknowledged. Other packets are acknowledged
 * selectively while a gap before them is repaired, so that loss recovery does not make them look late.
 */
#include "trips.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { ACK = 0x10, OPTION_END = 0, OPTION_NOTHING = 1, OPTION_SACK = 5 };
enum state { WAITS, AGAIN, DONE };

struct segment { uint32_t begin, end; int64_t at_ns; enum state state; };

/* Segments are in the order of their sequence numbers; those before `first` no longer wait. */
struct connection { struct trips seen; uint32_t high; struct segment *segments; size_t first, count, room; };

struct header { uint32_t from, to, seq, ack; uint16_t from_port, to_port; uint32_t payload; uint8_t flags; const uint8_t *options, *end; };

static struct connection *connections;
static size_t connection_count, last;

static uint32_t word(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint16_t half(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Whether one sequence number is before another, given that they wrap around. */
static int before(uint32_t one, uint32_t other)
{
    return (int32_t)(one - other) < 0;
}

static int parse(const uint8_t *frame, size_t size, struct header *found)
{
    const uint8_t *ip = frame + ETH_HLEN, *tcp;
    size_t head, length, own;
    if (size < ETH_HLEN + 40 || frame[12] != 8 || frame[13] != 0 || ip[9] != IPPROTO_TCP)
        return 0;
    head = (ip[0] & 15) * 4u, length = ntohs(half(ip + 2));
    tcp = ip + head;
    if (size < ETH_HLEN + head + 20)
        return 0;
    own = (tcp[12] >> 4) * 4u;
    if (own < 20 || size < ETH_HLEN + head + own || length < head + own)
        return 0;
    *found = (struct header){
        .from = word(ip + 12), .to = word(ip + 16), .from_port = half(tcp), .to_port = half(tcp + 2),
        .seq = ntohl(word(tcp + 4)), .ack = ntohl(word(tcp + 8)), .flags = tcp[13],
        .payload = length - head - own, .options = tcp + 20, .end = tcp + own};
    return 1;
}

static struct connection *connection_of(uint32_t from, uint16_t from_port, uint32_t to, uint16_t to_port)
{
    for (size_t n = 0; n < connection_count; n++) {
        size_t at = (last + n) % connection_count;
        struct trips *one = &connections[at].seen;
        if (one->from == from && one->from_port == from_port && one->to == to && one->to_port == to_port) {
            last = at;
            return &connections[at];
        }
    }
    return NULL;
}

/* Return the index of the first waiting segment that begins at or after a sequence number. */
static size_t search(const struct connection *of, uint32_t seq)
{
    size_t low = of->first, high = of->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (before(of->segments[middle].begin, seq))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int append(struct connection *to, struct segment segment)
{
    if (to->count == to->room && to->first > to->count / 2) {
        to->count -= to->first;
        memmove(to->segments, to->segments + to->first, to->count * sizeof *to->segments);
        to->first = 0;
    }
    if (to->count == to->room) {
        size_t room = to->room ? 2 * to->room : 1024;
        struct segment *larger = realloc(to->segments, room * sizeof *larger);
        if (!larger)
            return -1;
        to->segments = larger, to->room = room;
    }
    to->segments[to->count++] = segment;
    return 0;
}

int trips_sent(const uint8_t *frame, size_t size, int64_t at_ns)
{
    struct header about;
    struct connection *own;
    uint32_t end;
    if (!parse(frame, size, &about) || !about.payload)
        return 0;
    end = about.seq + about.payload;
    own = connection_of(about.from, about.from_port, about.to, about.to_port);
    if (!own) {
        struct connection *more = realloc(connections, (connection_count + 1) * sizeof *more);
        if (!more)
            return -1;
        connections = more, last = connection_count++;
        own = &connections[last];
        *own = (struct connection){
            .seen = {.from = about.from, .to = about.to, .from_port = about.from_port, .to_port = about.to_port},
            .high = about.seq};
    }
    if (!before(about.seq, own->high)) {
        own->high = end;
        return append(own, (struct segment){about.seq, end, at_ns, WAITS});
    }
    for (size_t at = search(own, about.seq); at < own->count && before(own->segments[at].begin, end); at++)
        if (own->segments[at].state == WAITS)
            own->segments[at].state = AGAIN;
    /* Segments that begin before this one, and reach into it */
    for (size_t at = search(own, about.seq); at-- > own->first && before(about.seq, own->segments[at].end);)
        if (own->segments[at].state == WAITS)
            own->segments[at].state = AGAIN;
    if (before(own->high, end)) {
        uint32_t begin = own->high;
        own->high = end;
        return append(own, (struct segment){begin, end, at_ns, AGAIN});
    }
    return 0;
}

static void covered(struct connection *of, struct segment *segment, int64_t at_ns)
{
    int64_t took_ns = at_ns - segment->at_ns;
    if (segment->state != WAITS)
        return;
    segment->state = DONE;
    if (!of->seen.packets || took_ns < of->seen.least_ns)
        of->seen.least_ns = took_ns;
    if (took_ns > of->seen.most_ns)
        of->seen.most_ns = took_ns;
    of->seen.sum_ns += took_ns;
    of->seen.packets++;
}

void trips_acknowledged(const uint8_t *frame, size_t size, int64_t at_ns)
{
    struct header about;
    struct connection *own;
    if (!parse(frame, size, &about) || !(about.flags & ACK))
        return;
    own = connection_of(about.to, about.to_port, about.from, about.from_port);
    if (!own)
        return;
    while (own->first < own->count && !before(about.ack, own->segments[own->first].end))
        covered(own, &own->segments[own->first++], at_ns);
    for (const uint8_t *at = about.options; at < about.end && *at != OPTION_END;) {
        size_t length;
        if (*at == OPTION_NOTHING) {
            at++;
            continue;
        }
        if (at + 1 >= about.end || at[1] < 2 || at + at[1] > about.end)
            return;
        length = at[1];
        for (const uint8_t *block = at + 2; *at == OPTION_SACK && block + 8 <= at + length; block += 8) {
            uint32_t begin = ntohl(word(block)), end = ntohl(word(block + 4));
            for (size_t n = search(own, begin); n < own->count && !before(end, own->segments[n].end); n++)
                covered(own, &own->segments[n], at_ns);
        }
        at += length;
    }
}

size_t trips_count(void)
{
    return connection_count;
}

const struct trips *trips_of(size_t number)
{
    return &connections[number].seen;
}

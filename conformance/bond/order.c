/* Put packets in order again: 3GPP TS 36.323, 5.1.2.1.4, "when the reordering function is used".
 *
 * The standard's Last_Submitted_PDCP_RX_SN + 1 is `due` here, its Next_PDCP_RX_SN is `next`, and its
 * Reordering_PDCP_RX_COUNT is `target`. A gap starts the timer for all packets that have arrived by then. When it
 * expires, the packets below the target that are there are forwarded, and then those that follow in order; missing
 * packets are no longer waited for.
 */
#include "bond.h"

#include <stdlib.h>
#include <string.h>

struct packet { int64_t count, came_ns; size_t size; unsigned char data[]; };

struct order_tally tally;
static void (*give)(const unsigned char *data, size_t size);
static int64_t timer_ns, expires_ns, due, next, target;
/* by the count's lower bits: the packets that wait, and 1 + the last count that arrived, to recognize copies */
static struct packet *waiting[NUMBERS];
static int64_t seen[NUMBERS];

void begin_order(int64_t own_timer_ns, void (*own_give)(const unsigned char *data, size_t size))
{
    timer_ns = own_timer_ns;
    give = own_give;
    expires_ns = NEVER;
}

int64_t timer_expires_ns(void)
{
    return expires_ns;
}

static void give_on(const unsigned char *data, size_t size)
{
    tally.left++;
    tally.left_bytes += (long long)size;
    give(data, size);
}

/* Forward the packet with the count that is due, if it waits. Return whether it did. */
static bool give_due(int64_t now_ns)
{
    struct packet *packet = waiting[due % NUMBERS];
    if (!packet)
        return false;
    waiting[due % NUMBERS] = NULL;
    tally.waiting--;
    tally.held_ns += now_ns - packet->came_ns;
    give_on(packet->data, packet->size);
    free(packet);
    return true;
}

static void give_consecutive(int64_t now_ns)
{
    while (give_due(now_ns))
        due++;
}

static void start_timer(int64_t now_ns)
{
    expires_ns = NEVER;
    if (tally.waiting) {
        target = next;
        expires_ns = now_ns + timer_ns;
    }
}

static void hold(int64_t count, const unsigned char *data, size_t size, int64_t now_ns)
{
    struct packet *packet = malloc(sizeof *packet + size);
    if (!packet)
        fail("memory");
    *packet = (struct packet){.count = count, .came_ns = now_ns, .size = size};
    memcpy(packet->data, data, size);
    waiting[count % NUMBERS] = packet;
    tally.held++;
    if (++tally.waiting > tally.held_peak)
        tally.held_peak = tally.waiting;
}

void packet_came(uint16_t number, const unsigned char *data, size_t size, int64_t now_ns)
{
    /* the count with these lower bits that is nearest to the expected one */
    int64_t count = next + (int16_t)(number - (uint16_t)next);
    bool after_a_later_one = count < next;
    if (count < 0 || (timer_ns && count < due && seen[number] != count + 1)) {
        tally.late++;
        return;
    }
    if (seen[number] == count + 1) {
        tally.copies++;
        return;
    }
    if (timer_ns && count - due >= WINDOW) {
        tally.beyond++;
        return;
    }
    seen[number] = count + 1;
    tally.reordered += after_a_later_one;
    if (!after_a_later_one)
        next = count + 1;
    if (!timer_ns) {
        give_on(data, size);
        return;
    }
    if (count == due) {
        give_on(data, size);
        due++;
        give_consecutive(now_ns);
    } else {
        hold(count, data, size, now_ns);
    }
    if (expires_ns == NEVER || due >= target)
        start_timer(now_ns);
}

void timer_expired(int64_t now_ns)
{
    tally.expiries++;
    for (; due < target; due++)
        tally.missing += !give_due(now_ns);
    give_consecutive(now_ns);
    start_timer(now_ns);
}

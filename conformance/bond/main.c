/* Bond two links, as a 5G base station's PDCP does for dual connectivity (3GPP TS 36.323).
 *
 *     bond split IN ONE TWO BATCH FIRST COPIES     as root, in a namespace that has these interfaces
 *     bond merge ONE TWO OUT TIMER_NS
 *     bond simulate split BATCH FIRST COPIES       the same for packets that stdin describes, as a test
 *     bond simulate merge TIMER_NS
 *
 * `split` numbers the packets that come in by IN. Of each BATCH packets, the first FIRST leave by ONE and the rest by
 * TWO; queues and rates play no part. With COPIES 1, each packet leaves by both. `merge` puts packets that come in by
 * both in order (order.c), and drops copies; a TIMER_NS of 0 means that it does not wait. Frames that are not IPv4 take
 * the first link and pass unchanged.
 *
 * On SIGTERM each writes a line of JSON with what it counted, in frames and their bytes.
 *
 * `simulate split` reads a line for each packet, and writes lines "LINK NUMBER". `simulate merge` reads lines "NS NUMBER",
 * with a line "NS -" for the end, and writes lines "NS NUMBER" of the packets that it forwarded, and one with the
 * tally.
 */
#include "bond.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH = 1000000 };

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "bond: %s: %s\n", what, strerror(errno));
    exit(1);
}

int link_of(const struct turns *turns, uint64_t count)
{
    return count % (uint64_t)turns->batch >= (uint64_t)turns->first;
}

static long long number(const char *text, long long least, long long most)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (*end || end == text || value < least || value > most) {
        fprintf(stderr, "bond: %s is not a whole number from %lld to %lld\n", text, least, most);
        exit(64);
    }
    return value;
}

static struct turns turns_of(char **words)
{
    struct turns found = {.batch = number(words[0], 1, MOST_BATCH)};
    found.first = number(words[1], 0, found.batch);
    found.copies = number(words[2], 0, 1);
    return found;
}

static void simulate_split(const struct turns *turns)
{
    char line[64];
    for (uint64_t count = 0; fgets(line, sizeof line, stdin); count++)
        for (int link = 0; link < 2; link++)
            if (turns->copies || link == link_of(turns, count))
                printf("%d %u\n", link, (unsigned)(count % NUMBERS));
}

static int64_t now_ns;

static void tell(const unsigned char *data, size_t size)
{
    uint16_t own;
    memcpy(&own, data, size);
    printf("%lld %u\n", (long long)now_ns, own);
}

static void simulate_merge(int64_t timer_ns)
{
    char line[64], what[32];
    long long at_ns;
    begin_order(timer_ns, tell);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%lld %31s", &at_ns, what) != 2)
            fail("stdin");
        while ((now_ns = timer_expires_ns()) <= at_ns)
            timer_expired(now_ns);
        now_ns = at_ns;
        if (*what != '-') {
            uint16_t own = (uint16_t)number(what, 0, NUMBERS - 1);
            packet_came(own, (unsigned char *)&own, sizeof own, now_ns);
        }
    }
    printf("{\"left\": %lld, \"copies\": %lld, \"late\": %lld, \"beyond\": %lld, \"reordered\": %lld, \"missing\": %lld, "
           "\"expiries\": %lld, \"held\": %lld, \"held_ns\": %lld, \"held_peak\": %lld, \"waiting\": %lld}\n",
           tally.left, tally.copies, tally.late, tally.beyond, tally.reordered, tally.missing, tally.expiries, tally.held,
           tally.held_ns, tally.held_peak, tally.waiting);
}

int main(int count, char **words)
{
    if (count == 8 && !strcmp(words[1], "split")) {
        struct turns turns = turns_of(words + 5);
        run_split(words[2], words + 3, &turns);
    } else if (count == 6 && !strcmp(words[1], "merge")) {
        run_merge(words + 2, words[4], number(words[5], 0, INT64_MAX));
    } else if (count == 6 && !strcmp(words[1], "simulate") && !strcmp(words[2], "split")) {
        struct turns turns = turns_of(words + 3);
        simulate_split(&turns);
    } else if (count == 4 && !strcmp(words[1], "simulate") && !strcmp(words[2], "merge")) {
        simulate_merge(number(words[3], 0, INT64_MAX));
    } else {
        fprintf(stderr, "usage: bond split IN ONE TWO BATCH FIRST COPIES | bond merge ONE TWO OUT TIMER_NS"
                        " | bond simulate split BATCH FIRST COPIES | bond simulate merge TIMER_NS\n");
        return 64;
    }
    return 0;
}

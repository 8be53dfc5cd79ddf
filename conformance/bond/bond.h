/* Declarations shared by the parts of the box that bonds two links; main.c describes it. */
#ifndef BOND_H
#define BOND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Packet numbers have 16 bits, as many as an IPv4 header has room for; the window of 3GPP TS 36.323 is half of them. */
enum { NUMBERS = 1 << 16, WINDOW = NUMBERS / 2 };
#define NEVER INT64_MAX

_Noreturn void fail(const char *what);

/* --- turns (main.c): which link a packet takes */

struct turns { long batch, first; bool copies; };

/* Return the link, 0 or 1, of the packet with this count. */
int link_of(const struct turns *turns, uint64_t count);

/* --- order (order.c): how packets are put in order again, with the one timer of TS 36.323, 5.1.2.1.4 */

struct order_tally {
    /* Left: forwarded. Copies: of packets that had already arrived. Late: arrived after later packets had been
       forwarded. Beyond: outside the window. Reordered: arrived after one with a higher number. Missing: given up when
       the timer expired. */
    long long left, left_bytes, copies, late, beyond, reordered, missing, expiries;
    /* Held: had to wait for others. Then: their total waiting time, the most that waited at once, and how many wait
       now. */
    long long held, held_ns, held_peak, waiting;
};

extern struct order_tally tally;

/* Begin with number 0. With a timer of 0, packets are forwarded as they arrive, except copies. `give` forwards a
   packet. */
void begin_order(int64_t timer_ns, void (*give)(const unsigned char *data, size_t size));
void packet_came(uint16_t number, const unsigned char *data, size_t size, int64_t now_ns);
/* Return when the timer expires; NEVER if it does not run. */
int64_t timer_expires_ns(void);
void timer_expired(int64_t now_ns);

/* --- wire (wire.c): packets of a network */

_Noreturn void run_split(const char *in, char *const out[2], const struct turns *turns);
_Noreturn void run_merge(char *const in[2], const char *out, int64_t timer_ns);

#endif

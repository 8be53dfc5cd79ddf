/* Round trips of TCP data packets, as seen from in front of a queue. */
#ifndef TRIPS_H
#define TRIPS_H

#include <stddef.h>
#include <stdint.h>

/* The round trips of a connection's packets, and the addresses and ports of its ends, the sender's first, in network
   byte order. */
struct trips { uint64_t packets; int64_t sum_ns, least_ns, most_ns; uint32_t from, to; uint16_t from_port, to_port; };

/* Record a frame on its way to the receiver, or back; frames that are not TCP over IPv4 are ignored. Return 0, or -1 if
   memory runs out. */
int trips_sent(const uint8_t *frame, size_t size, int64_t at_ns);
void trips_acknowledged(const uint8_t *frame, size_t size, int64_t at_ns);

/* Return how many connections there are, and what was seen of one. */
size_t trips_count(void);
const struct trips *trips_of(size_t number);

#endif

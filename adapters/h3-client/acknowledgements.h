/* How long an acknowledgement may wait: what `build` has ngtcp2 ask in the place of an eighth of the RTT. */
#ifndef ACKNOWLEDGEMENTS_H
#define ACKNOWLEDGEMENTS_H

#include <stdint.h>

uint64_t client_ack_delay_ns(uint64_t smoothed_rtt_ns);

#endif

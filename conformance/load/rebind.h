/* How hop.c rewrites packets: words of headers, with their checksums, and a client's port or address (rebind.c). */
#ifndef REBIND_H
#define REBIND_H

#include <stdbool.h>
#include <stdint.h>

uint32_t word(const unsigned char *at);
void set_word(unsigned char *at, uint32_t value);
/* Update a checksum for a word that changes (RFC 1624). */
void mend(unsigned char *sum_at, uint32_t old, uint32_t new);

enum rebinding { PORT = 1, ADDRESS };
enum fate { PASSES, REWRITTEN, STALE };

/* Give a client another port or address: rewrite packets that it sends, and packets that are sent to it. A packet to
   its old port or address is STALE, as the client is no longer there. `has_no_sum`: the transport checksum is left to
   the hardware. */
enum fate rebind(unsigned char *ip, unsigned char *beyond, bool has_no_sum, enum rebinding how);

#endif

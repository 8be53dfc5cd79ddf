/* What hop.c rewrites of packets: words of headers, with their checksums, and a client's port or address (rebind.c). */
#ifndef REBIND_H
#define REBIND_H

#include <stdbool.h>
#include <stdint.h>

uint32_t word(const unsigned char *at);
void set_word(unsigned char *at, uint32_t value);
/* Mend a checksum for a word that changes (RFC 1624). */
void mend(unsigned char *sum_at, uint32_t old, uint32_t new);

enum rebinding { PORT = 1, ADDRESS };
enum fate { PASSES, REWRITTEN, STALE };

/* Give a client another port or address: rewrite what it sends, and what is sent to it. What is sent to the one of before
   is STALE, as nobody is there any more. `has_no_sum`: the checksum beyond the header of IP is left to the hardware. */
enum fate rebind(unsigned char *ip, unsigned char *beyond, bool has_no_sum, enum rebinding how);

#endif

/* Give a client another port or address, as a NAT does that has lost its mapping (RFC 9000, 9.3).
 *
 * The new port is so much lower, or the last octet of the new address so much higher, that its range tells packets to
 * the new one from packets to the old one.
 */
#include "rebind.h"

#include <netinet/in.h>

/* FIRST_PORT to LAST_PORT are the ports that Linux gives to clients. */
enum { FIRST_PORT = 32768, LAST_PORT = 60999, LOWER_PORT = 30000, HIGHER_OCTET = 100 };

uint32_t word(const unsigned char *at)
{
    return at[0] << 8 | at[1];
}

void set_word(unsigned char *at, uint32_t value)
{
    at[0] = value >> 8 & 0xFF, at[1] = value & 0xFF;
}

void mend(unsigned char *sum_at, uint32_t old, uint32_t new)
{
    uint32_t sum = (~word(sum_at) & 0xFFFF) + (~old & 0xFFFF) + new;
    sum = (sum & 0xFFFF) + (sum >> 16);
    set_word(sum_at, ~((sum & 0xFFFF) + (sum >> 16)) & 0xFFFF);
}

/* A checksum that is left to the hardware is so far the sum of the pseudo-header with its addresses, not negated. */
static void mend_sum_of_addresses(unsigned char *sum_at, uint32_t old, uint32_t new)
{
    uint32_t sum = word(sum_at) + (~old & 0xFFFF) + new;
    sum = (sum & 0xFFFF) + (sum >> 16);
    set_word(sum_at, (sum & 0xFFFF) + (sum >> 16));
}

/* Whether an address is that of a client (topologies/network.py). */
static bool is_clients(const unsigned char *address)
{
    return address[0] == 10 && address[1] == 1;
}

static bool is_old(uint32_t own, enum rebinding how)
{
    return how == PORT ? own >= FIRST_PORT && own <= LAST_PORT : own <= HIGHER_OCTET;
}

static bool is_new(uint32_t own, enum rebinding how)
{
    return how == PORT ? is_old(own + LOWER_PORT, how) : own > HIGHER_OCTET;
}

enum fate rebind(unsigned char *ip, unsigned char *beyond, bool has_no_sum, enum rebinding how)
{
    bool sent = is_clients(ip + 12);
    unsigned char *at = how == PORT ? beyond + (sent ? 0 : 2) : ip + (sent ? 14 : 18);
    unsigned char *sum_at = beyond + (ip[9] == IPPROTO_TCP ? 16 : 6);
    uint32_t old = word(at), own = how == PORT ? old : old & 0xFF, new;
    if (sent == is_clients(ip + 16) || (ip[9] != IPPROTO_TCP && ip[9] != IPPROTO_UDP))
        return PASSES;
    if (sent ? !is_old(own, how) : !is_new(own, how))
        return !sent && is_old(own, how) ? STALE : PASSES;
    if (how == PORT)
        new = sent ? old - LOWER_PORT : old + LOWER_PORT;
    else
        new = sent ? old + HIGHER_OCTET : old - HIGHER_OCTET;
    set_word(at, new);
    if (how == ADDRESS)
        mend(ip + 10, old, new);
    if (!has_no_sum && word(sum_at)) /* UDP may have none */
        mend(sum_at, old, new);
    else if (has_no_sum && how == ADDRESS)
        mend_sum_of_addresses(sum_at, old, new);
    return REWRITTEN;
}

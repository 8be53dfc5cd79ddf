/* Preloaded into a C++ program, this makes std::random_device repeatable in a guest.
 *
 * libstdc++ asks the processor (RDSEED, RDRAND), whose answers no seed reaches. Here its numbers follow from the 16 random
 * bytes that the kernel gives to every process, and the guest's kernel gives the same ones whenever it has the same seed.
 * getrandom() would do as well, but the guest's queues draw from the same source: a draw here would change what they drop. */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* std::random_device::_M_getval(), which returns the next number. */
unsigned int _ZNSt13random_device9_M_getvalEv(void *device);

unsigned int _ZNSt13random_device9_M_getvalEv(void *device)
{
    static unsigned short state[3];
    static int has_begun;
    (void)device;
    if (!has_begun) {
        /* The first half is the canary of the stack's protector. */
        memcpy(state, (const char *)getauxval(AT_RANDOM) + 8, sizeof state);
        has_begun = 1;
    }
    return (unsigned int)jrand48(state);
}

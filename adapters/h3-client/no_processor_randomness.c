/* In the place of BoringSSL's rdrand-x86_64-linux.S: no random bytes come from the processor, so that a guest's seed
 * decides them all. */
#include <stddef.h>
#include <stdint.h>

int CRYPTO_rdrand(uint8_t out[8])
{
    (void)out;
    return 0;
}

int CRYPTO_rdrand_multiple8_buf(uint8_t *out, size_t length)
{
    (void)out;
    (void)length;
    return 0;
}

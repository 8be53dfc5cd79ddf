/* What BoringSSL needs of the C++ library beyond its headers, so that the library need not be compiled, which takes a
 * minute. The names are those that the compiler makes. */
#include <stddef.h>
#include <stdlib.h>

/* operator delete(void *, size_t) */
void _ZdlPvm(void *memory, size_t size)
{
    (void)size;
    free(memory);
}

/* std::__libcpp_verbose_abort(const char *, ...) */
_Noreturn void _ZNSt3__122__libcpp_verbose_abortEPKcz(const char *format, ...)
{
    (void)format;
    abort();
}

/* std::__sort<std::__less<unsigned short> &, unsigned short *> */
void _ZNSt3__16__sortIRNS_6__lessIttEEPtEEvT0_S5_T_(unsigned short *first, unsigned short *end, void *less)
{
    (void)less;
    for (unsigned short *next = first; next < end; next++)
        for (unsigned short *at = next; at > first && at[-1] > *at; at--) {
            unsigned short larger = at[-1];
            at[-1] = *at;
            *at = larger;
        }
}

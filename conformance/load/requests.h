/* Declarations shared by flows.c and requests.c. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>

enum { MOST_FLOWS = 4096, STACK_BYTES = 128 << 10 };
static const int64_t SECOND = 1000000000;

/* Print what went wrong, with the reason from errno, and exit. */
void fail(const char *what);
/* Return the time of the monotonic clock. */
int64_t now_ns(void);
void sleep_until(int64_t at_ns);

/* Read the requests that each flow's far end makes. */
void read_requests(const char *path);
/* Make these requests on a connection that has been accepted. */
void begin_asking(int fd, const struct sockaddr_in *from, const pthread_attr_t *small);
/* At SIGTERM, print what came of each request, and exit. Call this before other threads are created. */
void print_requests_at_the_end(const pthread_attr_t *small);

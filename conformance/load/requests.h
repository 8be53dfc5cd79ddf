/* What flows.c and requests.c have in common. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>

enum { MOST_FLOWS = 4096, STACK_BYTES = 128 << 10 };
static const int64_t SECOND = 1000000000;

/* Print what went wrong, with the reason of errno, and end. */
void fail(const char *what);
/* The monotonic clock. */
int64_t now_ns(void);
void sleep_until(int64_t at_ns);

/* Read what each flow's far end asks for. */
void read_requests(const char *path);
/* Ask for it on a connection that has come. */
void begin_asking(int fd, const struct sockaddr_in *from, const pthread_attr_t *small);
/* At SIGTERM print what came of the requests, and end. Before other threads are made. */
void print_requests_at_the_end(const pthread_attr_t *small);

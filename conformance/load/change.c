/* Change queues at given times, exactly.
 *
 *     change CHANGES
 *
 * The file CHANGES has a line for each change, in order of time: AT_NS FD HEX. At AT_NS of the monotonic clock the bytes go
 * to the netlink socket FD, which was inherited and belongs to the namespace that is meant; they are whole messages, each of
 * which asks for an acknowledgement. In virtual time a system call takes effect when it is made and is charged for after
 * it, so whoever sleeps until so much before a time sends at that very time. Of several changes at one time each is that
 * much later than the one before.
 *
 * On SIGTERM, or when all is done, it writes a line for each change that was due: AT_NS DONE_NS ERROR, the time by the
 * clock just before it was sent and the kernel's first refusal, or 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* what a system call costs (conformance/lab/virtual.py: SYSCALL_COST_NS) */
enum { CALL_NS = 1000, MOST_BYTES = 8192 };

struct change { int64_t at_ns, done_ns; int fd, error; size_t size; unsigned char *bytes; };

static struct change *changes;
static size_t count, done;

static void fail(const char *what)
{
    fprintf(stderr, "change: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void read_changes(const char *path)
{
    static char hex[2 * MOST_BYTES + 1];
    FILE *file = fopen(path, "r");
    long long at_ns;
    size_t room = 0;
    int fd;
    if (!file)
        fail(path);
    while (fscanf(file, "%lld %d %16384s", &at_ns, &fd, hex) == 3) {
        struct change *one;
        if (count == room && !(changes = realloc(changes, (room = room ? 2 * room : 64) * sizeof *changes)))
            fail("memory");
        one = &changes[count++];
        *one = (struct change){.at_ns = at_ns, .fd = fd, .size = strlen(hex) / 2, .bytes = malloc(strlen(hex) / 2 + 1)};
        if (!one->bytes)
            fail("memory");
        for (size_t i = 0; i < one->size; i++) {
            unsigned byte;
            if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
                fail("a message that is not hexadecimal");
            one->bytes[i] = byte;
        }
    }
    if (ferror(file) || !feof(file))
        fail(path);
    fclose(file);
}

static void tell(int signal)
{
    (void)signal;
    for (size_t i = 0; i < done; i++)
        dprintf(1, "%lld %lld %d\n", (long long)changes[i].at_ns, (long long)changes[i].done_ns, changes[i].error);
    _exit(0);
}

/* Read the acknowledgements of all messages of a change. */
static void acknowledged(struct change *change)
{
    char answer[MOST_BYTES];
    size_t wanted = 0;
    for (size_t at = 0; at < change->size; at += NLMSG_ALIGN(((struct nlmsghdr *)(change->bytes + at))->nlmsg_len))
        wanted++;
    while (wanted) {
        ssize_t got = recv(change->fd, answer, sizeof answer, 0);
        if (got <= 0)
            fail("netlink");
        for (struct nlmsghdr *head = (void *)answer; NLMSG_OK(head, got) && wanted; head = NLMSG_NEXT(head, got)) {
            if (head->nlmsg_type != NLMSG_ERROR)
                continue;
            wanted--;
            if (!change->error)
                change->error = -((struct nlmsgerr *)NLMSG_DATA(head))->error;
        }
    }
}

int main(int arguments, char **argument)
{
    struct sched_param first = {.sched_priority = 1};
    struct sigaction end = {.sa_handler = tell};
    size_t acknowledging = 0;
    if (arguments != 2) {
        fprintf(stderr, "usage: change CHANGES\n");
        return 2;
    }
    read_changes(argument[1]);
    /* It runs when a change is due, whatever else would run. */
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        fail("priority");
    sigaction(SIGTERM, &end, NULL);
    while (done < count) {
        struct change *change = &changes[done];
        int64_t early_ns = change->at_ns - CALL_NS, now = now_ns();
        struct timespec until = {early_ns / 1000000000, early_ns % 1000000000};
        if (now < early_ns) {
            /* Answers are read before a sleep, not between two changes of one time. */
            for (; acknowledging < done; acknowledging++)
                acknowledged(&changes[acknowledging]);
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
                ;
        }
        change->done_ns = now_ns();
        if (send(change->fd, change->bytes, change->size, 0) != (ssize_t)change->size)
            change->error = errno;
        done++;
    }
    for (; acknowledging < done; acknowledging++)
        acknowledged(&changes[acknowledging]);
    tell(0);
}

/* Change queues at exactly the given times.
 *
 *     change CHANGES
 *
 * The file CHANGES has a line for each change, in order of time: AT_NS FD HEX. At AT_NS of the monotonic clock, the
 * bytes are sent to the netlink socket FD, which was inherited and belongs to the namespace to be changed. They are
 * whole messages, each of which requests an acknowledgement; queries, which have a sequence number, may follow these.
 * In virtual time, a system call takes effect when it is made, and its cost is charged after that. The program
 * therefore sleeps until one call's cost before a change is due, so that it sends at that very time. Of several changes
 * at the same time, each is one call's cost later than the one before.
 *
 * On SIGTERM, or when all changes are made, it writes a line for each change that was due: AT_NS DONE_NS ERROR
 * ANSWER... DONE_NS is the time just before the change was sent, ERROR the kernel's first error number or 0, and each
 * ANSWER what the kernel answered to a query, as hexadecimal bytes. Queries cost no system calls of their own, so they
 * do not change a trial.
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
enum { CALL_NS = 1000, MOST_BYTES = 8192, MOST_QUESTIONS = 48, ANSWER_BYTES = 2048 };

struct change {
    int64_t at_ns, done_ns;
    int fd, error, unsent;
    size_t size, questions;
    unsigned char *bytes;
    size_t *lengths;
    unsigned char (*answers)[ANSWER_BYTES];
};

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
                fail("a message is not hexadecimal");
            one->bytes[i] = byte;
        }
        for (size_t at = 0; at < one->size; at += NLMSG_ALIGN(((struct nlmsghdr *)(one->bytes + at))->nlmsg_len))
            one->questions += ((struct nlmsghdr *)(one->bytes + at))->nlmsg_seq != 0;
        if (one->questions > MOST_QUESTIONS) {
            errno = E2BIG;
            fail("too many questions in a change");
        }
        /* Memory is allocated now, because that takes a system call. */
        one->lengths = calloc(one->questions + 1, sizeof *one->lengths);
        one->answers = calloc(one->questions + 1, sizeof *one->answers);
        if (!one->lengths || !one->answers)
            fail("memory");
    }
    if (ferror(file) || !feof(file))
        fail(path);
    fclose(file);
}

static void tell(int signal)
{
    (void)signal;
    for (size_t i = 0; i < done; i++) {
        static char line[64 + (MOST_QUESTIONS * (2 * ANSWER_BYTES + 1))];
        const struct change *one = &changes[i];
        size_t size = sprintf(line, "%lld %lld %d", (long long)one->at_ns, (long long)one->done_ns, one->error);
        for (size_t question = 0; question < one->questions; question++) {
            line[size++] = ' ';
            if (!one->lengths[question])
                line[size++] = '-';
            for (size_t at = 0; at < one->lengths[question]; at++) {
                line[size++] = "0123456789abcdef"[one->answers[question][at] >> 4];
                line[size++] = "0123456789abcdef"[one->answers[question][at] & 15];
            }
        }
        line[size++] = '\n';
        for (size_t at = 0; at < size;) {
            ssize_t wrote = write(1, line + at, size - at);
            if (wrote <= 0)
                _exit(1);
            at += wrote;
        }
    }
    _exit(0);
}

/* Record an answer to a change or to one of its queries. */
static void take(struct change *change, const unsigned char *data, size_t size)
{
    const struct nlmsghdr *head = (const void *)data;
    if (size < sizeof *head)
        return;
    if (head->nlmsg_seq) {
        size_t at = head->nlmsg_seq - 1;
        if (at < change->questions) {
            change->lengths[at] = size < ANSWER_BYTES ? size : ANSWER_BYTES;
            memcpy(change->answers[at], data, change->lengths[at]);
        }
    } else if (head->nlmsg_type == NLMSG_ERROR && !change->error)
        change->error = -((const struct nlmsgerr *)NLMSG_DATA(head))->error;
}

/* Read the acknowledgements of all messages of a change and, with the last one, the answers to its queries. */
static void acknowledged(struct change *change)
{
    static unsigned char data[MOST_QUESTIONS + 1][ANSWER_BYTES];
    static struct iovec vectors[MOST_QUESTIONS + 1];
    static struct mmsghdr messages[MOST_QUESTIONS + 1];
    size_t wanted = 0, last = change->questions + 1;
    for (size_t at = 0; at < change->size; at += NLMSG_ALIGN(((struct nlmsghdr *)(change->bytes + at))->nlmsg_len))
        wanted++;
    if (change->unsent)
        return;
    for (wanted -= change->questions; wanted > 1; wanted--) {
        ssize_t got = recv(change->fd, data[0], ANSWER_BYTES, 0);
        if (got <= 0)
            fail("netlink");
        take(change, data[0], got);
    }
    for (size_t i = 0; i < last; i++) {
        vectors[i] = (struct iovec){data[i], ANSWER_BYTES};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
    }
    if (recvmmsg(change->fd, messages, last, 0, NULL) != (int)last)
        fail("netlink");
    for (size_t i = 0; i < last; i++)
        take(change, data[i], messages[i].msg_len);
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
    /* Run when a change is due, before everything else. */
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        fail("priority");
    sigaction(SIGTERM, &end, NULL);
    while (done < count) {
        struct change *change = &changes[done];
        int64_t early_ns = change->at_ns - CALL_NS, now = now_ns();
        struct timespec until = {early_ns / 1000000000, early_ns % 1000000000};
        if (now < early_ns) {
            /* Answers are read before a sleep, not between two changes at the same time. */
            for (; acknowledging < done; acknowledging++)
                acknowledged(&changes[acknowledging]);
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
                ;
        }
        change->done_ns = now_ns();
        if (send(change->fd, change->bytes, change->size, 0) != (ssize_t)change->size)
            change->unsent = change->error = errno;
        done++;
    }
    for (; acknowledging < done; acknowledging++)
        acknowledged(&changes[acknowledging]);
    tell(0);
}

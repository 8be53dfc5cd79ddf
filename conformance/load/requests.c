/* Make the requests of the far end of a group of flows: see flows.c. */
#define _GNU_SOURCE
#include "requests.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_REQUESTS = 1000 };

void fail(const char *what)
{
    fprintf(stderr, "flows: %s: %s\n", what, strerror(errno));
    exit(1);
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

void sleep_until(int64_t at_ns)
{
    struct timespec at = {.tv_sec = at_ns / SECOND, .tv_nsec = at_ns % SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

struct request { int64_t bytes, wait_ns, made_ns, first_ns, end_ns; bool pauses; };

/* One connection: one thread makes its requests, another receives the bodies. `there`: how many bodies are complete. */
struct asker {
    int fd, port, made, there;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct request *requests;
};

static struct asker *askers;
static struct request *plan;
static int request_count, asker_count;

void read_requests(const char *path)
{
    long long bytes;
    double wait_s;
    char how[8];
    FILE *file = fopen(path, "re");
    plan = calloc(MOST_REQUESTS, sizeof *plan);
    askers = calloc(MOST_FLOWS, sizeof *askers);
    if (!file || !plan || !askers)
        fail(path);
    while (request_count < MOST_REQUESTS && fscanf(file, "%lld %7s %lf", &bytes, how, &wait_s) == 3)
        plan[request_count++] = (struct request){
            .bytes = bytes, .wait_ns = (int64_t)(wait_s * SECOND + 0.5), .pauses = !strcmp(how, "pause")};
    fclose(file);
}

static void *make_requests(void *argument)
{
    struct asker *asker = argument;
    int64_t due_ns = now_ns();
    for (int i = 0; i < request_count; i++) {
        const struct request *before = i ? &asker->requests[i - 1] : NULL;
        if (before && before->pauses) {
            pthread_mutex_lock(&asker->lock);
            while (asker->there < i)
                pthread_cond_wait(&asker->changed, &asker->lock);
            pthread_mutex_unlock(&asker->lock);
            due_ns = before->end_ns;
        }
        due_ns += before ? before->wait_ns : 0;
        sleep_until(due_ns);
        asker->requests[i].made_ns = now_ns();
        asker->made = i + 1;
        if (send(asker->fd, &asker->requests[i].bytes, sizeof(int64_t), MSG_NOSIGNAL) < 0)
            break; /* the flow was stopped */
    }
    return NULL;
}

static void *take_bodies(void *argument)
{
    struct asker *asker = argument;
    char nothing; /* MSG_TRUNC: the kernel discards what arrives */
    for (int i = 0; i < request_count; i++) {
        struct request *request = &asker->requests[i];
        int64_t left = request->bytes;
        while (left > 0) {
            ssize_t got = recv(asker->fd, &nothing, left < 1 << 30 ? left : 1 << 30,
                               request->first_ns ? MSG_TRUNC | MSG_WAITALL : MSG_TRUNC);
            if (got <= 0)
                return NULL;
            if (!request->first_ns)
                request->first_ns = now_ns();
            left -= got;
        }
        request->end_ns = now_ns();
        pthread_mutex_lock(&asker->lock);
        asker->there = i + 1;
        pthread_cond_signal(&asker->changed);
        pthread_mutex_unlock(&asker->lock);
    }
    shutdown(asker->fd, SHUT_WR);
    return NULL;
}

void begin_asking(int fd, const struct sockaddr_in *from, const pthread_attr_t *small)
{
    struct asker *asker = &askers[asker_count];
    int on = 1;
    pthread_t threads[2];
    *asker = (struct asker){.fd = fd, .port = ntohs(from->sin_port), .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER, .requests = calloc(request_count, sizeof *plan)};
    if (!asker->requests)
        fail("calloc");
    memcpy(asker->requests, plan, request_count * sizeof *plan);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    asker_count++;
    if (pthread_create(&threads[0], small, take_bodies, asker) != 0 ||
        pthread_create(&threads[1], small, make_requests, asker) != 0)
        fail("pthread_create");
}

static void print_requests(void)
{
    for (int i = 0; i < asker_count; i++) {
        const struct asker *asker = &askers[i];
        printf("{\"port\": %d, \"requests\": [", asker->port);
        for (int j = 0; j < asker->made; j++) {
            const struct request *one = &asker->requests[j];
            printf("%s[%lld, %lld, %lld, %lld]", j ? ", " : "", (long long)one->bytes, (long long)one->made_ns,
                   (long long)one->first_ns, (long long)one->end_ns);
        }
        printf("]}\n");
    }
    fflush(stdout);
    _exit(0);
}

static void *await_end(void *argument)
{
    sigset_t end;
    int signal_number;
    (void)argument;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigwait(&end, &signal_number);
    print_requests();
    return NULL;
}

void print_requests_at_the_end(const pthread_attr_t *small)
{
    pthread_t thread;
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &end, NULL);
    if (pthread_create(&thread, small, await_end, NULL) != 0)
        fail("pthread_create");
}

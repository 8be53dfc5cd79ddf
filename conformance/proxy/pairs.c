/* Manage pairs of connections, and move bytes between them.
 *
 * The directions of a pair are independent: bytes go from one socket into a pipe and on to the other socket by
 * splice(2), neither inspected nor copied. An end of data (FIN) is passed on after all bytes before it; a reset ends
 * both sockets with resets. A socket is watched for what can be done with it now, and for a reset.
 */
#define _GNU_SOURCE
#include "splitter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENT, SERVER, PIPE_BYTES = 1 << 16, SEGMENT_BYTES = 1448, WELCOMES = 64, TURNS = 8 };

/* One socket of a pair, and the direction whose bytes come in by this socket and leave by the other one. */
struct side {
    struct pair *pair;
    int fd;             /* -1 when closed */
    bool watched;       /* epoll has it ... */
    uint32_t events;    /* ... for these events */
    uint32_t reported;  /* by epoll, when it last reported this socket */
    int pipe[2];        /* holds `held` bytes; -1 while there is no pipe */
    size_t held;
    bool urgent;        /* what is held is one byte, not in the pipe but here, that the peer sent as urgent */
    char urgent_byte;
    bool ended;         /* all that the peer sent has been read, and its FIN */
    bool passed_on;     /* that FIN has been sent on to the other side */
    bool paused;        /* not read until the other side's receiver acknowledges */
    bool overdue;       /* paused at the last retry(), and not tried since */
};

struct pair {
    struct side side[2];
    bool connected, dead;
    struct pair *next, *previous;
};

static int poller, listener;
static bool listening;
static struct pair all = {.next = &all, .previous = &all}, *graveyard;
static long open_pairs, most_pairs, paused_sides;
static struct { long connections, refused, resets, most_at_once; unsigned long long bytes[2]; } count;

static struct side *other(struct side *side)
{
    return &side->pair->side[side == &side->pair->side[CLIENT] ? SERVER : CLIENT];
}

static void listen_again(bool yes)
{
    struct epoll_event event = {.events = yes ? EPOLLIN : 0, .data.ptr = &listener};
    if (listening != yes && epoll_ctl(poller, EPOLL_CTL_MOD, listener, &event))
        fail("epoll_ctl");
    listening = yes;
}

static void drop_pipe(struct side *side)
{
    if (side->pipe[0] >= 0)
        give_pipe_back(side->pipe, side->held == 0);
    side->held = 0;
}

static void pause_side(struct side *side, bool yes)
{
    paused_sides += yes - side->paused;
    side->paused = yes;
}

/* Close a pair, with a reset unless both directions have ended. */
static void end_pair(struct pair *pair, bool reset)
{
    for (int i = 0; i < 2; i++) {
        struct side *side = &pair->side[i];
        if (side->fd >= 0 && reset)
            reset_on_close(side->fd, true);
        if (side->fd >= 0)
            close(side->fd);
        side->fd = -1;
        drop_pipe(side);
        pause_side(side, false);
    }
    count.resets += reset;
    pair->dead = true;
    pair->next->previous = pair->previous;
    pair->previous->next = pair->next;
    /* Events of this round may still point at the pair. */
    pair->next = graveyard;
    graveyard = pair;
}

void bury(void)
{
    while (graveyard) {
        struct pair *pair = graveyard;
        graveyard = pair->next;
        free(pair);
        open_pairs--;
        listen_again(true);
    }
}

/* Tell epoll what to report about this socket. It always reports a socket that is reset or closed in both directions.
   It would go on reporting the latter for a socket that is shut for writing, but not read because its data have nowhere
   to go yet: such a socket is watched edge-triggered, for a reset. */
static void watch(struct side *side)
{
    struct side *to = other(side);
    uint32_t wanted = 0;
    if (side->fd < 0)
        return;
    if (!side->pair->connected)
        wanted = side == &side->pair->side[SERVER] ? EPOLLOUT : 0;
    else
        wanted = (!side->ended && !side->held && !side->paused ? EPOLLIN | EPOLLPRI | EPOLLRDHUP : 0) | (to->held ? EPOLLOUT : 0);
    if (!wanted && to->passed_on)
        wanted = EPOLLET;
    struct epoll_event event = {.events = wanted, .data.ptr = side};
    if (side->watched && wanted == side->events)
        return;
    if (epoll_ctl(poller, side->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, side->fd, &event))
        fail("epoll_ctl");
    side->watched = true;
    side->events = wanted;
}

/* Return how many bytes may be read for this receiver now. */
static size_t room(struct side *to)
{
    int limit = option.back_pressure_bytes, unacknowledged = 0;
    if (!limit)
        return PIPE_BYTES;
    ioctl(to->fd, SIOCOUTQ, &unacknowledged);
    int left = limit - unacknowledged;
    /* Avoid silly windows (RFC 1122, 4.2.3.4): read at least a segment, or half of the limit. */
    if (left < (limit / 2 < SEGMENT_BYTES ? limit / 2 : SEGMENT_BYTES))
        return 0;
    return left < PIPE_BYTES ? left : PIPE_BYTES;
}

/* Read at most so many bytes, as splice(2) does. That stops before an urgent byte, and then returns what it would return
   if there were none: EAGAIN, or 0 after a FIN. So read this byte alone, and believe in an end that epoll has reported
   without an urgent byte. */
static ssize_t take(struct side *from, size_t most)
{
    int at_mark = 0;
    ssize_t got = splice(from->fd, NULL, from->pipe[1], NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (got > 0 || (got < 0 && errno != EAGAIN))
        return got;
    if (from->reported & EPOLLPRI && ioctl(from->fd, SIOCATMARK, &at_mark) == 0 && at_mark) {
        got = recv(from->fd, &from->urgent_byte, 1, MSG_DONTWAIT);
        from->urgent = got > 0;
    } else if (got == 0 && !(from->reported & EPOLLRDHUP)) {
        got = -1;
        errno = EAGAIN;
    }
    return got;
}

static ssize_t put(struct side *from, struct side *to)
{
    if (from->urgent)
        return send(to->fd, &from->urgent_byte, 1, MSG_OOB | MSG_DONTWAIT);
    return splice(from->pipe[0], NULL, to->fd, NULL, from->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

/* Return whether neither direction of a pair has been read for a while. Then each may wait for the other: Linux 6.17 and
   later drop a packet that ends beyond a full receive buffer, with the acknowledgement that the other direction needs. */
static bool stuck(struct side *side)
{
    struct side *back = other(side);
    return side->overdue && (back->paused || back->held);
}

/* Move what came in at `from` to the other side, as far as that accepts it. Return false if the pair must be reset. */
static bool pump(struct side *from)
{
    struct side *to = other(from);
    bool more = true, drains = stuck(from);
    from->overdue = false;
    for (int turn = 0; more && turn < TURNS && !from->passed_on; turn++) {
        more = false;
        if (!from->held && !from->ended) {
            size_t most = drains ? PIPE_BYTES : room(to);
            drains = false;
            pause_side(from, most == 0);
            if (from->paused)
                return true;
            if (from->pipe[0] < 0 && !take_pipe(from->pipe))
                return false;
            ssize_t got = take(from, most);
            if (got < 0 && errno != EAGAIN && errno != EINTR)
                return false;
            from->ended = got == 0;
            from->held = got > 0 ? got : 0;
            more = (size_t)from->held == most;
            count.bytes[from == &from->pair->side[CLIENT] ? SERVER : CLIENT] += from->held;
        }
        if (from->held) {
            ssize_t sent = put(from, to);
            if (sent < 0 && errno != EAGAIN && errno != EINTR)
                return false;
            from->held -= sent > 0 ? sent : 0;
        }
        if (from->held)
            return true;
        from->urgent = false;
        drop_pipe(from);
        if (from->ended) {
            if (shutdown(to->fd, SHUT_WR))
                return false;
            from->passed_on = true;
        }
    }
    return true;
}

/* After an event, close the sockets that are done, and watch the others. */
static void settle(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        struct side *side = &pair->side[i];
        if (side->fd >= 0 && side->passed_on && other(side)->passed_on) {
            reset_on_close(side->fd, false);
            close(side->fd);
            side->fd = -1;
        }
        watch(side);
    }
    if (pair->side[CLIENT].fd < 0 && pair->side[SERVER].fd < 0)
        end_pair(pair, false);
}

static void something_happened(struct side *side, uint32_t events)
{
    struct pair *pair = side->pair;
    struct side *back = other(side);
    if (pair->dead)
        return;
    if (events)
        side->reported = events;
    if (events & EPOLLERR && option.back_pressure_bytes)
        read_notes(side->fd);
    if ((events & EPOLLERR || !pair->connected) && error_of(side->fd)) {
        end_pair(pair, true);
        return;
    }
    if (!pair->connected)
        pair->connected = side == &pair->side[SERVER] && events & EPOLLOUT;
    bool well = true;
    if (pair->connected && (events & (EPOLLIN | EPOLLPRI | EPOLLHUP) || side->paused))
        well = pump(side);
    if (pair->connected && well && (events & EPOLLOUT || back->paused))
        well = pump(back);
    if (well)
        settle(pair);
    else
        end_pair(pair, true);
}

bool waits(void)
{
    return paused_sides || (!listening && open_pairs < most_pairs);
}

/* Try again without an event: under memory pressure, the kernel refuses connections and drops its notifications. */
void retry(bool all_of_them)
{
    if (open_pairs < most_pairs)
        listen_again(true);
    for (struct pair *pair = all.next, *next; pair != &all; pair = next) {
        next = pair->next;
        for (int i = 0; i < 2; i++) {
            struct side *side = &pair->side[i];
            if (side->paused && (all_of_them || side->overdue))
                something_happened(side, 0);
            side->overdue = side->paused;
        }
    }
}

static void welcome(void)
{
    for (int i = 0; i < WELCOMES && listening; i++) {
        struct sockaddr_in client, server;
        socklen_t size = sizeof client;
        int fd = accept4(listener, (struct sockaddr *)&client, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            /* Out of descriptors or memory: stop listening for now, or epoll would report the same again at once. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                listen_again(false);
            return;
        }
        struct pair *pair = calloc(1, sizeof *pair);
        size = sizeof server;
        if (!pair || getsockname(fd, (struct sockaddr *)&server, &size) || is_ours(server)) {
            count.refused++;
            close(fd);
            free(pair);
            continue;
        }
        for (int j = 0; j < 2; j++)
            pair->side[j] = (struct side){.pair = pair, .fd = j == CLIENT ? fd : -1, .pipe = {-1, -1}};
        pair->next = all.next;
        pair->previous = &all;
        all.next->previous = pair;
        all.next = pair;
        count.connections++;
        if (++open_pairs > count.most_at_once)
            count.most_at_once = open_pairs;
        if (open_pairs >= most_pairs)
            listen_again(false);
        pair->side[SERVER].fd = connected_socket(&client, &server);
        if (pair->side[SERVER].fd >= 0)
            settle(pair);
        else
            end_pair(pair, true);
    }
}

void begin(int epoll_fd, int listener_fd, long most)
{
    poller = epoll_fd;
    listener = listener_fd;
    most_pairs = most;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event))
        fail("epoll_ctl");
    listening = true;
}

void happened(void *what, uint32_t events)
{
    if (what == &listener)
        welcome();
    else
        something_happened(what, events);
}

void end_all(void)
{
    while (all.next != &all)
        end_pair(all.next, true);
    printf("{\"connections\": %ld, \"refused\": %ld, \"resets\": %ld, \"most_at_once\": %ld,"
           " \"bytes_to_client\": %llu, \"bytes_to_server\": %llu}\n",
           count.connections, count.refused, count.resets, count.most_at_once, count.bytes[CLIENT], count.bytes[SERVER]);
}

/* What the parts of the splitter share: main.c is the process, pairs.c the connections,
 * sockets.c what these are made of. */
#ifndef SPLITTER_H
#define SPLITTER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct options {
    const char *to_client, *to_server; /* congestion control on either side; NULL: the kernel's default */
    int port, send_bytes, receive_bytes, unsent_bytes, back_pressure_bytes, user;
};
extern struct options option;

void fail(const char *what);

/* --- sockets.c */

/* Set a socket's options; what could not be set, or NULL. Accepted connections inherit all of them from the listener. */
const char *prepare(int fd, const char *congestion_control);
/* A socket that is being connected, with somebody else's address; -1 where that cannot be. */
int connected_socket(const struct sockaddr_in *from, const struct sockaddr_in *to);
/* Whether this address is this machine's own: what is connected to there would come back to us, for ever. */
bool is_ours(struct sockaddr_in address);
int error_of(int fd);
void reset_on_close(int fd, bool yes);
/* The kernel's notes that bytes were acknowledged: only that there is one matters. */
void read_notes(int fd);
bool take_pipe(int pipe[2]);
void give_pipe_back(int pipe[2], bool empty);

/* --- pairs.c */

/* Take connections from this listener, at most so many at a time, and tell this epoll of their sockets. */
void begin(int epoll_fd, int listener_fd, long most_pairs);
/* An event of epoll's, and its data. */
void happened(void *what, uint32_t events);
/* After each round of events. */
void bury(void);
/* Whether something waits for what no event may tell, so that retry() should be called now and then. */
bool waits(void);
void retry(void);
/* Reset all connections and print what went through, as a line of JSON. */
void end_all(void);

#endif

/* Declarations shared by the parts of the splitter: main.c has the process, pairs.c the connections, and sockets.c the
   sockets and pipes of these. */
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

/* Set a socket's options. Return what failed, or NULL. Accepted connections inherit all options from the
   listener. */
const char *prepare(int fd, const char *congestion_control);
/* Let the kernel reset a connection when this process dies, so that it does not look complete; and keep urgent bytes in
   line. Called while the handshake lasts, so that it takes no time from it. */
void prepare_ends(int fd);
/* Return a socket that is connecting to `to` with `from`, another host's address; -1 if that is impossible. */
int connected_socket(const struct sockaddr_in *from, const struct sockaddr_in *to);
/* Return whether this address is this machine's own: a connection to it would come back to the splitter, forever. */
bool is_ours(struct sockaddr_in address);
int error_of(int fd);
void reset_on_close(int fd, bool yes);
/* Discard the kernel's notifications that bytes were acknowledged: only that there is one matters. */
void read_notes(int fd);
bool take_pipe(int pipe[2]);
void give_pipe_back(int pipe[2], bool empty);

/* --- pairs.c */

/* Accept connections from this listener, at most `most_pairs` at a time, and add their sockets to this epoll. */
void begin(int epoll_fd, int listener_fd, long most_pairs);
/* Handle an event of epoll, given its data and its events. */
void happened(void *what, uint32_t events);
/* Free pairs that have ended. Call this after each round of events. */
void bury(void);
/* Return whether something waits that no event may announce, so that retry() should be called now and then. */
bool waits(void);
/* Try what waits: all of it, or only what had no event since the last call. */
void retry(bool all);
/* Reset all connections and print what went through, as a line of JSON. */
void end_all(void);

#endif

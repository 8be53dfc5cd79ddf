/* Prepare the splitter's sockets, and the pipes through which bytes go from one to the other. */
#define _GNU_SOURCE
#include "splitter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SPARE_PIPES = 64 };

static int spare[SPARE_PIPES][2], spares;

static bool set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

const char *prepare(int fd, const char *congestion_control)
{
    const int notes = SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;
    if (!set(fd, SOL_IP, IP_TRANSPARENT, 1))
        return "cannot set IP_TRANSPARENT, which needs CAP_NET_ADMIN";
    if (congestion_control && setsockopt(fd, SOL_TCP, TCP_CONGESTION, congestion_control, strlen(congestion_control)))
        return congestion_control;
    if (!set(fd, SOL_SOCKET, SO_REUSEADDR, 1) || !set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) || !set(fd, SOL_TCP, TCP_NODELAY, 1) ||
        (option.send_bytes && !set(fd, SOL_SOCKET, SO_SNDBUF, option.send_bytes)) ||
        (option.receive_bytes && !set(fd, SOL_SOCKET, SO_RCVBUF, option.receive_bytes)) ||
        (option.unsent_bytes && !set(fd, SOL_TCP, TCP_NOTSENT_LOWAT, option.unsent_bytes)) ||
        (option.back_pressure_bytes && !set(fd, SOL_SOCKET, SO_TIMESTAMPING, notes)))
        return "cannot set a socket's options";
    return NULL;
}

void prepare_ends(int fd)
{
    reset_on_close(fd, true);
    set(fd, SOL_SOCKET, SO_OOBINLINE, 1);
}

int connected_socket(const struct sockaddr_in *from, const struct sockaddr_in *to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (!prepare(fd, option.to_server) && bind(fd, (const struct sockaddr *)from, sizeof *from) == 0 &&
        (connect(fd, (const struct sockaddr *)to, sizeof *to) == 0 || errno == EINPROGRESS)) {
        prepare_ends(fd);
        return fd;
    }
    close(fd);
    return -1;
}

int error_of(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
}

bool is_ours(struct sockaddr_in to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_port = 0;
    bool ours = fd >= 0 && bind(fd, (struct sockaddr *)&to, sizeof to) == 0;
    close(fd);
    return ours;
}

void reset_on_close(int fd, bool yes)
{
    struct linger at_once = {.l_onoff = yes, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void read_notes(int fd)
{
    struct msghdr empty = {0};
    while (recvmsg(fd, &empty, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
        empty = (struct msghdr){0};
}

bool take_pipe(int pipe[2])
{
    if (!spares)
        return pipe2(pipe, O_NONBLOCK | O_CLOEXEC) == 0;
    memcpy(pipe, spare[--spares], sizeof spare[0]);
    return true;
}

void give_pipe_back(int pipe[2], bool empty)
{
    if (empty && spares < SPARE_PIPES) {
        memcpy(spare[spares++], pipe, sizeof spare[0]);
    } else {
        close(pipe[0]);
        close(pipe[1]);
    }
    pipe[0] = pipe[1] = -1;
}

/* The one program of an image in the QUIC interop runner's shape, for tests: it keeps to the runner's environment,
 * but sends its datagrams at a fixed pace and in the clear, and knows nothing of QUIC. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 443, PAYLOAD = 1200, PACE_US = 2000 };

static void need(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static int server(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)}, peer;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    need(bind(s, (struct sockaddr *)&here, sizeof(here)) == 0, "bind");
    for (;;) {
        char request[64] = {0}, path[128], data[PAYLOAD];
        socklen_t length = sizeof(peer);
        need(recvfrom(s, request, sizeof(request) - 1, 0, (struct sockaddr *)&peer, &length) > 0, "recvfrom");
        snprintf(path, sizeof(path), "%s/%s", getenv("WWW"), request);
        FILE *body = fopen(path, "r");
        need(body != NULL, path);
        for (size_t n; (n = fread(data, 1, sizeof(data), body)) > 0; usleep(PACE_US))
            sendto(s, data, n, 0, (struct sockaddr *)&peer, length);
        sendto(s, "", 0, 0, (struct sockaddr *)&peer, length);
        fclose(body);
    }
}

static int connected(const char *host, const char *port, int type) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = type}, *found;
    need(getaddrinfo(host, port, &hints, &found) == 0, host);
    int s = socket(AF_INET, type, 0);
    need(connect(s, found->ai_addr, found->ai_addrlen) == 0, host);
    return s;
}

static int client(void) {
    char host[64], port[8], name[64], path[128], data[PAYLOAD];
    need(sscanf(getenv("REQUESTS"), "https://%63[^:]:%7[0-9]/%63[0-9]", host, port, name) == 3, "REQUESTS");
    close(connected("sim", "57832", SOCK_STREAM)); /* as images do, to wait for the network */
    int s = connected(host, port, SOCK_DGRAM);
    snprintf(path, sizeof(path), "%s/%s", getenv("DOWNLOADS"), name);
    FILE *body = fopen(path, "w");
    need(body != NULL, path);
    need(send(s, name, strlen(name), 0) > 0, "send");
    for (ssize_t n; (n = recv(s, data, sizeof(data), 0)) > 0;)
        fwrite(data, 1, (size_t)n, body);
    return fclose(body);
}

int main(void) {
    char certificate[128];
    if (strcmp(getenv("TESTCASE"), "transfer") != 0)
        return 127;
    snprintf(certificate, sizeof(certificate), "%s/%s", getenv("CERTS"), "cert.pem");
    need(access(certificate, R_OK) == 0, certificate);
    need(access(getenv("QLOGDIR"), W_OK) == 0, "QLOGDIR");
    return strcmp(getenv("ROLE"), "server") == 0 ? server() : client();
}

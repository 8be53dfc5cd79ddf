/* Read what the client is asked for from the variables of the contract (docs/contract.md). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

enum { OPTIONS_CHARACTERS = 15 * 5 };
/* what a transport parameter can say of the longest delay (RFC 9000, 18.2) */
static const double MOST_DELAY_S = 16.383, MOST_WINDOW = 1LL << 60;

struct plan plan = {.migrate_ns = UINT64_MAX};

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    if (!text)
        fail("%s is not set", name);
    return text;
}

/* Reads one of the variables of version 3; with any of them, the report lists the connections. */
static const char *extra(const char *name)
{
    const char *text = getenv(name);
    plan.has_connections |= text != NULL;
    return text;
}

static uint64_t ns(double seconds)
{
    return seconds * NGTCP2_SECONDS + 0.5;
}

static double number(const char *name, double otherwise)
{
    const char *text = extra(name);
    char *end;
    double number = text ? strtod(text, &end) : otherwise;
    if (text && (!*text || *end || !(number > 0) || number > 1e15))
        fail("%s must be a number above 0", name);
    return number;
}

static FILE *list(const char *path)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    if (path && !file)
        fail("cannot read %s: %s", path, strerror(errno));
    return file;
}

/* Whether a line of a list is there; reads it. */
static int next_line(FILE *file, char line[128])
{
    while (file && fgets(line, 128, file))
        if (strspn(line, " \t\n") < strlen(line))
            return 1;
    if (file)
        fclose(file);
    return 0;
}

/* Lines of the form at|after SECONDS new|resume. */
static void read_connections(void)
{
    FILE *file = list(extra("CC_CONNECTIONS"));
    char line[128], when[8], how[8], rest;
    double wait_s;
    if (!file)
        plan.connection_count = 1;
    while (next_line(file, line)) {
        struct connection *next = &plan.connections[plan.connection_count];
        if (plan.connection_count++ == MOST_CONNECTIONS)
            fail("CC_CONNECTIONS has more than %d lines", MOST_CONNECTIONS);
        if (sscanf(line, "%7s %lf %7s %c", when, &wait_s, how, &rest) != 3 || !(wait_s >= 0) || wait_s > 1e6 ||
            (strcmp(when, "at") && strcmp(when, "after")) || (strcmp(how, "new") && strcmp(how, "resume")))
            fail("line %d of CC_CONNECTIONS must be: at|after SECONDS new|resume", plan.connection_count);
        next->wait_ns = ns(wait_s);
        next->follows = !strcmp(when, "after");
        next->resumes = !strcmp(how, "resume");
        if (plan.connection_count == 1 && (next->follows || next->resumes))
            fail("line 1 of CC_CONNECTIONS must be: at SECONDS new");
    }
    if (!plan.connection_count)
        fail("CC_CONNECTIONS names no connection");
}

static void add_request(const struct request *request)
{
    struct connection *connection = &plan.connections[request->connection];
    struct request **last = &connection->first, *added = &plan.requests[plan.request_count];
    if (plan.request_count++ == MOST_REQUESTS)
        fail("more than %d requests are asked for", MOST_REQUESTS);
    while (*last)
        last = &(*last)->next;
    *added = *request;
    *last = added;
    connection->count++;
}

/* One body of CC_BYTES on each connection, or lines of the form BYTES pause|every SECONDS [CONNECTION]. */
static void read_requests(void)
{
    const char *path = getenv("CC_REQUESTS");
    FILE *file = list(path);
    struct request one = {0};
    char line[128], how[8], rest;
    plan.has_requests = path != NULL;
    if (!file) {
        if ((one.size = atol(setting("CC_BYTES"))) <= 0)
            fail("CC_BYTES must be a number above 0");
        for (; one.connection < plan.connection_count; one.connection++)
            add_request(&one);
    }
    while (next_line(file, line)) {
        double wait_s;
        one = (struct request){.connection = 1};
        int fields = sscanf(line, "%ld %7s %lf %d %c", &one.size, how, &wait_s, &one.connection, &rest);
        if ((fields != 3 && fields != 4) || one.size <= 0 || !(wait_s >= 0) || wait_s > 1e6 ||
            (strcmp(how, "pause") && strcmp(how, "every")))
            fail("line %d of CC_REQUESTS must be: BYTES pause|every SECONDS [CONNECTION]", plan.request_count + 1);
        if (one.connection < 1 || one.connection > plan.connection_count)
            fail("line %d of CC_REQUESTS names connection %d of %d", plan.request_count + 1, one.connection,
                 plan.connection_count);
        plan.has_connections |= fields == 4;
        one.connection--;
        one.wait_ns = ns(wait_s);
        one.pauses = !strcmp(how, "pause");
        add_request(&one);
    }
    for (int i = 0; i < plan.connection_count; i++)
        if (!plan.connections[i].count && plan.connection_count == 1)
            fail("%s asks for nothing", path);
        else if (!plan.connections[i].count)
            fail("%s asks for nothing on connection %d", path, i + 1);
}

/* packets N LONGEST_S, or rtt SHARE LONGEST_S */
static void read_acknowledgements(void)
{
    const char *text = extra("CC_ACKS");
    char how[8], rest;
    double count, longest_s;
    if (!text)
        return;
    if (sscanf(text, "%7s %lf %lf %c", how, &count, &longest_s, &rest) != 3 || !(count > 0) || count > 1e6 ||
        !(longest_s > 0) || longest_s > MOST_DELAY_S || (strcmp(how, "packets") && strcmp(how, "rtt")) ||
        (*how == 'p' && count != (size_t)count))
        fail("CC_ACKS must be: packets N LONGEST_S, or: rtt SHARE LONGEST_S");
    plan.acknowledgements.longest_ns = ns(longest_s);
    if (*how == 'p')
        plan.acknowledgements.packets = count;
    else
        plan.acknowledgements.share = count;
}

static void read_windows(void)
{
    const char *text = extra("CC_WINDOWS");
    double whole, stream;
    char rest;
    if (!text)
        return;
    if (sscanf(text, "%lf %lf %c", &whole, &stream, &rest) != 2 || !(whole >= 1 && whole <= MOST_WINDOW) ||
        !(stream >= 1 && stream <= MOST_WINDOW))
        fail("CC_WINDOWS must be: BYTES of a connection, BYTES of a stream");
    plan.connection_window = whole;
    plan.stream_window = stream;
}

void read_plan(void)
{
    const char *options = getenv("CC_CONNECTION_OPTIONS");
    plan.options = options ? options : "";
    if (*plan.options && (strlen(plan.options) >= OPTIONS_CHARACTERS || strlen(plan.options) % 5 != 4))
        fail("CC_CONNECTION_OPTIONS must be tags of four letters, with commas");
    plan.host = setting("CC_HOSTNAME");
    plan.port = setting("CC_PORT");
    plan.address = setting("CC_ADDRESS");
    plan.authority = setting("CC_CA");
    read_connections();
    read_requests();
    read_acknowledgements();
    read_windows();
    if (extra("CC_MIGRATE_S"))
        plan.migrate_ns = ns(number("CC_MIGRATE_S", 0));
    plan.idle_ns = ns(number("CC_IDLE_S", 0));
    plan.stop_bytes = number("CC_STOP_BYTES", 0);
    plan.read_bytes_per_s = number("CC_READ_BYTES_PER_S", 0);
}

uint64_t longest_wait_ns(const struct connection *connection)
{
    uint64_t longest = 0;
    for (const struct request *request = connection->first; request; request = request->next)
        longest = request->wait_ns > longest ? request->wait_ns : longest;
    return longest;
}

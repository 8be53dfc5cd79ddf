/* my-stack as HTTPS server and client: one program with the verbs of the adapter contract.
 * It works as it is, over the kernel's TCP. Put your own stack where a comment says YOUR STACK. */
#include "stack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* YOUR STACK: its own names for its congestion controls; adapter.json says which algorithm each of them is. */
static const char *const algorithms[] = {"cubic", "reno"};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

bool offered(const char *called)
{
    for (int i = 0; i < ALGORITHMS; i++)
        if (!strcmp(called, algorithms[i]))
            return true;
    return false;
}

static void describe(void)
{
    /* YOUR STACK: print every version that affects how it behaves. */
    printf("{\"version\": \"my-stack 0.1, OpenSSL %s\", \"algorithms\": [", OpenSSL_version(OPENSSL_VERSION_STRING));
    for (int i = 0; i < ALGORITHMS; i++)
        printf("%s\"%s\"", i ? ", " : "", algorithms[i]);
    puts("]}");
}

int main(int count, char **arguments)
{
    const char *verb = count == 2 ? arguments[1] : "";
    if (!strcmp(verb, "server"))
        serve();
    else if (!strcmp(verb, "client"))
        fetch();
    else if (!strcmp(verb, "describe"))
        describe();
    else
        fail(FAILED, "usage: stack server|client|describe");
    return 0;
}

void fail(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("my-stack: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(status);
}

const char *why(void)
{
    unsigned long code = ERR_peek_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    return reason ? reason : errno ? strerror(errno) : "the connection ended";
}

const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        fail(FAILED, "%s is not set", name);
    return value;
}

struct sockaddr_in endpoint(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(setting("CC_PORT")))};
    if (inet_pton(AF_INET, setting("CC_ADDRESS"), &at.sin_addr) != 1)
        fail(FAILED, "CC_ADDRESS is not an IPv4 address");
    return at;
}

static void log_secret(const SSL *tls, const char *line)
{
    (void)tls;
    FILE *file = fopen(setting("SSLKEYLOGFILE"), "a");
    if (!file)
        fail(FAILED, "cannot write to SSLKEYLOGFILE: %s", strerror(errno));
    fprintf(file, "%s\n", line);
    fclose(file);
}

SSL_CTX *tls_context(const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);
    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1)
        fail(FAILED, "cannot set up TLS: %s", why());
    if (getenv("SSLKEYLOGFILE"))
        SSL_CTX_set_keylog_callback(context, log_secret);
    return context;
}

int read_head(SSL *tls, char *head)
{
    int have = 0, got;
    while (have < HEAD_BYTES && (got = SSL_read(tls, head + have, HEAD_BYTES - have)) > 0) {
        have += got;
        head[have] = '\0';
        char *end = strstr(head, "\r\n\r\n");
        if (end)
            return have - (end + 4 - head);
    }
    return -1;
}

/* Fetch https://CC_HOSTNAME:CC_PORT/CC_BYTES over HTTP/3, or on one connection what the lines of CC_REQUESTS ask for, and
 * print what it took as one JSON line.
 *
 * The common client of every QUIC server here, on Debian's ngtcp2, nghttp3 and GnuTLS. In virtual time a trial's cost
 * is its system calls, so a wake-up makes few: one recvmmsg that waits and takes all that has arrived, one clock reading
 * (no call), one send where something is to be said. On the wire it is a plain RFC 9000 receiver: an ACK for every
 * second packet (one for all that arrived together), of one packet after an eighth of the RTT, at once after a gap or
 * a CE mark, and windows that never hold a sender back.
 * The clock starts before the first packet and stops at the end of the last body.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#if NGTCP2_VERSION_NUM < 0x010000 /* Debian 12's has older names */
#define ngtcp2_ccerr ngtcp2_connection_close_error
#define ngtcp2_ccerr_set_application_error ngtcp2_connection_close_error_set_application_error
#define ngtcp2_conn_decode_and_set_remote_transport_params ngtcp2_conn_decode_remote_transport_params

static const ngtcp2_ccerr *ngtcp2_conn_get_ccerr(ngtcp2_conn *quic)
{
    static ngtcp2_ccerr theirs;
    ngtcp2_conn_get_connection_close_error(quic, &theirs);
    return &theirs;
}
#endif

/* The libraries pass a callback more than it needs. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { BATCH = 32, DATAGRAM_BYTES = 1500, CONTROL_BYTES = CMSG_SPACE(sizeof(int)), BUFFER_BYTES = 8 << 20 };
enum { WINDOW_BYTES = 1 << 30, SERVER_STREAMS = 16, CONNECTION_ID_BYTES = 16 };
enum { CONNECTION_OPTIONS = 0x3128, OPTIONS_CHARACTERS = 15 * 5 };
/* How long a receive waits by itself, in ticks of the system (1 ms in guests): long; or short, once ROW wake-ups have
 * come faster than that. At 10 Mbit/s, packets are 1.2 ms apart. */
enum { TIMEOUT_S = 30, LONG_TICKS = 20, SHORT_TICKS = 2, ROW = 16 };
/* How long a request waits for a stream, with no other under way, until the server is taken to allow no more. */
enum { MOST_REQUESTS = 1000, PATIENCE_S = 5 };

/* One request: the next one comes so long after the bodies so far are there (`pauses`), or after this one was due. */
struct request {
    long size, received;
    uint64_t wait_ns, made_ns, first_ns, end_ns;
    int64_t stream;
    int pauses;
};

/* The one fetch there is, so callbacks find it here. They note a problem, which is told when the library returns. */
static struct {
    int fd;
    ngtcp2_path path;
    ngtcp2_conn *quic;
    nghttp3_conn *http;
    gnutls_session_t tls;
    const char *host, *port, *options;
    uint64_t start_ns, now_ns, handshake_ns; /* now: at the last wake-up */
    uint64_t tick_ns, block_ns, waited_ns;   /* block: the socket's timeout; waited: for the last wake-up */
    int in_row;                              /* wake-ups that came within SHORT_TICKS */
    struct request *requests;
    int count, made, there;                /* requests in all, made, and answered in full */
    uint64_t due_ns, blocked_ns;           /* the next one's time, UINT64_MAX: not known yet; since when it has no stream */
    long size, received;
    char problem[160];
} fetch;

#define PROBLEM(...) (snprintf(fetch.problem, sizeof fetch.problem, __VA_ARGS__), NGTCP2_ERR_CALLBACK_FAILURE)
#define FIELD(name, value) {(uint8_t *)(name), (uint8_t *)(value), strlen(name), strlen(value), NGHTTP3_NV_FLAG_NONE}

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        fail("%s is not set", name);
    return value;
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NGTCP2_SECONDS + now.tv_nsec;
}

static uint64_t tick_ns(void)
{
    struct timespec tick;
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return tick.tv_nsec;
}

static const char *why(int error)
{
    unsigned status = gnutls_session_get_verify_cert_status(fetch.tls);
    gnutls_datum_t text;
    if (*fetch.problem)
        return fetch.problem;
    if (error == NGTCP2_ERR_IDLE_CLOSE || error == NGTCP2_ERR_HANDSHAKE_TIMEOUT)
        return "no answer";
    if (error == NGTCP2_ERR_CRYPTO && status && status != (unsigned)-1 &&
        !gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0))
        return (const char *)text.data;
    if (error != NGTCP2_ERR_DRAINING)
        return ngtcp2_strerror(error);
    snprintf(fetch.problem, sizeof fetch.problem, "the server closed the connection (0x%lx)",
             ngtcp2_conn_get_ccerr(fetch.quic)->error_code);
    return fetch.problem;
}

static void check(int error)
{
    if (error)
        fail("failed after %ld of %ld bytes: %s", fetch.received, fetch.size, why(error));
}

static void consumed(int64_t stream, size_t length)
{
    ngtcp2_conn_extend_max_stream_offset(fetch.quic, stream, length);
    ngtcp2_conn_extend_max_offset(fetch.quic, length);
}

static int got_header(nghttp3_conn *http, int64_t stream, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value,
                      uint8_t flags, void *user, void *stream_user)
{
    const char *status = (const char *)nghttp3_rcbuf_get_buf(value).base;
    int is_bad = token == NGHTTP3_QPACK_TOKEN__STATUS && atoi(status) >= 200 && strcmp(status, "200");
    return is_bad ? PROBLEM("the server answered %s", status) : 0;
}

static int got_body(nghttp3_conn *http, int64_t stream, const uint8_t *data, size_t length, void *user,
                    void *stream_user)
{
    struct request *request = stream_user, *last = &fetch.requests[fetch.made - 1];
    if (!request->received)
        request->first_ns = fetch.now_ns;
    request->received += length;
    fetch.received += length;
    consumed(stream, length);
    if (request->received >= request->size && !request->end_ns) {
        request->end_ns = fetch.now_ns;
        fetch.there++;
        if (last->pauses && fetch.there == fetch.made)
            fetch.due_ns = fetch.now_ns + last->wait_ns;
    }
    return 0;
}

static int got_end(nghttp3_conn *http, int64_t stream, void *user, void *stream_user)
{
    struct request *request = stream_user;
    return request->received < request->size ? PROBLEM("the body ended") : 0;
}

/* Makes the next request; whether there is a stream for it. */
static int make_request(void)
{
    struct request *request = &fetch.requests[fetch.made];
    char authority[300], path[32];
    snprintf(authority, sizeof authority, "%s:%s", fetch.host, fetch.port);
    snprintf(path, sizeof path, "/%ld", request->size);
    nghttp3_nv head[] = {FIELD(":method", "GET"), FIELD(":scheme", "https"), FIELD(":authority", authority),
                         FIELD(":path", path)};
    if (ngtcp2_conn_open_bidi_stream(fetch.quic, &request->stream, NULL))
        return 0;
    if (nghttp3_conn_submit_request(fetch.http, request->stream, head, sizeof head / sizeof *head, NULL, request))
        fail("cannot make the request");
    request->made_ns = fetch.now_ns;
    fetch.due_ns = request->pauses ? UINT64_MAX : fetch.due_ns + request->wait_ns;
    fetch.made++;
    return 1;
}

/* Makes the requests that are due. */
static void make_requests(void)
{
    while (fetch.http && fetch.made < fetch.count && fetch.due_ns <= fetch.now_ns) {
        if (!make_request()) {
            if (!fetch.blocked_ns)
                fetch.blocked_ns = fetch.now_ns;
            if (fetch.there == fetch.made && fetch.now_ns - fetch.blocked_ns >= PATIENCE_S * NGTCP2_SECONDS)
                fail("the server allows %d requests on a connection, %d are to be made", fetch.made, fetch.count);
            return;
        }
        fetch.blocked_ns = 0;
    }
}

/* When there is something to do though nothing arrives. */
static uint64_t next_deadline_ns(void)
{
    uint64_t quic_ns = ngtcp2_conn_get_expiry(fetch.quic), own_ns = UINT64_MAX;
    if (fetch.http && fetch.made < fetch.count)
        own_ns = fetch.blocked_ns ? fetch.blocked_ns + PATIENCE_S * NGTCP2_SECONDS : fetch.due_ns;
    /* Blocked with others under way: what arrives ends that. */
    if (own_ns <= fetch.now_ns)
        own_ns = UINT64_MAX;
    return own_ns < quic_ns ? own_ns : quic_ns;
}

/* Called when the handshake is done, as what the server says next may be in the same datagram. */
static int ask(ngtcp2_conn *quic, void *user)
{
    static const nghttp3_callbacks calls = {.recv_header = got_header, .recv_data = got_body, .end_stream = got_end};
    int64_t control, encoder, decoder;
    nghttp3_settings settings;
    gnutls_datum_t protocol;
    fetch.handshake_ns = fetch.due_ns = fetch.now_ns;
    if (gnutls_alpn_get_selected_protocol(fetch.tls, &protocol))
        fail("the server does not speak HTTP/3");
    if (ngtcp2_conn_open_uni_stream(quic, &control, NULL) || ngtcp2_conn_open_uni_stream(quic, &encoder, NULL) ||
        ngtcp2_conn_open_uni_stream(quic, &decoder, NULL))
        fail("the server does not allow the streams that HTTP/3 needs");
    nghttp3_settings_default(&settings);
    if (nghttp3_conn_client_new(&fetch.http, &calls, &settings, NULL, NULL) ||
        nghttp3_conn_bind_control_stream(fetch.http, control) ||
        nghttp3_conn_bind_qpack_streams(fetch.http, encoder, decoder))
        fail("cannot set up HTTP/3");
    if (!make_request())
        fail("the server does not allow the streams that HTTP/3 needs");
    return 0;
}

static int got_stream(ngtcp2_conn *quic, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *data,
                      size_t length, void *user, void *stream_user)
{
    int is_last = flags & NGTCP2_STREAM_DATA_FLAG_FIN;
    nghttp3_ssize used = nghttp3_conn_read_stream(fetch.http, stream, data, length, is_last);
    if (used < 0)
        return *fetch.problem ? NGTCP2_ERR_CALLBACK_FAILURE : PROBLEM("%s", nghttp3_strerror(used));
    consumed(stream, used);
    return 0;
}

static int got_reset(ngtcp2_conn *quic, int64_t stream, uint64_t size, uint64_t code, void *user, void *stream_user)
{
    for (int i = 0; i < fetch.made; i++)
        if (fetch.requests[i].stream == stream && !fetch.requests[i].end_ns)
            return PROBLEM("the server reset the stream (0x%lx)", code);
    return 0;
}

static void random_bytes(uint8_t *to, size_t length, const ngtcp2_rand_ctx *context)
{
    if (gnutls_rnd(GNUTLS_RND_NONCE, to, length))
        fail("no random bytes");
}

/* Never called: our connection ID is empty, as the socket has one connection and stays where it is. */
static int no_connection_id(ngtcp2_conn *quic, ngtcp2_cid *id, uint8_t *token, size_t length, void *user)
{
    return NGTCP2_ERR_CALLBACK_FAILURE;
}

static uint64_t longest_wait_ns(void)
{
    uint64_t longest = 0;
    for (int i = 0; i < fetch.count; i++)
        longest = fetch.requests[i].wait_ns > longest ? fetch.requests[i].wait_ns : longest;
    return longest;
}

static void prepare_quic(void)
{
    static const ngtcp2_callbacks callbacks = {
        .client_initial = ngtcp2_crypto_client_initial_cb,
        .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
        .encrypt = ngtcp2_crypto_encrypt_cb,
        .decrypt = ngtcp2_crypto_decrypt_cb,
        .hp_mask = ngtcp2_crypto_hp_mask_cb,
        .recv_retry = ngtcp2_crypto_recv_retry_cb,
        .update_key = ngtcp2_crypto_update_key_cb,
        .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
        .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
        .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
        .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
        .rand = random_bytes,
        .get_new_connection_id = no_connection_id,
        .handshake_completed = ask,
        .recv_stream_data = got_stream,
        .stream_reset = got_reset,
    };
    ngtcp2_cid server_id = {.datalen = CONNECTION_ID_BYTES}, client_id = {.datalen = 0};
    ngtcp2_settings settings;
    ngtcp2_transport_params parameters;
    ngtcp2_settings_default(&settings);
    settings.initial_ts = fetch.now_ns;
    settings.handshake_timeout = TIMEOUT_S * NGTCP2_SECONDS;
    ngtcp2_transport_params_default(&parameters);
    parameters.initial_max_data = parameters.initial_max_stream_data_bidi_local = WINDOW_BYTES;
    parameters.initial_max_stream_data_uni = WINDOW_BYTES;
    parameters.initial_max_streams_uni = SERVER_STREAMS;
    parameters.max_idle_timeout = TIMEOUT_S * NGTCP2_SECONDS + longest_wait_ns();
    parameters.max_udp_payload_size = DATAGRAM_BYTES;
    random_bytes(server_id.data, server_id.datalen, NULL);
    if (ngtcp2_conn_client_new(&fetch.quic, &server_id, &client_id, &fetch.path, NGTCP2_PROTO_VER_V1, &callbacks,
                               &settings, &parameters, NULL, NULL))
        fail("cannot set up QUIC");
    ngtcp2_conn_set_tls_native_handle(fetch.quic, fetch.tls);
}

/* Google's connection options, by which a client chooses a QUICHE server's algorithm: a transport parameter, tags in a
 * row. ngtcp2 sends none but its own; with GnuTLS they are a TLS extension, so one of ours can send both. */
static int send_parameters(gnutls_session_t tls, gnutls_buffer_t to)
{
    uint8_t bytes[512];
    ngtcp2_ssize used = ngtcp2_conn_encode_local_transport_params(fetch.quic, bytes, sizeof bytes - OPTIONS_CHARACTERS);
    if (used < 0)
        return GNUTLS_E_INTERNAL_ERROR;
    bytes[used++] = 0x40 | CONNECTION_OPTIONS >> 8; /* a number of two bytes, then one of one */
    bytes[used++] = CONNECTION_OPTIONS & 0xff;
    bytes[used++] = (strlen(fetch.options) + 1) / 5 * 4;
    for (const char *letter = fetch.options; *letter; letter++)
        if (*letter != ',')
            bytes[used++] = *letter;
    return gnutls_buffer_append_data(to, bytes, used);
}

static int got_parameters(gnutls_session_t tls, const unsigned char *data, size_t length)
{
    return ngtcp2_conn_decode_and_set_remote_transport_params(fetch.quic, data, length) ? GNUTLS_E_INTERNAL_ERROR : 0;
}

static ngtcp2_conn *get_quic(ngtcp2_crypto_conn_ref *reference)
{
    return fetch.quic;
}

static void prepare_tls(const char *ca)
{
    static ngtcp2_crypto_conn_ref reference = {.get_conn = get_quic};
    static const gnutls_datum_t http3 = {(unsigned char *)"h3", 2};
    static const char versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:%DISABLE_TLS13_COMPAT_MODE";
    gnutls_certificate_credentials_t trusted;
    gnutls_certificate_allocate_credentials(&trusted);
    if (gnutls_certificate_set_x509_trust_file(trusted, ca, GNUTLS_X509_FMT_PEM) < 1)
        fail("cannot read a certificate from %s", ca);
    if (gnutls_init(&fetch.tls, GNUTLS_CLIENT) || gnutls_priority_set_direct(fetch.tls, versions, NULL) ||
        gnutls_credentials_set(fetch.tls, GNUTLS_CRD_CERTIFICATE, trusted) ||
        gnutls_server_name_set(fetch.tls, GNUTLS_NAME_DNS, fetch.host, strlen(fetch.host)) ||
        gnutls_alpn_set_protocols(fetch.tls, &http3, 1, GNUTLS_ALPN_MANDATORY) ||
        (*fetch.options && gnutls_session_ext_register(
                               fetch.tls, "QUIC", NGTCP2_TLSEXT_QUIC_TRANSPORT_PARAMETERS_V1, GNUTLS_EXT_TLS,
                               got_parameters, send_parameters, NULL, NULL, NULL,
                               GNUTLS_EXT_FLAG_TLS | GNUTLS_EXT_FLAG_CLIENT_HELLO | GNUTLS_EXT_FLAG_EE)))
        fail("cannot set up TLS");
    gnutls_session_set_verify_cert(fetch.tls, fetch.host, 0);
    gnutls_session_set_ptr(fetch.tls, &reference);
    /* It sets handlers, then the extension: that alone fails where ours is there already. */
    if (ngtcp2_crypto_gnutls_configure_client_session(fetch.tls) && !*fetch.options)
        fail("cannot set up QUIC's TLS");
}

static void set_block(uint64_t ns)
{
    const struct timeval block = {ns / NGTCP2_SECONDS, ns % NGTCP2_SECONDS / NGTCP2_MICROSECONDS};
    if (setsockopt(fetch.fd, SOL_SOCKET, SO_RCVTIMEO, &block, sizeof block))
        fail("cannot set the socket's timeout: %s", strerror(errno));
    fetch.block_ns = ns;
}

static void connect_socket(const char *address)
{
    static struct sockaddr_in from, to = {.sin_family = AF_INET};
    socklen_t length = sizeof from;
    const int on = 1, bytes = BUFFER_BYTES, whole = IP_PMTUDISC_PROBE;
    to.sin_port = htons(atoi(fetch.port));
    fetch.fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fetch.fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
        connect(fetch.fd, (struct sockaddr *)&to, sizeof to) ||
        getsockname(fetch.fd, (struct sockaddr *)&from, &length) ||
        setsockopt(fetch.fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on) ||
        setsockopt(fetch.fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole))
        fail("cannot connect to %s:%s: %s", address, fetch.port, strerror(errno));
    /* Only root may pass the system's limit. */
    if (setsockopt(fetch.fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
        setsockopt(fetch.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    set_block(LONG_TICKS * fetch.tick_ns);
    fetch.path = (ngtcp2_path){{(ngtcp2_sockaddr *)&from, sizeof from}, {(ngtcp2_sockaddr *)&to, sizeof to}, NULL};
}

/* Waits for datagrams until the connection's next deadline at most; returns how many there are.
 * Mostly in recvmmsg alone, which gives up by the socket's timeout: at most a tick after it, and a call to change
 * (recvmmsg's own does not end a wait). So it is short while packets come in a row, as then it is over before a delayed
 * ACK is due, and long where it would end waits for nothing. A deadline before that, and the rest of a long silence,
 * get a ppoll with an exact timeout. */
static int receive(struct mmsghdr *messages)
{
    uint64_t deadline_ns = next_deadline_ns();
    uint64_t left_ns = deadline_ns > fetch.now_ns ? deadline_ns - fetch.now_ns : 0;
    uint64_t block_ns = (fetch.in_row < ROW ? LONG_TICKS : SHORT_TICKS) * fetch.tick_ns;
    struct timespec wait = {left_ns / NGTCP2_SECONDS, left_ns % NGTCP2_SECONDS};
    struct pollfd readable = {.fd = fetch.fd, .events = POLLIN};
    if (block_ns != fetch.block_ns)
        set_block(block_ns);
    int is_polled = left_ns < block_ns + fetch.tick_ns || fetch.waited_ns >= block_ns;
    if (is_polled && ppoll(&readable, 1, &wait, NULL) <= 0)
        return 0;
    for (int i = 0; i < BATCH; i++)
        messages[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    int got = recvmmsg(fetch.fd, messages, BATCH, is_polled ? MSG_DONTWAIT : MSG_WAITFORONE, NULL);
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        fail("cannot receive: %s", strerror(errno));
    return got < 0 ? 0 : got;
}

static void read_packets(struct mmsghdr *messages, int count)
{
    for (int i = 0; i < count && fetch.received < fetch.size; i++) {
        struct msghdr *message = &messages[i].msg_hdr;
        struct cmsghdr *tos = CMSG_FIRSTHDR(message); /* the one kind asked for */
        ngtcp2_pkt_info info = {.ecn = tos ? *CMSG_DATA(tos) & NGTCP2_ECN_MASK : NGTCP2_ECN_NOT_ECT};
        check(ngtcp2_conn_read_pkt(fetch.quic, &fetch.path, &info, message->msg_iov->iov_base, messages[i].msg_len,
                                   fetch.now_ns));
    }
}

/* Sends what there is to send: mostly one ACK. Without ECN marks, as TCP's ACKs. The library is not told when packets
 * left (ngtcp2_conn_update_pkt_tx_time): it would pace these few, at a wake-up each, and hold up the handshake. */
static void write_packets(void)
{
    for (;;) {
        uint8_t packet[DATAGRAM_BYTES];
        nghttp3_vec data[8];
        int64_t stream = -1;
        int is_last = 0;
        nghttp3_ssize parts = fetch.http ? nghttp3_conn_writev_stream(fetch.http, &stream, &is_last, data, 8) : 0;
        check(parts < 0 ? PROBLEM("%s", nghttp3_strerror(parts)) : 0);
        ngtcp2_ssize taken = -1;
        uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (is_last ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0);
        ngtcp2_ssize length = ngtcp2_conn_writev_stream(fetch.quic, NULL, NULL, packet, sizeof packet, &taken, flags,
                                                        stream, (ngtcp2_vec *)data, parts, fetch.now_ns);
        if (taken >= 0)
            nghttp3_conn_add_write_offset(fetch.http, stream, taken);
        if (length == 0)
            return;
        check(length < 0 && length != NGTCP2_ERR_WRITE_MORE ? length : 0);
        /* What the system has no room for is lost, as on any link; a refusal is the end. */
        if (length > 0 && send(fetch.fd, packet, length, 0) < 0 && errno != EMSGSIZE && errno != ENOBUFS)
            fail("cannot send: %s", strerror(errno));
    }
}

/* Else the server would send what we did not acknowledge again, until its own timeout. */
static void hang_up(void)
{
    uint8_t packet[DATAGRAM_BYTES];
    ngtcp2_ccerr done;
    ngtcp2_ccerr_set_application_error(&done, NGHTTP3_H3_NO_ERROR, NULL, 0);
    ngtcp2_ssize length =
        ngtcp2_conn_write_connection_close(fetch.quic, NULL, NULL, packet, sizeof packet, &done, fetch.now_ns);
    if (length > 0)
        send(fetch.fd, packet, length, 0);
}

/* What is to be asked for: one body of CC_BYTES, or what a file says in lines of the form BYTES pause|every SECONDS. */
static void read_requests(const char *path)
{
    struct request *next = fetch.requests = calloc(MOST_REQUESTS, sizeof *next);
    FILE *file = path ? fopen(path, "re") : NULL;
    double wait_s = 0;
    char how[8] = "pause";
    if (path && !file)
        fail("cannot read %s: %s", path, strerror(errno));
    if (!file)
        next->size = atol(setting("CC_BYTES"));
    while (file ? fscanf(file, "%ld %7s %lf", &next->size, how, &wait_s) == 3 : !fetch.count) {
        if (next->size <= 0)
            fail("%s must be a number above 0", path ? "the size of a body in CC_REQUESTS" : "CC_BYTES");
        next->wait_ns = wait_s * NGTCP2_SECONDS + 0.5;
        next->pauses = !strcmp(how, "pause");
        fetch.size += next->size;
        next++;
        if (++fetch.count == MOST_REQUESTS)
            break;
    }
    if (!fetch.count)
        fail("%s asks for nothing", path);
}

static void report(void)
{
    const char *before = ", \"requests\": [";
    printf("{\"bytes\": %ld, \"completion_s\": %.6f, \"handshake_s\": %.6f", fetch.received,
           (fetch.now_ns - fetch.start_ns) / 1e9, (fetch.handshake_ns - fetch.start_ns) / 1e9);
    for (int i = 0; getenv("CC_REQUESTS") && i < fetch.count; i++, before = ", ") {
        const struct request *one = &fetch.requests[i];
        printf("%s[%ld, %.6f, %.6f, %.6f]", before, one->size, (one->made_ns - fetch.start_ns) / 1e9,
               (one->first_ns - fetch.start_ns) / 1e9, (one->end_ns - fetch.start_ns) / 1e9);
    }
    puts(getenv("CC_REQUESTS") ? "]}" : "}");
}

int main(void)
{
    static uint8_t buffers[BATCH][DATAGRAM_BYTES];
    static _Alignas(struct cmsghdr) uint8_t controls[BATCH][CONTROL_BYTES];
    static struct iovec places[BATCH];
    static struct mmsghdr messages[BATCH];
    const char *options = getenv("CC_CONNECTION_OPTIONS");
    for (int i = 0; i < BATCH; i++) {
        places[i] = (struct iovec){buffers[i], DATAGRAM_BYTES};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &places[i], .msg_iovlen = 1, .msg_control = controls[i]};
    }
    fetch.options = options ? options : "";
    fetch.host = setting("CC_HOSTNAME");
    fetch.port = setting("CC_PORT");
    read_requests(getenv("CC_REQUESTS"));
    if (*fetch.options && (strlen(fetch.options) >= OPTIONS_CHARACTERS || strlen(fetch.options) % 5 != 4))
        fail("CC_CONNECTION_OPTIONS must be tags of four letters, with commas");
    prepare_tls(setting("CC_CA"));
    fetch.tick_ns = tick_ns();
    fetch.start_ns = fetch.now_ns = clock_ns();
    connect_socket(setting("CC_ADDRESS"));
    prepare_quic();
    while (fetch.received < fetch.size) {
        make_requests();
        write_packets();
        int count = receive(messages);
        uint64_t now_ns = clock_ns();
        fetch.waited_ns = now_ns - fetch.now_ns;
        fetch.in_row = fetch.waited_ns < SHORT_TICKS * fetch.tick_ns ? fetch.in_row + 1 : 0;
        fetch.now_ns = now_ns;
        read_packets(messages, count);
        check(ngtcp2_conn_handle_expiry(fetch.quic, fetch.now_ns));
    }
    hang_up();
    report();
    return 0;
}

/* One connection: its sockets, QUIC by ngtcp2, HTTP/3 by nghttp3, and the requests that are made on it. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acknowledgements.h"
#include "client.h"

enum { BUFFER_BYTES = 8 << 20, WINDOW_BYTES = 1 << 30, SERVER_STREAMS = 16, CONNECTION_ID_BYTES = 16 };
/* How long a request waits for a stream, with no other under way, until the server is taken to allow no more. */
enum { PATIENCE_S = 5 };
/* how often a slow reader takes bytes */
static const uint64_t READ_NS = 10 * NGTCP2_MILLISECONDS;

#define FIELD(name, value) {(uint8_t *)(name), (uint8_t *)(value), strlen(name), strlen(value), NGHTTP3_NV_FLAG_NONE}

uint64_t client_ack_delay_ns(uint64_t smoothed_rtt_ns)
{
    const struct acknowledgements *policy = &plan.acknowledgements;
    uint64_t share_ns = policy->share * smoothed_rtt_ns;
    if (!policy->longest_ns)
        return smoothed_rtt_ns / 8;
    return policy->packets || share_ns > policy->longest_ns ? policy->longest_ns : share_ns;
}

static void check(struct connection *connection, int error)
{
    long size = 0, received = 0;
    if (!error)
        return;
    for (int i = 0; i < plan.request_count; i++) {
        size += plan.requests[i].size;
        received += plan.requests[i].received;
    }
    fail("failed after %ld of %ld bytes: %s", received, size, why(connection, error));
}

static void open_socket(struct connection *connection)
{
    struct socket *socket_ = &connection->sockets[connection->socket_count++];
    socklen_t length = sizeof socket_->from;
    const int on = 1, bytes = BUFFER_BYTES, whole = IP_PMTUDISC_PROBE;
    socket_->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(plan.port))};
    socket_->fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (socket_->fd < 0 || inet_pton(AF_INET, plan.address, &socket_->to.sin_addr) != 1 ||
        connect(socket_->fd, (struct sockaddr *)&socket_->to, sizeof socket_->to) ||
        getsockname(socket_->fd, (struct sockaddr *)&socket_->from, &length) ||
        setsockopt(socket_->fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on) ||
        setsockopt(socket_->fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole))
        fail("cannot connect to %s:%s: %s", plan.address, plan.port, strerror(errno));
    /* Only root may pass the system's limit. */
    if (setsockopt(socket_->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
        setsockopt(socket_->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    socket_->path = (ngtcp2_path){{(ngtcp2_sockaddr *)&socket_->from, sizeof socket_->from},
                                  {(ngtcp2_sockaddr *)&socket_->to, sizeof socket_->to},
                                  NULL};
}

static void give_credit(struct connection *connection, int64_t stream, size_t bytes)
{
    ngtcp2_conn_extend_max_stream_offset(connection->quic, stream, bytes);
    ngtcp2_conn_extend_max_offset(connection->quic, bytes);
}

/* Lets a slow reader take what it has had time for, of the oldest requests first. */
void read_on(struct connection *connection)
{
    uint64_t passed_ns = now_ns - connection->read_ns;
    long bytes = (double)passed_ns * plan.read_bytes_per_s / NGTCP2_SECONDS;
    if (!connection->unread || passed_ns < READ_NS)
        return;
    connection->read_ns = now_ns;
    for (struct request *request = connection->first; request && bytes > 0; request = request->next) {
        long part = request->unread < bytes ? request->unread : bytes;
        request->unread -= part;
        connection->unread -= part;
        bytes -= part;
        give_credit(connection, request->stream, part);
    }
}

static void end_request(struct connection *connection, struct request *request)
{
    if (request->is_done)
        return;
    request->is_done = 1;
    connection->done++;
    connection->end_ns = now_ns;
    if (connection->due_ns == UINT64_MAX && connection->done == connection->made)
        connection->due_ns = now_ns + connection->waits_ns;
}

static int got_header(nghttp3_conn *http, int64_t stream, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value,
                      uint8_t flags, void *user, void *stream_user)
{
    const char *status = (const char *)nghttp3_rcbuf_get_buf(value).base;
    int is_bad = token == NGHTTP3_QPACK_TOKEN__STATUS && atoi(status) >= 200 && strcmp(status, "200");
    return is_bad ? PROBLEM((struct connection *)user, "the server answered %s", status) : 0;
}

static int got_body(nghttp3_conn *http, int64_t stream, const uint8_t *data, size_t length, void *user,
                    void *stream_user)
{
    struct connection *connection = user;
    struct request *request = stream_user;
    if (!request->received)
        request->first_ns = now_ns;
    request->received += length;
    request->end_ns = now_ns;
    if (!plan.read_bytes_per_s) {
        give_credit(connection, stream, length);
    } else {
        if (!connection->unread)
            connection->read_ns = now_ns;
        connection->unread += length;
        request->unread += length;
    }
    if (request->received >= request->size)
        end_request(connection, request);
    else if (plan.stop_bytes && request->received >= plan.stop_bytes)
        request->is_stopped = 1;
    return 0;
}

static int got_end(nghttp3_conn *http, int64_t stream, void *user, void *stream_user)
{
    struct request *request = stream_user;
    return request->received < request->size ? PROBLEM((struct connection *)user, "the body ended") : 0;
}

static int got_stream(ngtcp2_conn *quic, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *data,
                      size_t length, void *user, void *stream_user)
{
    struct connection *connection = user;
    struct request *request = stream_user;
    int is_last = flags & NGTCP2_STREAM_DATA_FLAG_FIN;
    nghttp3_ssize used = nghttp3_conn_read_stream(connection->http, stream, data, length, is_last);
    if (used < 0)
        return *connection->problem ? NGTCP2_ERR_CALLBACK_FAILURE : PROBLEM(connection, "%s", nghttp3_strerror(used));
    give_credit(connection, stream, used);
    if (request && request->is_stopped) {
        /* nghttp3 is not told: nothing more of this stream comes to it. */
        ngtcp2_conn_shutdown_stream_read(quic, 0, stream, NGHTTP3_H3_REQUEST_CANCELLED);
        connection->unread -= request->unread;
        ngtcp2_conn_extend_max_offset(quic, request->unread);
        request->unread = 0;
    }
    return 0;
}

static int got_reset(ngtcp2_conn *quic, int64_t stream, uint64_t size, uint64_t code, void *user, void *stream_user)
{
    struct connection *connection = user;
    struct request *request = stream_user;
    if (connection->reset_count < MOST_RESETS)
        connection->resets[connection->reset_count++] = code;
    if (!request || request->is_done)
        return 0;
    if (!request->is_stopped)
        return PROBLEM(connection, "the server reset the stream (%s)", http_error(code));
    end_request(connection, request);
    return 0;
}

/* A server that had sent the whole body before it was told to stop closes the stream without a reset. */
static int got_close(ngtcp2_conn *quic, uint32_t flags, int64_t stream, uint64_t code, void *user, void *stream_user)
{
    struct request *request = stream_user;
    if (request && request->is_stopped)
        end_request(user, request);
    return 0;
}

/* Makes the next request; whether there is a stream for it. */
static int make_request(struct connection *connection)
{
    struct request *request = connection->next;
    char authority[300], path[32];
    snprintf(authority, sizeof authority, "%s:%s", plan.host, plan.port);
    snprintf(path, sizeof path, "/%ld", request->size);
    nghttp3_nv head[] = {FIELD(":method", "GET"), FIELD(":scheme", "https"), FIELD(":authority", authority),
                         FIELD(":path", path)};
    if (ngtcp2_conn_open_bidi_stream(connection->quic, &request->stream, request))
        return 0;
    if (nghttp3_conn_submit_request(connection->http, request->stream, head, sizeof head / sizeof *head, NULL, request))
        fail("cannot make the request");
    request->made_ns = now_ns;
    connection->waits_ns = request->wait_ns;
    connection->due_ns = request->pauses ? UINT64_MAX : connection->due_ns + request->wait_ns;
    connection->next = request->next;
    connection->made++;
    return 1;
}

void make_requests(struct connection *connection)
{
    while (connection->http && connection->next && connection->due_ns <= now_ns) {
        if (!make_request(connection)) {
            if (!connection->blocked_ns)
                connection->blocked_ns = now_ns;
            if (connection->done == connection->made &&
                now_ns - connection->blocked_ns >= PATIENCE_S * NGTCP2_SECONDS)
                fail("the server allows %d requests on a connection, %d are to be made", connection->made,
                     connection->count);
            return;
        }
        connection->blocked_ns = 0;
    }
}

/* Sets HTTP/3 up and makes the first request; whether the server allows the streams for that. */
static int start_http(struct connection *connection)
{
    static const nghttp3_callbacks calls = {.recv_header = got_header, .recv_data = got_body, .end_stream = got_end};
    int64_t control, encoder, decoder;
    nghttp3_settings settings;
    if (ngtcp2_conn_open_uni_stream(connection->quic, &control, NULL) ||
        ngtcp2_conn_open_uni_stream(connection->quic, &encoder, NULL) ||
        ngtcp2_conn_open_uni_stream(connection->quic, &decoder, NULL))
        return 0;
    nghttp3_settings_default(&settings);
    if (nghttp3_conn_client_new(&connection->http, &calls, &settings, NULL, connection) ||
        nghttp3_conn_bind_control_stream(connection->http, control) ||
        nghttp3_conn_bind_qpack_streams(connection->http, encoder, decoder))
        fail("cannot set up HTTP/3");
    connection->next = connection->first;
    connection->due_ns = now_ns;
    return make_request(connection);
}

/* Called when the handshake is done, as what the server says next may be in the same datagram. */
static int got_handshake(ngtcp2_conn *quic, void *user)
{
    struct connection *connection = user;
    const uint8_t *protocol;
    unsigned length;
    connection->handshake_ns = now_ns;
    SSL_get0_alpn_selected(connection->tls, &protocol, &length);
    if (!length)
        fail("the server does not speak HTTP/3");
    if (connection->http) /* since before the handshake, for early data */
        connection->early_data = SSL_early_data_accepted(connection->tls) ? "accepted" : NULL;
    else if (!start_http(connection))
        fail("the server does not allow the streams that HTTP/3 needs");
    return 0;
}

/* What was sent before the handshake is forgotten: all streams are closed, and requests are made again. */
static int got_refusal(ngtcp2_conn *quic, void *user)
{
    struct connection *connection = user;
    nghttp3_conn_del(connection->http);
    connection->http = NULL;
    connection->made = 0;
    connection->early_data = "refused";
    return 0;
}

static int got_confirmation(ngtcp2_conn *quic, void *user)
{
    ((struct connection *)user)->is_confirmed = 1;
    return 0;
}

/* A server that was started again, say, does not know the connection; ngtcp2 would take this for a close. */
static int got_stateless_reset(ngtcp2_conn *quic, const ngtcp2_pkt_stateless_reset *reset, void *user)
{
    return PROBLEM((struct connection *)user, "the server no longer knows the connection (stateless reset)");
}

static int got_token(ngtcp2_conn *quic, const uint8_t *token, size_t length, void *user)
{
    if (length <= sizeof memory.token) {
        memcpy(memory.token, token, length);
        memory.token_length = length;
    }
    return 0;
}

static int got_validation(ngtcp2_conn *quic, uint32_t flags, const ngtcp2_path *path, const ngtcp2_path *old_path,
                          ngtcp2_path_validation_result outcome, void *user)
{
    struct connection *connection = user;
    if (connection->socket_count == 2)
        connection->migration = outcome == NGTCP2_PATH_VALIDATION_RESULT_SUCCESS ? "validated" : "failed";
    return 0;
}

/* Never called: our connection ID is empty, as a connection's sockets have no other. */
static int no_connection_id(ngtcp2_conn *quic, ngtcp2_cid *id, uint8_t *token, size_t length, void *user)
{
    return NGTCP2_ERR_CALLBACK_FAILURE;
}

static void open_quic(struct connection *connection)
{
    static const ngtcp2_callbacks callbacks = {
        .client_initial = send_parameters,
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
        .handshake_completed = got_handshake,
        .handshake_confirmed = got_confirmation,
        .tls_early_data_rejected = got_refusal,
        .recv_stateless_reset = got_stateless_reset,
        .recv_new_token = got_token,
        .path_validation = got_validation,
        .recv_stream_data = got_stream,
        .stream_reset = got_reset,
        .stream_close = got_close,
    };
    ngtcp2_cid server_id = {.datalen = CONNECTION_ID_BYTES}, client_id = {.datalen = 0};
    ngtcp2_settings settings;
    ngtcp2_transport_params parameters;
    ngtcp2_settings_default(&settings);
    settings.initial_ts = now_ns;
    settings.handshake_timeout = TIMEOUT_S * NGTCP2_SECONDS;
    ngtcp2_transport_params_default(&parameters);
    parameters.initial_max_data = plan.connection_window ? plan.connection_window : WINDOW_BYTES;
    parameters.initial_max_stream_data_bidi_local = plan.stream_window ? plan.stream_window : WINDOW_BYTES;
    parameters.initial_max_stream_data_uni = WINDOW_BYTES;
    parameters.initial_max_streams_uni = SERVER_STREAMS;
    parameters.max_idle_timeout = TIMEOUT_S * NGTCP2_SECONDS + longest_wait_ns(connection);
    parameters.max_udp_payload_size = DATAGRAM_BYTES;
    parameters.grease_quic_bit = 1;
    if (plan.idle_ns)
        parameters.max_idle_timeout = plan.idle_ns;
    if (plan.acknowledgements.longest_ns) {
        const uint64_t unit = NGTCP2_MILLISECONDS; /* what the parameter is sent in */
        settings.ack_thresh = plan.acknowledgements.packets ? plan.acknowledgements.packets : SIZE_MAX;
        parameters.max_ack_delay = (plan.acknowledgements.longest_ns + unit - 1) / unit * unit;
    }
    if (connection->resumes && memory.token_length) {
        settings.token = memory.token;
        settings.tokenlen = memory.token_length;
        settings.token_type = NGTCP2_TOKEN_TYPE_NEW_TOKEN;
    }
    random_bytes(server_id.data, server_id.datalen, NULL);
    if (ngtcp2_conn_client_new(&connection->quic, &server_id, &client_id, &connection->sockets[0].path,
                               NGTCP2_PROTO_VER_V1, &callbacks, &settings, &parameters, NULL, connection))
        fail("cannot set up QUIC");
    ngtcp2_conn_set_tls_native_handle(connection->quic, connection->tls);
}

void open_connection(struct connection *connection)
{
    connection->start_ns = now_ns;
    connection->is_open = 1;
    open_tls(connection);
    open_socket(connection);
    open_quic(connection);
    if (connection->resumes && memory.session && SSL_SESSION_early_data_capable(memory.session) &&
        !ngtcp2_conn_decode_and_set_0rtt_transport_params(connection->quic, memory.parameters,
                                                          memory.parameters_length))
        start_http(connection);
}

/* Moves to another local port, where the server allows it, at once: some servers answer no probe from elsewhere. */
void migrate(struct connection *connection)
{
    if (ngtcp2_conn_get_remote_transport_params(connection->quic)->disable_active_migration) {
        connection->migration = "forbidden";
        return;
    }
    open_socket(connection);
    int error = ngtcp2_conn_initiate_immediate_migration(connection->quic, &connection->sockets[1].path, now_ns);
    check(connection, error == NGTCP2_ERR_CONN_ID_BLOCKED ? 0 : error);
    connection->migration = error ? "no connection ID" : "begun";
}

void read_packet(struct connection *connection, const struct socket *socket, const uint8_t *packet, size_t length,
                 uint8_t ecn)
{
    const ngtcp2_pkt_info info = {.ecn = ecn & NGTCP2_ECN_MASK};
    check(connection, ngtcp2_conn_read_pkt(connection->quic, &socket->path, &info, packet, length, now_ns));
}

/* The socket of a path. */
static int path_fd(const struct connection *connection, const ngtcp2_path *path)
{
    int is_second = connection->socket_count == 2 && ngtcp2_path_eq(path, &connection->sockets[1].path);
    return connection->sockets[is_second].fd;
}

/* Sends what there is to send: mostly one ACK. Without ECN marks, as TCP's ACKs. The library is not told when packets
 * left (ngtcp2_conn_update_pkt_tx_time): it would pace these few, at a wake-up each, and hold up the handshake. */
void write_packets(struct connection *connection)
{
    for (;;) {
        uint8_t packet[DATAGRAM_BYTES];
        nghttp3_vec data[8];
        ngtcp2_path_storage path;
        int64_t stream = -1;
        int is_last = 0;
        nghttp3_ssize parts =
            connection->http ? nghttp3_conn_writev_stream(connection->http, &stream, &is_last, data, 8) : 0;
        check(connection, parts < 0 ? PROBLEM(connection, "%s", nghttp3_strerror(parts)) : 0);
        ngtcp2_ssize taken = -1;
        uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (is_last ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0);
        ngtcp2_path_storage_zero(&path);
        ngtcp2_ssize length = ngtcp2_conn_writev_stream(connection->quic, &path.path, NULL, packet, sizeof packet,
                                                        &taken, flags, stream, (ngtcp2_vec *)data, parts, now_ns);
        if (taken >= 0)
            nghttp3_conn_add_write_offset(connection->http, stream, taken);
        if (length == 0)
            return;
        check(connection, length < 0 && length != NGTCP2_ERR_WRITE_MORE ? length : 0);
        /* What the system has no room for is lost, as on any link; a refusal is the end. */
        if (length > 0 && send(path_fd(connection, &path.path), packet, length, 0) < 0 && errno != EMSGSIZE &&
            errno != ENOBUFS)
            fail("cannot send: %s", strerror(errno));
    }
}

void handle_expiry(struct connection *connection)
{
    check(connection, ngtcp2_conn_handle_expiry(connection->quic, now_ns));
}

/* When there is something to do though nothing arrives. */
uint64_t next_deadline_ns(const struct connection *connection)
{
    uint64_t next_ns = ngtcp2_conn_get_expiry(connection->quic), own_ns = UINT64_MAX;
    if (connection->http && connection->next)
        own_ns = connection->blocked_ns ? connection->blocked_ns + PATIENCE_S * NGTCP2_SECONDS : connection->due_ns;
    /* Blocked with others under way: what arrives ends that. */
    if (own_ns > now_ns && own_ns < next_ns)
        next_ns = own_ns;
    if (connection->unread && connection->read_ns + READ_NS < next_ns)
        next_ns = connection->read_ns + READ_NS;
    if (connection->is_confirmed && !connection->migration && plan.migrate_ns != UINT64_MAX &&
        start_ns + plan.migrate_ns < next_ns)
        next_ns = start_ns + plan.migrate_ns;
    return next_ns;
}

/* Says so to the server, which else would send what we did not acknowledge again, until its own timeout. */
void close_connection(struct connection *connection)
{
    uint8_t packet[DATAGRAM_BYTES];
    ngtcp2_path_storage path;
    ngtcp2_ccerr reason;
    ngtcp2_ccerr_set_application_error(&reason, NGHTTP3_H3_NO_ERROR, NULL, 0);
    ngtcp2_path_storage_zero(&path);
    ngtcp2_ssize length = ngtcp2_conn_write_connection_close(connection->quic, &path.path, NULL, packet, sizeof packet,
                                                             &reason, now_ns);
    if (length > 0)
        send(path_fd(connection, &path.path), packet, length, 0);
    connection->is_open = 0;
}

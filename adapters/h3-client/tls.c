/* TLS of the connections, by BoringSSL. */
#include <ngtcp2/ngtcp2_crypto_boringssl.h>
#include <errno.h>
#include <openssl/rand.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "shared.h" /* ngtcp2_crypto_derive_and_install_initial_key, which is not public */

/* Google's connection options: the transport parameter that holds them, and the most bytes they take. */
enum { CONNECTION_OPTIONS = 0x3128, OPTIONS_BYTES = 3 + 15 * 4 };

/* Of BoringSSL's C++: whether ciphers are ordered as for a processor that has instructions for AES. */
void order_ciphers(SSL_CTX *context, bool has_aes)
    __asm__("_ZN4bssl39SSL_CTX_set_aes_hw_override_for_testingEP10ssl_ctx_stb");

struct memory memory;
static SSL_CTX *context;
static FILE *secrets; /* where traces are wanted */

static ngtcp2_conn *get_quic(ngtcp2_crypto_conn_ref *reference)
{
    return ((struct connection *)reference->user_data)->quic;
}

/* Keeps a ticket, and what a connection that returns it may take for granted. */
static int got_ticket(SSL *tls, SSL_SESSION *session)
{
    ngtcp2_conn *quic = get_quic(SSL_get_app_data(tls));
    ngtcp2_ssize length = ngtcp2_conn_encode_0rtt_transport_params(quic, memory.parameters, sizeof memory.parameters);
    memory.parameters_length = length < 0 ? 0 : length;
    if (memory.session)
        SSL_SESSION_free(memory.session);
    memory.session = session;
    return 1;
}

static void keep_secret(const SSL *tls, const char *line)
{
    fprintf(secrets, "%s\n", line);
    fflush(secrets);
}

static void keep_secrets(const char *path)
{
    if (!(secrets = fopen(path, "ae")))
        fail("cannot write to %s (SSLKEYLOGFILE): %s", path, strerror(errno));
    SSL_CTX_set_keylog_callback(context, keep_secret);
}

void prepare_tls(void)
{
    const char *secrets_path = getenv("SSLKEYLOGFILE");
    context = SSL_CTX_new(TLS_method());
    if (!context || ngtcp2_crypto_boringssl_configure_client_context(context))
        fail("cannot set up QUIC's TLS");
    if (!SSL_CTX_load_verify_locations(context, plan.authority, NULL))
        fail("cannot read a certificate from %s", plan.authority);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    order_ciphers(context, true); /* on every processor */
    if (secrets_path)
        keep_secrets(secrets_path);
    for (int i = 0; i < plan.connection_count; i++)
        if (plan.connections[i].resumes) {
            SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
            SSL_CTX_sess_set_new_cb(context, got_ticket);
        }
}

void open_tls(struct connection *connection)
{
    SSL *tls = connection->tls = SSL_new(context);
    /* Without a key share of post-quantum cryptography, the first flight is one datagram. */
    if (!tls || !SSL_set_tlsext_host_name(tls, plan.host) || !SSL_set1_host(tls, plan.host) ||
        !SSL_set1_curves_list(tls, "X25519:P-256:P-384") || SSL_set_alpn_protos(tls, (const uint8_t *)"\2h3", 3))
        fail("cannot set up TLS");
    connection->reference = (ngtcp2_crypto_conn_ref){.get_conn = get_quic, .user_data = connection};
    SSL_set_app_data(tls, &connection->reference);
    SSL_set_connect_state(tls);
    if (connection->resumes && memory.session) {
        SSL_set_session(tls, memory.session);
        SSL_set_early_data_enabled(tls, SSL_SESSION_early_data_capable(memory.session));
    }
}

void random_bytes(uint8_t *to, size_t length, const ngtcp2_rand_ctx *unused)
{
    if (!RAND_bytes(to, length))
        fail("no random bytes");
}

/* As ngtcp2_crypto_client_initial_cb, but with Google's connection options, by which a client chooses a QUICHE server's
 * algorithm: a transport parameter, tags in a row. ngtcp2 sends none but its own. */
int send_parameters(ngtcp2_conn *quic, void *user)
{
    struct connection *connection = user;
    uint8_t bytes[MOST_PARAMETERS_BYTES];
    ngtcp2_ssize length;
    if (ngtcp2_crypto_derive_and_install_initial_key(quic, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                     ngtcp2_conn_get_client_chosen_version(quic),
                                                     ngtcp2_conn_get_dcid(quic)) ||
        (length = ngtcp2_conn_encode_local_transport_params(quic, bytes, sizeof bytes - OPTIONS_BYTES)) < 0)
        return NGTCP2_ERR_CALLBACK_FAILURE;
    if (*plan.options) {
        bytes[length++] = 0x40 | CONNECTION_OPTIONS >> 8; /* a number of two bytes, then one of one */
        bytes[length++] = CONNECTION_OPTIONS & 0xff;
        bytes[length++] = (strlen(plan.options) + 1) / 5 * 4;
        for (const char *letter = plan.options; *letter; letter++)
            if (*letter != ',')
                bytes[length++] = *letter;
    }
    if (SSL_set_quic_transport_params(connection->tls, bytes, length) != 1 ||
        ngtcp2_crypto_read_write_crypto_data(quic, NGTCP2_ENCRYPTION_LEVEL_INITIAL, NULL, 0))
        return NGTCP2_ERR_CALLBACK_FAILURE;
    return 0;
}

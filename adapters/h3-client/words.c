/* Say in words what went wrong: the codes of QUIC (RFC 9000, 20.1), TLS, HTTP/3 (RFC 9114, 8.1) and QPACK. */
#include <ctype.h>
#include <stdio.h>

#include "client.h"

static const char *const TRANSPORT_ERRORS[] = {
    "NO_ERROR", "INTERNAL_ERROR", "CONNECTION_REFUSED", "FLOW_CONTROL_ERROR", "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR", "FINAL_SIZE_ERROR", "FRAME_ENCODING_ERROR", "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR", "PROTOCOL_VIOLATION", "INVALID_TOKEN", "APPLICATION_ERROR", "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR", "AEAD_LIMIT_REACHED", "NO_VIABLE_PATH", "VERSION_NEGOTIATION_ERROR",
};
static const char *const HTTP_ERRORS[] = {
    "H3_NO_ERROR", "H3_GENERAL_PROTOCOL_ERROR", "H3_INTERNAL_ERROR", "H3_STREAM_CREATION_ERROR",
    "H3_CLOSED_CRITICAL_STREAM", "H3_FRAME_UNEXPECTED", "H3_FRAME_ERROR", "H3_EXCESSIVE_LOAD", "H3_ID_ERROR",
    "H3_SETTINGS_ERROR", "H3_MISSING_SETTINGS", "H3_REQUEST_REJECTED", "H3_REQUEST_CANCELLED", "H3_REQUEST_INCOMPLETE",
    "H3_MESSAGE_ERROR", "H3_CONNECT_ERROR", "H3_VERSION_FALLBACK",
};
static const char *const QPACK_ERRORS[] = {
    "QPACK_DECOMPRESSION_FAILED", "QPACK_ENCODER_STREAM_ERROR", "QPACK_DECODER_STREAM_ERROR",
};

#define LENGTH(list) (sizeof(list) / sizeof *(list))

static const char *plain(uint64_t code)
{
    static char text[24];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)code);
    return text;
}

const char *http_error(uint64_t code)
{
    if (code >= 0x100 && code - 0x100 < LENGTH(HTTP_ERRORS))
        return HTTP_ERRORS[code - 0x100];
    if (code >= 0x200 && code - 0x200 < LENGTH(QPACK_ERRORS))
        return QPACK_ERRORS[code - 0x200];
    return plain(code);
}

static const char *transport_error(uint64_t code)
{
    static char text[80];
    if (code < LENGTH(TRANSPORT_ERRORS))
        return TRANSPORT_ERRORS[code];
    if (code >> 8 != NGTCP2_CRYPTO_ERROR >> 8)
        return plain(code);
    snprintf(text, sizeof text, "CRYPTO_ERROR, %s", SSL_alert_desc_string_long(code & 0xff));
    return text;
}

/* How the server closed the connection, with its own reason, which is untrusted. */
static void say_closed(struct connection *connection)
{
    const ngtcp2_ccerr *error = ngtcp2_conn_get_ccerr(connection->quic);
    int is_http = error->type == NGTCP2_CCERR_TYPE_APPLICATION;
    char reason[120];
    size_t length = 0;
    for (size_t i = 0; i < error->reasonlen && length < sizeof reason - 1; i++)
        if (isascii(error->reason[i]) && isprint(error->reason[i]))
            reason[length++] = error->reason[i];
    reason[length] = 0;
    SAY(connection, "the server closed the connection (%s%s%s)",
        is_http ? http_error(error->error_code) : transport_error(error->error_code), length ? ": " : "", reason);
}

const char *why(struct connection *connection, int error)
{
    long status = SSL_get_verify_result(connection->tls);
    if (*connection->problem)
        return connection->problem;
    switch (error) {
    case NGTCP2_ERR_IDLE_CLOSE:
    case NGTCP2_ERR_HANDSHAKE_TIMEOUT:
        return "no answer";
    case NGTCP2_ERR_RECV_VERSION_NEGOTIATION:
        return "the server does not speak QUIC version 1";
    case NGTCP2_ERR_CRYPTO:
        if (status != X509_V_OK)
            return X509_verify_cert_error_string(status);
        SAY(connection, "the handshake failed (%s)",
            SSL_alert_desc_string_long(ngtcp2_conn_get_tls_alert(connection->quic)));
        return connection->problem;
    case NGTCP2_ERR_DRAINING:
        say_closed(connection);
        return connection->problem;
    default:
        return ngtcp2_strerror(error);
    }
}

/* As much of HTTP/3 (RFC 9114) as a GET and its answer need. QPACK's dynamic table is never used, as neither side's settings
 * allow one; what a client may Huffman-code, nghttp3 decodes.
 */
#include <nghttp3/nghttp3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HTTP3_DATA = 0, HTTP3_HEADERS = 1, HTTP3_HEAD_BYTES = 64 };

/* How a control stream begins: its type, and a SETTINGS frame in which all is as by default. */
static const uint8_t http3_control[] = {0x00, 0x04, 0x00};
static const uint8_t http3_not_found[] = {HTTP3_HEADERS, 3, 0, 0, 0xc0 | 27}; /* :status: 404 */

/* QUIC's number: the first two bits say in how many bytes (1, 2, 4, 8). 0 where it is not whole. */
static size_t http3_take_number(const uint8_t *from, size_t length, uint64_t *number)
{
    size_t bytes = length ? (size_t)1 << (*from >> 6) : 1;
    if (bytes > length)
        return 0;
    *number = *from & 0x3f;
    for (size_t at = 1; at < bytes; at++)
        *number = *number << 8 | from[at];
    return bytes;
}

/* What precedes a body: its headers, and the head of the one DATA frame that is the rest of the stream. */
static size_t http3_head(uint8_t to[HTTP3_HEAD_BYTES], uint64_t body_bytes)
{
    char text[24];
    size_t digits = (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)body_bytes), at = 0;
    const uint8_t block[] = {0, 0, 0xc0 | 25, 0x50 | 4}; /* :status: 200, content-length */
    to[at++] = HTTP3_HEADERS;
    to[at++] = (uint8_t)(sizeof block + 1 + digits);
    memcpy(to + at, block, sizeof block);
    at += sizeof block;
    to[at++] = (uint8_t)digits;
    memcpy(to + at, text, digits);
    at += digits;
    to[at++] = HTTP3_DATA;
    for (int shift = 56; shift >= 0; shift -= 8)
        to[at++] = (uint8_t)((body_bytes | 3ull << 62) >> shift);
    return at;
}

/* Copy the :path of a GET from a block of headers; 0 for any other request. */
static int http3_path_of(const uint8_t *block, size_t length, char *path, size_t room)
{
    nghttp3_qpack_decoder *decoder;
    nghttp3_qpack_stream_context *context;
    int is_get = 0, has_path = 0;
    if (nghttp3_qpack_decoder_new(&decoder, 0, 0, nghttp3_mem_default()) ||
        nghttp3_qpack_stream_context_new(&context, 0, nghttp3_mem_default()))
        return 0;
    while (length) {
        nghttp3_qpack_nv field;
        uint8_t flags;
        nghttp3_ssize used = nghttp3_qpack_decoder_read_request(decoder, context, &field, &flags, block, length, 1);
        if (used < 0)
            break;
        block += used;
        length -= (size_t)used;
        if (!(flags & NGHTTP3_QPACK_DECODE_FLAG_EMIT))
            break;
        nghttp3_vec name = nghttp3_rcbuf_get_buf(field.name), value = nghttp3_rcbuf_get_buf(field.value);
        if (name.len == 7 && !memcmp(name.base, ":method", 7))
            is_get = value.len == 3 && !memcmp(value.base, "GET", 3);
        if (name.len == 5 && !memcmp(name.base, ":path", 5) && value.len < room) {
            memcpy(path, value.base, value.len);
            path[value.len] = 0;
            has_path = 1;
        }
        nghttp3_rcbuf_decref(field.name);
        nghttp3_rcbuf_decref(field.value);
    }
    nghttp3_qpack_stream_context_del(context);
    nghttp3_qpack_decoder_del(decoder);
    return is_get && has_path;
}

/* Copy the path that a request, all of its stream, asks for; 0 where it asks for none. */
static int http3_path(const uint8_t *stream, size_t length, char *path, size_t room)
{
    while (length) {
        uint64_t kind, bytes;
        size_t used = http3_take_number(stream, length, &kind);
        size_t more = used ? http3_take_number(stream + used, length - used, &bytes) : 0;
        if (!more || bytes > length - used - more)
            return 0;
        stream += used + more;
        length -= used + more;
        if (kind == HTTP3_HEADERS)
            return http3_path_of(stream, bytes, path, room);
        stream += bytes;
        length -= bytes;
    }
    return 0;
}

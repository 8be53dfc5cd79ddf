"""Names of schemes, which contain the version of the stack under test, taken from untrusted text."""

import dataclasses

import pytest
from helpers import scheme, trial
from hypothesis import given, strategies as st

from conformance.model.trials.trial import Scheme

GNUTLS = "libgnutls30 3.7.9-2+deb12u6, libngtcp2-9 0.12.1+dfsg-1+deb12u1, ngtcp2-server 0.12.1+dfsg-1+deb12u1"


#: (stack, what it says of itself, the version of what is under test); most are published
_SAID = (
    ("linux-tcp", "nginx/1.22.1, OpenSSL 3.0.19", "6.12.0"),
    ("linux-tcp-h2", "nginx/1.22.1, libcurl/7.88.1", "6.12.0"),
    ("quinn", "quinn 0.11.12, quinn-proto 0.11.19, h3 0.0.8; client h3-client (libngtcp2-9 0.12.1)", "0.11.12"),
    ("quinn-fork", "quinn 0.11.12, quinn-proto 0.11.19", "0.11.12"),
    ("ngtcp2", f"{GNUTLS}; client h3-client", "0.12.1"),
    ("own", "a build of Tuesday; client h3-client 1.2.3", "55555555"),
    ("own", "", "55555555"),
    ("aioquic", "aioquic 1.7.2", "1.7.2"),
    ("cloudflare-quiche", "tokio-quiche 0.20.1, quiche 0.30.0", "0.30.0"),
    ("cloudflare-quiche-0.24", "quiche 0.24.6", "0.24.6"),
    ("dquic", "dquic 0.8.1, qconnection 0.9.0, qtransport 0.1.0, qcongestion 0.7.0, qudp 0.8.1, tokio 1.54.1", "0.8.1"),
    ("google-quiche", "QUICHE of Envoy 1.40.0", "1.40.0"),
    ("google-quiche-options", "QUICHE of Envoy 1.40.0", "1.40.0"),
    ("gvisor-tcp", "gVisor v0.0.0-20250503011706-39ed1f5ac29c, go1.26.8", "0.0.0"),
    ("haproxy", "haproxy 3.0.11-1+deb13u3, libc6 2.41-12+deb13u4, libssl3t64 3.5.7-1~deb13u2", "3.0.11"),
    ("kwik", "kwik-0.10.8, flupke-0.9.4, Java 17.0.15", "0.10.8"),
    ("lsquic", "lsquic 4.9.3 (build fa10e450)", "4.9.3"),
    ("msquic", "msquic 2.5.1 (crate msquic 2.5.1-beta)", "2.5.1"),
    ("neqo", "neqo 0.30.1 (build b2904ebf), NSS 3.124", "0.30.1"),
    ("nginx-quic", "nginx 1.26.3-3+deb13u10, libssl3t64 3.5.9-1~deb13u1, libc6 2.41-12+deb13u5", "1.26.3"),
    (
        "ngtcp2",
        "libgnutls30 3.7.9-2+deb12u6, libnghttp3-3 0.8.0-2, "
        "libngtcp2-9 0.12.1+dfsg-1+deb12u1, ngtcp2-server 0.12.1+dfsg-1+deb12u1",
        "0.12.1",
    ),
    (
        "ngtcp2-1.11",
        "ngtcp2-server 1.11.0-1~bpo12+1, libngtcp2-crypto-gnutls8 1.11.0-1~bpo12+1, "
        "libngtcp2-16 1.11.0-1~bpo12+1, libnghttp3-9 1.8.0-1~bpo12+1, libgnutls30 3.7.9-2+deb12u6",
        "1.11.0",
    ),
    ("noq", "noq 1.4.0, noq-proto 1.4.0, noq-udp 1.4.0, rustls 0.23.46, tokio 1.54.1", "1.4.0"),
    ("openssl-quic", "libssl3t64 3.5.7-1~deb13u2, libc6 2.41-12+deb13u4", "3.5.7"),
    ("picoquic", "picoquic 1.1.52.0 (build 9a277490); with picoquic@beee45", "1.1.52.0+picoquic@beee45"),
    ("picoquic", "picoquic 1.1.52.0 (build 9e7985d1)", "1.1.52.0"),
    ("picoquic", "picoquic 1.1.52.0 (build ff66b795); with picoquic@d95cf8", "1.1.52.0+picoquic@d95cf8"),
    ("quic-go", "quic-go v0.65.0, go1.26.8", "0.65.0"),
    ("quicly", "quicly of h2o 2.3.0-DEV (build 82825138)", "2.3.0"),
    (
        "quinn",
        "quinn 0.11.12, quinn-proto 0.11.19, quinn-udp 0.5.16, h3 0.0.8, rustls 0.23.46, tokio 1.54.1",
        "0.11.12",
    ),
    (
        "s2n-quic",
        "s2n-quic 1.91.0, s2n-quic-core 0.91.0, s2n-quic-transport 0.91.0, "
        "s2n-quic-platform 0.91.0, rustls 0.23.46, tokio 1.54.1",
        "1.91.0",
    ),
    ("smoltcp", "smoltcp 0.14.0, rustls 0.23.46", "0.14.0"),
    ("tquic", "tquic 1.6.0", "1.6.0"),
    ("x-net-quic", "golang.org/x/net/quic v0.62.0, go1.26.8", "0.62.0"),
)


@pytest.mark.parametrize(("stack", "said", "version"), _SAID)
def test_a_scheme_is_called_by_the_version_of_what_is_under_test(stack, said, version):
    assert scheme(stack=stack, stack_version=said).id == f"cubic/{stack}/{version}"


@pytest.mark.parametrize(
    ("said", "client", "and_version"),
    [
        ("aioquic 1.7.2", None, None),
        ("aioquic 1.7.2; client h3-client (libngtcp2-9 0.12.1)", "h3-client", "h3-client 0.12.1"),
        ("aioquic 1.7.2; client h3-client (libgnutls30 3.7.9, libngtcp2-9 0.12.1+dfsg-1+deb12u1)", "h3-client",
         "h3-client 0.12.1"),
        ("aioquic 1.7.2; client h3-client (ngtcp2 1.11.0, nghttp3 0.8.0, boringssl 14.0.0+r45)", "h3-client",
         "h3-client 1.11.0"),
        ("hypercorn 0.18.0; client linux-tcp-h2 (nginx/1.22.1, libcurl/7.88.1)", "linux-tcp-h2", "linux-tcp-h2"),
        (f"{GNUTLS}; client h3-client", "h3-client", "h3-client"),
        ("aioquic 1.7.2; client ", None, "own"),
        # about its own client
        ("QUICHE of Envoy 1.40.0; client libgnutls30 3.7.9, libngtcp2-9 0.12.1+dfsg-1+deb12u1", None, "own 0.12.1"),
    ],
)  # fmt: skip
def test_a_scheme_says_whose_client_fetched(said, client, and_version):
    found = scheme(stack="own", stack_version=said)
    assert (found.client, found.client_and_version) == (client, and_version)


@given(st.text(max_size=200))
def test_whatever_a_stack_says_its_version_is_short_and_harmless(said):
    version = scheme(stack="evil", stack_version=said).version
    assert 0 < len(version) <= 60
    assert all(c.isascii() and (c.isalnum() or c == ".") for c in version)


def test_a_digest_tells_builds_apart_that_say_nothing():
    one, other = (scheme(stack="own", stack_version="x", stack_digest=digit * 16) for digit in "ab")
    assert one.id != other.id


def test_names_and_versions_are_in_no_key():
    """Results are found by keys, so keys must not depend on names of schemes, which may change."""
    made = trial(stack="quinn", stack_version="quinn 0.11.12", kernel_release="7.2.12")
    assert made.key == trial(stack="quinn", stack_version="other", kernel_release="6.12.0").key
    assert {field.name for field in dataclasses.fields(Scheme)} == {
        "algorithm", "stack", "stack_version", "stack_digest", "kernel", "kernel_release", "kernel_digest",
    }  # fmt: skip

"""Names of schemes, which contain the version of the stack under test, taken from untrusted text."""

import dataclasses

import pytest
from helpers import scheme, trial
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.trials.trial import Scheme

GNUTLS = "libgnutls30 3.7.9-2+deb12u6, libngtcp2-9 0.12.1+dfsg-1+deb12u1, ngtcp2-server 0.12.1+dfsg-1+deb12u1"


@pytest.mark.parametrize(
    ("stack", "said", "version"),
    [
        ("linux-tcp", "nginx/1.22.1, OpenSSL 3.0.19", "6.12.0"),
        ("linux-tcp-h2", "nginx/1.22.1, libcurl/7.88.1", "6.12.0"),
        ("quinn", "quinn 0.11.12, quinn-proto 0.11.19, h3 0.0.8; client h3-client (libngtcp2-9 0.12.1)", "0.11.12"),
        ("quinn-fork", "quinn 0.11.12, quinn-proto 0.11.19", "0.11.12"),
        ("ngtcp2", f"{GNUTLS}; client h3-client", "0.12.1"),
        ("cloudflare-quiche", "tokio-quiche 0.20.1, quiche 0.30.0", "0.30.0"),
        ("google-quiche", "QUICHE of Envoy 1.40.0", "1.40.0"),
        ("quic-go", "quic-go v0.65.0, go1.26.8", "0.65.0"),
        ("msquic", "msquic 2.5.1 (crate msquic 2.5.1-beta)", "2.5.1"),
        ("own", "a build of Tuesday; client h3-client 1.2.3", "55555555"),
        ("own", "", "55555555"),
    ],
)
def test_a_scheme_is_called_by_the_version_of_what_is_under_test(stack, said, version):
    assert scheme(stack=stack, stack_version=said).id == f"cubic/{stack}/{version}"


@pytest.mark.parametrize(
    ("said", "client"),
    [
        ("aioquic 1.7.2", None),
        ("aioquic 1.7.2; client h3-client (libngtcp2-9 0.12.1)", "h3-client"),
        (f"{GNUTLS}; client h3-client", "h3-client"),
        ("aioquic 1.7.2; client ", None),
        ("QUICHE of Envoy 1.40.0; client libgnutls30 3.7.9, libngtcp2-9 0.12.1", None),  # about its own client
    ],
)
def test_a_scheme_says_whose_client_fetched(said, client):
    assert scheme(stack="aioquic", stack_version=said).client == client


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


@pytest.mark.parametrize(
    ("said", "client"),
    [
        ("aioquic 1.7.2", None),
        ("aioquic 1.7.2; client h3-client (libgnutls30 3.7.9, libngtcp2-9 0.12.1+dfsg-1+deb12u1)", "h3-client 0.12.1"),
        ("aioquic 1.7.2; client h3-client (ngtcp2 1.11.0, nghttp3 0.8.0, boringssl 14.0.0+r45)", "h3-client 1.11.0"),
        ("hypercorn 0.18.0; client linux-tcp-h2 (nginx/1.22.1, libcurl/7.88.1)", "linux-tcp-h2"),
        (f"{GNUTLS}; client h3-client", "h3-client"),
        ("QUICHE of Envoy 1.40.0; client libgnutls30 3.7.9, libngtcp2-9 0.12.1+dfsg-1+deb12u1", "own 0.12.1"),
    ],
)
def test_lines_say_which_client_they_were_measured_with(said, client):
    assert scheme(stack="own", stack_version=said).client_and_version == client

"""The certificates that every trial uses: strict clients accept them, and a handshake has the same size everywhere."""

import os
import ssl
import subprocess

import pytest

from conformance.lab import pki


@pytest.mark.slow
def test_a_strict_client_trusts_the_authority_that_signed_and_no_other(own_cache):
    """Python verifies strictly from 3.13 on; it refuses an authority that does not say that its key may sign."""
    folder = pki.ensure()
    for authority, is_trusted in (("ca.crt", True), ("other-ca.crt", False)):
        command = ["openssl", "verify", "-x509_strict", "-CAfile", folder / authority, folder / "server.crt"]
        assert (subprocess.run(command, capture_output=True).returncode == 0) == is_trusted
    assert {file.name for file in folder.iterdir()} == {"ca.crt", "other-ca.crt", "server.crt", "server.key"}
    # Its size decides how many packets a handshake takes, so another size changes results.
    assert len(ssl.PEM_cert_to_DER_cert((folder / "server.crt").read_text())) == 797


def test_stacks_may_read_certificates_whatever_the_umask_is(own_cache, monkeypatch):
    monkeypatch.setattr(pki, "_make", lambda folder: None)
    before = os.umask(0o077)
    try:
        assert pki.ensure().stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(before)

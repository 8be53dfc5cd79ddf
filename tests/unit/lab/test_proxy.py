"""The splitting proxy in namespaces of this machine's own kernel, without guest or root (tests/proxy_scenarios.py)."""

import pathlib
import subprocess
import sys

import proxy_scenarios
import pytest

from conformance.lab import proxy, proxy_network
from conformance.model.errors import UserError
from conformance.model.networks.proxy import Proxy

_SCRIPT = pathlib.Path(proxy_scenarios.__file__)


@pytest.fixture(scope="module")
def splitter():
    if why_not := proxy_network.allowed():
        pytest.skip(why_not)
    return proxy.program(Proxy())


@pytest.mark.slow
@pytest.mark.parametrize("scenario", proxy_scenarios.SCENARIOS, ids=lambda s: s.__name__)
def test_scenario(splitter, scenario):
    done = subprocess.run(
        [*proxy_network.UNSHARE, sys.executable, _SCRIPT, splitter, scenario.__name__],
        capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ([], 64, "usage: splitter -p PORT"),
        (["-p", "70000"], 64, "usage"),
        (["-p", "x"], 64, "x is not a whole number"),
        (["-p", "443", "-b", "-1"], 64, "-1 is not a whole number"),
        (["-p", "443", "-c", "nosuchcc"], 1, "nosuchcc: No such file or directory"),
    ],
)
def test_wrong_options_are_said_at_once(splitter, options, status, words):
    done = subprocess.run([*proxy_network.UNSHARE, splitter, *options], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr


def test_it_says_how_many_connections_few_files_allow(splitter):
    few = ["prlimit", "--nofile=300:300", splitter, "-p", "443", "-c", "nosuchcc"]
    done = subprocess.run([*proxy_network.UNSHARE, *few], capture_output=True, text=True, timeout=20)
    assert "splitter: RLIMIT_NOFILE is below 65536: at most 7 connections at a time" in done.stderr


def test_without_the_right_to_be_transparent_it_says_which_is_missing(splitter):
    no_rights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups"]
    done = subprocess.run([*no_rights, splitter, "-p", "4433"], capture_output=True, text=True, timeout=20)
    if "setpriv" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 1
    assert "cannot set IP_TRANSPARENT, which needs CAP_NET_ADMIN: Operation not permitted" in done.stderr


def test_options_become_arguments():
    made = Proxy(to_client="cubic", to_server="bbr", receive_buffer_bytes=9, back_pressure_bytes=50_000)
    assert proxy.options(made, 443) == ["-p", "443", "-c", "cubic", "-s", "bbr", "-R", "9", "-b", "50000"]
    assert proxy.options(Proxy(program="pepsal", digest="0"), 443) == ["-p", "443"]


def test_pepsal_is_taken_from_path_and_known_by_its_digest(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="pepsal is not on PATH; install it, or use the suite's own: --proxy splitter"):
        proxy.choose("pepsal")
    fake = tmp_path / "pepsal"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    chosen = proxy.choose("pepsal")
    assert proxy.program(chosen) == fake
    fake.write_text("#!/bin/sh\nexit 1\n")
    assert proxy.choose("pepsal").digest != chosen.digest
    with pytest.raises(UserError, match="has changed since it was chosen"):
        proxy.program(chosen)


def test_no_proxy_has_no_options():
    assert proxy.choose("none") is None
    with pytest.raises(UserError, match="options of a proxy were given, but no proxy"):
        proxy.choose("none", to_client="cubic")

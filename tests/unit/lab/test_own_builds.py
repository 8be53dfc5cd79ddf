"""Adapters that take a user's build: what they copy, what they say of it, what they refuse, and how they call it."""

import json
import os
import subprocess

import pytest

from conformance.lab import manifest
from conformance.support import paths

#: stand-ins that print the help and versions that the adapters read, and else the words they were called with
HTTP_SERVER = """# lsquic/4.9.3
[ "$1" != -h ] || { echo '   -A CC_ALGO  Congestion control algorithm.  The following algorithms are
                 supported.
                   1: Cubic
                   2: BBRv1
                   3: Adaptive congestion control (this is the default).
   -g          Use sendmmsg() to send packets.'; exit; }
echo "$@"
"""
NEQO_SERVER = """case "$1" in
    --version) echo neqo-bin 0.30.1 ;;
    --help) echo '      --cc <CONGESTION_CONTROL>
          [default: cubic]
          [possible values: newreno, cubic]
      --ss <SLOW_START>
          [possible values: classic, hystart, search]' ;;
    *) if [ -e "$0.old" ]; then echo 'Minimum NSS version of 3.121 not supported'; fi; echo "$@" ;;
esac
"""
#: what tells where a program's libraries lie; a file `missing` beside them makes it say that one is not there
LDD = """here="${0%/*}/../nss/lib"
at="$here/libnss3.so (0x1)"
[ ! -e "$here/missing" ] || at="not found"
echo "	libnss3.so => $at"
echo "	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)"
"""
TOOL = 'echo "${0##*/} $*" >> "$CC_SCRATCH/called"'


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def own(tmp_path):
    """A user's build of lsquic and one of neqo, with an NSS beside; its folder."""
    program(tmp_path / "lsquic/bin/http_server", HTTP_SERVER)
    program(tmp_path / "neqo/target/release/neqo-server", NEQO_SERVER)
    for tool in ("certutil", "pk12util"):
        program(tmp_path / "nss/bin" / tool, TOOL)
    for library in ("nss3", "softokn3", "freebl3", "freeblpriv3"):
        path = tmp_path / f"nss/lib/lib{library}.so"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\0Version: NSS 3.124 Beta\0")
    program(tmp_path / "tools/ldd", LDD)
    program(tmp_path / "tools/openssl", 'echo "openssl $1" >> "$CC_SCRATCH/called"')
    for folder in ("made", "scratch"):
        (tmp_path / folder).mkdir()
    return tmp_path


def ask(own, stack, program, verb=None, **variables):
    """Run the adapter's `program` with only what a user and the suite would have set; (status, stdout, stderr)."""
    environment = {
        "PATH": f"{own}/tools:{os.environ['PATH']}", "CC_BUILD": f"{own}/made", "CC_SCRATCH": f"{own}/scratch",
        "CC_ADDRESS": "10.0.0.1", "CC_PORT": "4433", "CC_HOSTNAME": "server", "CC_CERT": "c", "CC_KEY": "k",
        **variables,
    }  # fmt: skip
    path = paths.data("adapters", stack, program)
    ended = subprocess.run([path, *([verb] if verb else [])], env=environment, capture_output=True, text=True)
    return ended.returncode, ended.stdout.strip(), ended.stderr.strip()


@pytest.mark.parametrize("home", ["lsquic", "lsquic/bin"])
def test_lsquic_is_taken_from_the_folder_of_its_build(own, home):
    status, said, _ = ask(own, "lsquic", "build", LSQUIC_HOME=f"{own}/{home}")
    assert status == 0
    described = json.loads(said)
    assert described["version"].startswith("lsquic 4.9.3 (build ")
    assert described["algorithms"] == ["Cubic", "BBRv1", "Adaptive"]
    # Each name of the manifest is one that the server has.
    about = manifest.read("lsquic")
    assert {about.called(name) for name in about.algorithms} <= set(described["algorithms"])


def test_lsquic_is_called_by_the_number_that_its_help_has(own):
    ask(own, "lsquic", "build", LSQUIC_HOME=f"{own}/lsquic")
    for name, number in (("Cubic", 1), ("BBRv1", 2)):
        status, said, _ = ask(own, "lsquic", "lsquic", "server", CC_CALLED=name)
        assert (status, said) == (0, f"-s 10.0.0.1:4433 -c server,c,k -A {number}")
    assert ask(own, "lsquic", "lsquic", "server", CC_CALLED="reno") == (127, "", "")
    assert ask(own, "lsquic", "lsquic", "client", CC_CALLED="Cubic") == (127, "", "")


def test_neqo_is_taken_with_its_nss(own):
    status, said, _ = ask(own, "neqo", "build", NEQO_HOME=f"{own}/neqo")
    assert status == 0
    described = json.loads(said)
    assert described["version"].startswith("neqo 0.30.1 (build ")
    assert described["version"].endswith("), NSS 3.124")
    assert described["algorithms"] == ["newreno", "cubic"]
    taken = {path.name for path in (own / "made").iterdir()}
    assert {"neqo-server", "certutil", "pk12util", "libnss3.so", "libsoftokn3.so", "libfreeblpriv3.so"} <= taken
    assert "libc.so.6" not in taken


def test_neqo_gets_its_key_in_a_database(own):
    ask(own, "neqo", "build", NEQO_HOME=f"{own}/neqo")
    status, said, _ = ask(own, "neqo", "neqo", "server", CC_CALLED="newreno", CC_QLOG="q")
    assert (status, said) == (0, f"--qlog-dir q -d {own}/scratch/nss --cc newreno 10.0.0.1:4433")
    called = [line.split()[0] for line in (own / "scratch/called").read_text().splitlines()]
    assert called == ["openssl", "certutil", "pk12util"]
    assert ask(own, "neqo", "neqo", "server", CC_CALLED="reno")[0] == 127


@pytest.mark.parametrize(
    ("stack", "variables", "touched", "message"),
    [
        ("lsquic", {"LSQUIC_HOME": "{own}/none"}, None, "no http_server in {own}/none or its bin (LSQUIC_HOME)"),
        ("lsquic", {}, None, "http_server is not on PATH"),
        ("lsquic", {"LSQUIC_HOME": "{own}/lsquic"}, "nss/lib/missing", "http_server lacks libnss3.so"),
        ("neqo", {"NEQO_HOME": "{own}/none"}, None, "no neqo-server in {own}/none or its target/release (NEQO_HOME)"),
        ("neqo", {}, None, "neqo-server is not on PATH"),
        ("neqo", {"NEQO_HOME": "{own}/neqo"}, "nss/lib/missing", "neqo-server lacks libnss3.so"),
        ("neqo", {"NEQO_HOME": "{own}/neqo"}, "neqo/target/release/neqo-server.old", "too old an NSS; set NSS_DIR"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_named_in_a_line(own, stack, variables, touched, message):
    if touched:
        (own / touched).touch()
    given = {name: value.format(own=own) for name, value in variables.items()}
    status, said, complaint = ask(own, stack, "build", **given)
    assert (status, said) == (1, "")
    assert message.format(own=own) in complaint
    assert "\n" not in complaint


def test_another_program_of_that_name_is_refused(own):
    program(own / "lsquic/bin/http_server", "echo something else")
    status, _, complaint = ask(own, "lsquic", "build", LSQUIC_HOME=f"{own}/lsquic")
    assert status == 1
    assert complaint.startswith(f"error: {own}/lsquic/bin/http_server does not say its version and algorithms")

"""Adapters that take a user's build: what they copy, say about it and refuse, and how they call its programs."""

import json
import os
import re
import subprocess

import pytest
from helpers import program

from conformance.lab import manifest
from conformance.support import paths

#: stand-ins that print the help and versions that the adapters read, or else their arguments
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
#: a stand-in for ldd; it reports a library as not found if a file `missing` lies beside the libraries
LDD = """here="${0%/*}/../nss/lib"
at="$here/libnss3.so (0x1)"
[ ! -e "$here/missing" ] || at="not found"
echo "	libnss3.so => $at"
echo "	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)"
"""
TOOL = 'echo "${0##*/} $*" >> "$CC_SCRATCH/called"'


@pytest.fixture
def own(tmp_path):
    """Make a user's builds of lsquic and of neqo, with an NSS beside them; return their folder."""
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


def ask(own, stack, program, verb=None, cwd=None, **variables):
    """Run an adapter's `program` with a user's and the suite's variables only; return (status, stdout, stderr)."""
    environment = {
        "PATH": f"{own}/tools:{os.environ['PATH']}", "CC_BUILD": f"{own}/made", "CC_SCRATCH": f"{own}/scratch",
        "CC_ADDRESS": "10.0.0.1", "CC_PORT": "4433", "CC_HOSTNAME": "server", "CC_CERT": "c", "CC_KEY": "k",
        **variables,
    }  # fmt: skip
    path = paths.data("adapters", stack, program)
    ended = subprocess.run([path, *([verb] if verb else [])], env=environment, capture_output=True, text=True, cwd=cwd)
    return ended.returncode, ended.stdout.strip(), ended.stderr.strip()


@pytest.mark.parametrize("home", ["lsquic", "lsquic/bin"])
def test_lsquic_is_taken_from_the_folder_of_its_build(own, home):
    status, said, _ = ask(own, "lsquic", "build", LSQUIC_HOME=f"{own}/{home}")
    assert status == 0
    described = json.loads(said)
    assert described["version"].startswith("lsquic 4.9.3 (build ")
    assert described["algorithms"] == ["Cubic", "BBRv1", "Adaptive"]
    # The server has each name that is in the manifest.
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


GTLSSERVER = "echo '  --cc=(cubic|reno|bbr)'"


@pytest.mark.parametrize("at", ["", "examples", "examples/.libs", "build/examples"])
@pytest.mark.parametrize("name", ["gtlsserver", "osslserver"])
def test_ngtcp2_is_taken_from_where_its_build_has_it_whatever_its_tls_is(own, at, name):
    program(own / "ngtcp2" / at / name, GTLSSERVER)
    header = own / "ngtcp2/build/lib/includes/ngtcp2/version.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define NGTCP2_VERSION "1.99.0-DEV"\n')
    status, said, _ = ask(own, "ngtcp2-1.11", "build", NGTCP2_HOME=f"{own}/ngtcp2")
    assert status == 0
    about = json.loads(said)
    assert re.fullmatch(rf"{name} of ngtcp2 1\.99\.0-DEV \(build \w{{8}}\)", about["version"])
    assert about["algorithms"] == ["cubic", "reno", "bbr"]
    taken = {p.name for p in (own / "made").iterdir()}
    assert taken == {"gtlsserver", "libnss3.so", "own", "package-versions", "random_device.so"}


def test_the_script_of_autotools_is_not_taken_for_the_server(own):
    program(own / "ngtcp2/examples/gtlsserver", "echo libtool")
    program(own / "ngtcp2/examples/.libs/gtlsserver", GTLSSERVER)
    assert ask(own, "ngtcp2-1.11", "build", NGTCP2_HOME=f"{own}/ngtcp2")[0] == 0
    assert "bbr" in (own / "made/gtlsserver").read_text()


@pytest.mark.parametrize("at", ["", "sbin"])
def test_haproxy_is_taken_with_all_its_libraries_and_their_loader(own, at):
    """It is treated like the packaged one, which runs with a loader of its own."""
    (own / "tools/ldd").unlink()
    server = own / "haproxy" / at / "haproxy"
    server.parent.mkdir(parents=True, exist_ok=True)
    text = 'int puts(const char *);int main(void){puts("HAProxy version 3.3-dev7 2025/01/01 - h\\n x +QUIC +LUA x");}'
    (own / "x.c").write_text(text)
    subprocess.run(["cc", "-o", server, own / "x.c"], check=True)
    status, _, complaint = ask(own, "haproxy", "build", HAPROXY_HOME=f"{own}/haproxy", cwd=own / "scratch")
    assert (status, complaint) == (0, "")
    assert re.fullmatch(r"haproxy 3\.3-dev7 \(build \w{8}\)\n", (own / "made/versions").read_text())
    assert (own / "made/files.lua").exists()
    assert {"libc.so.6"} <= {p.name for p in (own / "made/lib").iterdir()}
    assert json.loads(ask(own, "haproxy", "haproxy", "describe")[1])["version"].startswith("haproxy 3.3-dev7 ")


@pytest.mark.parametrize(
    ("stack", "variable", "words"),
    [
        ("ngtcp2-1.11", "NGTCP2_HOME", "no example server in {own}/none, its examples or build/examples (NGTCP2_HOME)"),
        ("haproxy", "HAPROXY_HOME", "no haproxy in {own}/none or its sbin (HAPROXY_HOME)"),
    ],
)
def test_a_folder_without_the_optional_server_is_refused(own, stack, variable, words):
    status, _, complaint = ask(own, stack, "build", **{variable: f"{own}/none"})
    assert status != 0
    assert complaint == f"error: there is {words.format(own=own)}"


def test_a_server_that_lacks_a_library_or_has_none_is_refused(own):
    take = paths.data("adapters", "common", "own-program", "take")
    (own / "nss/lib/missing").touch()
    program(own / "haproxy/haproxy", "")
    status, _, complaint = ask(own, "haproxy", "build", HAPROXY_HOME=f"{own}/haproxy")
    assert (status, complaint) == (1, f"error: {own}/haproxy/haproxy lacks libnss3.so")
    program(own / "tools/ldd", "exit 1")
    words = [take, own / "haproxy/haproxy", own / "made/x", own / "made/lib"]
    environment = {"PATH": f"{own}/tools:{os.environ['PATH']}"}
    assert subprocess.run(words, env=environment).returncode == 0
    ended = subprocess.run([*words, "all"], env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ") and "is linked statically" in ended.stderr


@pytest.mark.parametrize("stack", ["aioquic", "google-quiche", "linux-tcp-h2-hypercorn"])
def test_a_system_without_pip_is_told_how_to_get_it(own, stack):
    (own / "scratch/pip.py").write_text("raise SystemExit(1)")  # found before the system's, if that has any
    status, _, complaint = ask(own, stack, "build", cwd=own / "scratch")
    assert (status, complaint) == (1, "error: /usr/bin/python3 has no pip: run `apt-get install python3-pip`")

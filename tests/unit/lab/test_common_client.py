"""What the common QUIC client can be asked for (docs/contract.md), over loopback, at two servers that share no code."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from conformance.lab import adapter, building, manifest, pki
from conformance.model.errors import UserError

OWN_SERVER = pathlib.Path(__file__).parents[2] / "quic_server.py"
SIZES = (1000, 200_000, 5_000_000)


def built(name):
    """Return the folder of an adapter's build; skip the test if the adapter is not built."""
    about = manifest.read(name)
    if not adapter.is_built(about):
        pytest.skip(f"{name} is not built")
    return building.place(name, adapter.files_digest(about))


def serve_ngtcp2(loopback, *names):
    """Start the server of the first of these adapters that this machine has; skip the test if there is none."""
    for name in names:
        try:
            stack = adapter.load(name, adapter.OWN)
        except UserError:
            continue
        loopback.serve(str(stack.manifest.folder / stack.manifest.program), "server", CC_BUILD=str(stack.build))
        return
    pytest.skip(f"there is no {' and no '.join(names)}")


class Loopback:
    """A server and the common client, both on this machine."""

    def __init__(self, folder):
        self.folder, keys = folder, pki.ensure()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "www").mkdir()
        for size in SIZES:
            (folder / "www" / str(size)).write_bytes(bytes(size))
        self.environment = {
            "PATH": manifest.GUEST_PATH, "CC_ADDRESS": "127.0.0.1", "CC_PORT": str(self.port),
            "CC_HOSTNAME": pki.HOSTNAME, "CC_CA": str(keys / "ca.crt"), "CC_CERT": str(keys / "server.crt"),
            "CC_KEY": str(keys / "server.key"), "CC_WWW": str(folder / "www"), "CC_ALGORITHM": "cubic",
            "CC_CALLED": "cubic", "CC_BYTES": "5000000", "CC_SCRATCH": str(folder),
        }  # fmt: skip
        #: TLS secrets that the server writes
        self.secrets = folder / "server.keys"
        self.server = None

    def serve(self, *command, **variables):
        with open(self.folder / "server.log", "w") as log:
            self.server = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True,
                env={**self.environment, "SSLKEYLOGFILE": str(self.secrets), **variables},
            )  # fmt: skip
        while f":{self.port:04X} " not in pathlib.Path("/proc/net/udp").read_text():
            assert self.server.poll() is None, (self.folder / "server.log").read_text()
            time.sleep(0.02)

    def end(self):
        if self.server:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()

    def start(self, **variables):
        """Start the client. A variable whose text has lines becomes a file with them."""
        for name, text in variables.items():
            if "\n" in text:
                (self.folder / name).write_text(text)
                variables[name] = str(self.folder / name)
        program = str(built("h3-client") / "client")
        return subprocess.Popen(
            [program], env={**self.environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def fetch(self, **variables):
        """Return what the client reports."""
        client = self.start(**variables)
        report, complaint = client.communicate(timeout=60)
        assert client.returncode == 0, complaint
        return json.loads(report)

    def failure(self, **variables):
        """Return the line with which the client fails."""
        return self.end_of(self.start(**variables))

    def end_of(self, client):
        report, complaint = client.communicate(timeout=60)
        assert (client.returncode, report, complaint.count("\n")) == (1, "", 1)
        return complaint.strip()


@pytest.fixture
def loopback(tmp_path):
    made = Loopback(tmp_path)
    yield made
    made.end()


def serve_own(loopback, word=""):
    loopback.serve("/usr/bin/python3", "-ISB", str(OWN_SERVER), str(built("aioquic")), word)


@pytest.fixture(params=["ngtcp2", "aioquic"])
def served(request, loopback):
    """The client, and one of two servers."""
    if request.param == "aioquic":
        serve_own(loopback)
    else:
        serve_ngtcp2(loopback, "ngtcp2", "ngtcp2-1.11")
    return loopback


def test_without_variables_nothing_is_reported_of_connections(served):
    assert served.fetch().keys() == {"bytes", "completion_s", "handshake_s"}


def test_secrets_are_written_where_a_trace_wants_them_as_the_server_has_them(served, tmp_path):
    kept = tmp_path / "client.keys"
    served.fetch(SSLKEYLOGFILE=str(kept))
    ours, theirs = ({tuple(text.split()) for text in path.read_text().splitlines()} for path in (kept, served.secrets))
    assert {label for label, *_ in ours & theirs} >= {
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0",
    }  # fmt: skip


def test_secrets_that_cannot_be_written_are_one_line(loopback):
    line = loopback.failure(SSLKEYLOGFILE="/nowhere/keys")
    assert line == "cannot write to /nowhere/keys (SSLKEYLOGFILE): No such file or directory"


@pytest.mark.parametrize("policy", ["packets 1 0.1", "packets 25 0.1", "rtt 0.25 0.1"])
def test_a_policy_of_acknowledgements_holds_up_no_transfer(served, policy):
    assert served.fetch(CC_ACKS=policy)["bytes"] == 5_000_000


def acknowledged(loopback, word, policy, **variables):
    """Return what a server heard of each acknowledgement of a client with this policy.

    Without other variables the client asks for 1 MB and, after a pause, for a little more: the server answers this only
    after it has read every acknowledgement of the megabyte, so none is missing from its log, however slow it is.
    """
    serve_own(loopback, word)
    loopback.fetch(CC_ACKS=policy, **({"CC_REQUESTS": "1000000 pause 0.3\n1000 pause 0\n"} | variables))
    return [json.loads(text) for text in (loopback.folder / "server.log").read_text().splitlines()]


def test_acknowledgements_count_marks_and_wait_for_packets(loopback):
    heard = acknowledged(loopback, "acks", "packets 25 0.2")
    largest, (ect0, ect1, ce) = heard[-1]["largest"], heard[-1]["ecn"]
    assert largest > 700 and 0.9 * largest < ect0 and (ect1, ce) == (0, 0)
    assert len(heard) < largest / 25 + 25


#: policies by which packets of a short transfer would be acknowledged late
LATE = pytest.mark.parametrize("policy", ["packets 25 0.2", "rtt 1000 0.2"])


@LATE
def test_a_mark_of_congestion_is_acknowledged_at_once(loopback, policy):
    heard = acknowledged(loopback, "ce", policy)
    assert len(heard) > 0.9 * heard[-1]["largest"]
    assert heard[-1]["ecn"][2] > 700


@LATE
def test_a_gap_is_acknowledged_at_once(loopback, policy):
    """Of ten packets, one number is left out; what is due by the policy alone would be too late."""
    heard = acknowledged(loopback, "skip", policy)
    assert len(heard) > 0.9 * heard[-1]["largest"] / 10


@pytest.mark.parametrize("policy", ["packets 1000 0.5", "rtt 1000000 0.5"])
def test_the_longest_delay_is_announced_and_then_acknowledged(loopback, policy):
    """The delay counts from the first packet that is not acknowledged yet, and is told of the last one."""
    heard = acknowledged(loopback, "acks", policy, CC_REQUESTS="1000 pause 1\n1000 pause 0\n")
    assert {each["longest_s"] for each in heard} == {0.5}
    assert any(each["delay_s"] > 0.2 for each in heard)


def test_a_second_connection_returns_what_the_first_was_given(served):
    """A server may refuse early data; then the request is made again."""
    report = served.fetch(CC_CONNECTIONS="at 0 new\nafter 0.2 resume\n", CC_BYTES="200000")
    assert report["bytes"] == 400_000
    first, second = report["connections"]
    assert first["early_data"] is None
    assert second["early_data"] in ("accepted", "refused")
    assert second["start_s"] >= first["end_s"] + 0.2


def early(loopback):
    """Return what became of the early data of a second connection; its request is made at once, or made again."""
    report = loopback.fetch(
        CC_CONNECTIONS="at 0 new\nafter 0.2 resume\n", CC_REQUESTS="1000 pause 0 1\n1000 pause 0 2\n"
    )
    second = report["connections"][1]
    assert second["start_s"] < second["handshake_s"]
    made_s = second["start_s" if second["early_data"] == "accepted" else "handshake_s"]
    assert report["requests"][1][1] == made_s
    return second["early_data"]


@pytest.mark.parametrize(("word", "early_data"), [("", "accepted"), ("refuse", "refused")])
def test_early_data_are_answered_at_once_or_sent_again(loopback, word, early_data):
    serve_own(loopback, word)
    assert early(loopback) == early_data


def test_ngtcp2_accepts_early_data_unless_it_holds_the_ticket_for_a_copy(loopback):
    """Where the machine is busy, the age of a ticket differs from what GnuTLS reckons.

    In a guest, where time is exact, it does not (test_client_plan_guest.py).
    """
    serve_ngtcp2(loopback, "ngtcp2", "ngtcp2-1.11")
    assert early(loopback) in ("accepted", "refused")


@pytest.mark.parametrize(("second", "token"), [("resume", "come again"), ("new", "none")])
def test_a_second_connection_returns_the_token_if_it_should(loopback, second, token):
    serve_own(loopback, "token")
    loopback.fetch(CC_CONNECTIONS=f"at 0 new\nafter 0.2 {second}\n", CC_BYTES="1000")
    assert (loopback.folder / "server.log").read_text().splitlines() == ["none", token]


@pytest.mark.parametrize(("second", "retries"), [("resume", 1), ("new", 2)])
def test_a_token_spares_a_connection_the_check_of_its_address(loopback, second, retries):
    """As ngtcp2's server says, which checks addresses by Retry where no token comes."""
    if not shutil.which("gtlsserver"):
        pytest.skip("there is no gtlsserver (of ngtcp2-server)")
    keys = pki.ensure()
    options = ["--validate-addr", f"--htdocs={loopback.folder}", "127.0.0.1", str(loopback.port)]
    loopback.serve("gtlsserver", *options, str(keys / "server.key"), str(keys / "server.crt"))
    loopback.fetch(CC_CONNECTIONS=f"at 0 new\nafter 0.2 {second}\n", CC_BYTES="1000")
    assert (loopback.folder / "server.log").read_text(errors="replace").count("Sending Retry packet") == retries


def test_connections_that_start_at_once_have_their_own_requests(served):
    report = served.fetch(
        CC_CONNECTIONS="at 0 new\nat 0.05 new\n",
        CC_REQUESTS="1000 every 0.1 1\n1000 pause 0 2\n200000 every 0.1 1\n1000 pause 0.3 1\n",
    )
    assert [request[0] for request in report["requests"]] == [1000, 1000, 200_000, 1000]
    first, second = report["connections"]
    assert second["start_s"] >= 0.05
    assert first["start_s"] < second["start_s"] < second["end_s"] < first["end_s"]
    made_s = [request[1] for request in report["requests"]]
    assert made_s[0] == first["handshake_s"] and made_s[1] == second["handshake_s"]
    assert made_s[2] >= made_s[0] + 0.1 - 1e-6


#: what makes a transfer last for half a second
SLOW = {"CC_BYTES": "200000", "CC_WINDOWS": "40000 40000", "CC_READ_BYTES_PER_S": "400000"}


def test_a_connection_moves_to_another_port(served):
    report = served.fetch(CC_MIGRATE_S="0.2", **SLOW)
    assert report["connections"][0]["migration"] == "validated"
    assert report["bytes"] == 200_000


@pytest.mark.parametrize(("word", "migration"), [("forbid", "forbidden"), ("keep", "no connection ID")])
def test_a_server_that_makes_migration_impossible_is_named(loopback, word, migration):
    serve_own(loopback, word)
    report = loopback.fetch(CC_MIGRATE_S="0.2", **SLOW)
    assert report["connections"][0]["migration"] == migration


def test_a_port_from_which_no_answer_comes_is_one_that_failed(loopback):
    """A client gives a new path up after three of its longest timeouts (RFC 9000, section 8.2.4)."""
    serve_own(loopback, "mute")
    report = loopback.fetch(
        CC_MIGRATE_S="0.2", CC_BYTES="200000", CC_WINDOWS="20000 20000", CC_READ_BYTES_PER_S="40000"
    )
    assert report["connections"][0]["migration"] == "failed"


def test_a_body_can_be_stopped(served):
    """The reset that answers is no error, and the next request is made on the same connection."""
    report = served.fetch(
        CC_STOP_BYTES="50000", CC_WINDOWS="100000 60000", CC_REQUESTS="200000 pause 0\n1000 pause 0\n"
    )
    stopped, whole = (request[0] for request in report["requests"])
    assert 50_000 <= stopped < 60_000 and whole == 1000
    assert report["bytes"] == stopped + whole
    (connection,) = report["connections"]
    assert len(connection["resets"]) == 1


def test_a_slow_reader_holds_the_server_back(served):
    assert served.fetch(**SLOW)["completion_s"] >= (200_000 - 40_000) / 400_000 - 0.02


def test_a_connection_ends_when_it_is_idle_for_too_long(served):
    assert served.failure(CC_IDLE_S="0.3", CC_REQUESTS="1000 pause 1\n1000 pause 0\n") == (
        "failed after 1000 of 2000 bytes: no answer"
    )


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"CC_ACKS": "packets 0 1"}, "CC_ACKS must be: packets N LONGEST_S, or: rtt SHARE LONGEST_S"),
        ({"CC_ACKS": "packets 2 20"}, "CC_ACKS must be: packets N LONGEST_S, or: rtt SHARE LONGEST_S"),
        ({"CC_ACKS": "packets 2.5 1"}, "CC_ACKS must be: packets N LONGEST_S, or: rtt SHARE LONGEST_S"),
        ({"CC_ACKS": "bytes 2 1"}, "CC_ACKS must be: packets N LONGEST_S, or: rtt SHARE LONGEST_S"),
        ({"CC_CONNECTIONS": "at 0 resume\n"}, "line 1 of CC_CONNECTIONS must be: at SECONDS new"),
        ({"CC_CONNECTIONS": "at 0 new\nthen 0 new\n"}, "line 2 of CC_CONNECTIONS must be: at|after SECONDS new|resume"),
        ({"CC_CONNECTIONS": "\n\n"}, "CC_CONNECTIONS names no connection"),
        ({"CC_REQUESTS": "1 pause 0 2\n"}, "line 1 of CC_REQUESTS names connection 2 of 1"),
        ({"CC_REQUESTS": "1 pause\n\n"}, "line 1 of CC_REQUESTS must be: BYTES pause|every SECONDS [CONNECTION]"),
        ({"CC_WINDOWS": "1"}, "CC_WINDOWS must be: BYTES of a connection, BYTES of a stream"),
        ({"CC_MIGRATE_S": "soon"}, "CC_MIGRATE_S must be a number above 0"),
        ({"CC_STOP_BYTES": "-1"}, "CC_STOP_BYTES must be a number above 0"),
        ({"CC_READ_BYTES_PER_S": "nan"}, "CC_READ_BYTES_PER_S must be a number above 0"),
        ({"CC_IDLE_S": ""}, "CC_IDLE_S must be a number above 0"),
        ({"CC_BYTES": "none"}, "CC_BYTES must be a number above 0"),
        ({"CC_CA": "/nowhere"}, "cannot read a certificate from /nowhere"),
    ],
)
def test_a_variable_that_says_nothing_is_named_in_one_line(loopback, variables, line):
    assert loopback.failure(**variables) == line


def test_a_certificate_for_another_name_is_refused(served):
    assert served.failure(CC_HOSTNAME="other.test") == "failed after 0 of 5000000 bytes: Hostname mismatch"


def test_a_certificate_of_another_authority_is_refused(served):
    line = served.failure(CC_CA=str(pki.ensure() / "other-ca.crt"))
    assert line.startswith("failed after 0 of 5000000 bytes: ") and "certificate" in line


def test_a_port_at_which_nobody_listens_is_refused(loopback):
    assert loopback.failure() == "cannot receive: Connection refused"


def test_a_server_that_is_killed_in_the_middle_is_noticed(served):
    client = served.start(**SLOW)
    time.sleep(0.25)
    served.end()
    served.server = None
    assert served.end_of(client) in ("cannot receive: Connection refused", "cannot send: Connection refused")


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("broken", "the server closed the connection (PROTOCOL_VIOLATION: no)"),
        ("alert", "the server closed the connection (CRYPTO_ERROR, unexpected_message)"),
        ("reset", "the server reset the stream (H3_INTERNAL_ERROR)"),
        ("close", "the server closed the connection (H3_EXCESSIVE_LOAD: too [2Jmuch)"),
        ("lost", "the server no longer knows the connection (stateless reset)"),
        ("old", "the server does not speak QUIC version 1"),
    ],
)
def test_what_a_server_does_wrong_is_said_in_words(loopback, word, line):
    serve_own(loopback, word)
    assert loopback.failure(CC_BYTES="200000").partition(": ")[2] == line


def test_the_program_is_the_one_of_client_sha256():
    digest = hashlib.sha256((built("h3-client") / "client").read_bytes()).hexdigest()
    assert digest == (manifest.read("h3-client").folder / "client.sha256").read_text().strip()


def test_the_first_flight_is_one_datagram(loopback):
    """So it has no key share of post-quantum cryptography."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", loopback.port))
        client = loopback.start()
        try:
            assert len(silent.recv(65536)) == 1200
            silent.settimeout(0.3)
            with pytest.raises(TimeoutError):
                silent.recv(65536)
        finally:
            client.kill()
            client.communicate()


def test_the_program_asks_the_processor_for_no_random_numbers():
    """A guest's kernel could not answer in its place, and no trial would repeat itself."""
    if not shutil.which("objdump"):
        pytest.skip("there is no objdump (of binutils)")
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(built("h3-client") / "client")]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert code.count("aesenc") > 100  # it was read as code, and BoringSSL's is in it
    assert not re.search(r"\trd(rand|seed)\b", code)


def test_versions_and_licences_of_what_is_linked_lie_beside_the_program():
    folder = built("h3-client")
    assert (folder / "versions").read_text() == "ngtcp2 1.11.0, nghttp3 0.8.0, boringssl 14.0.0+r45\n"
    headings = {text[5:] for text in (folder / "LICENSES").read_text().splitlines() if text.startswith("==== ")}
    ours = {"boringssl/LICENSE", "nghttp3/COPYING", "ngtcp2/COPYING"}
    assert headings == ours | {"libc/musl/COPYRIGHT", "libcxx/LICENSE.TXT", "LICENSE"}  # those of the compiler


@pytest.fixture
def fetch(tmp_path):
    """Return a function that runs the client's `fetch`, and returns the line with which it fails."""
    (tmp_path / "apt-get").write_text("#!/bin/sh\n")
    (tmp_path / "apt-get").chmod(0o755)

    def run(**variables):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **variables}
        program = manifest.read("h3-client").folder / "fetch"
        done = subprocess.run([program, tmp_path / "fetched"], env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        return done.stderr.strip()

    return run


def test_a_source_that_cannot_be_had_is_one_line_that_says_what_to_do(fetch, tmp_path):
    """In a folder without it, in one with another file of its name, and where apt knows no mirror of Debian."""
    (tmp_path / "sources").mkdir()
    line = fetch(H3_CLIENT_SOURCES=str(tmp_path / "sources"))
    assert line == f"error: ngtcp2_1.11.0.orig.tar.xz is not in {tmp_path}/sources (H3_CLIENT_SOURCES)"
    for text in (manifest.read("h3-client").folder / "sources").read_text().splitlines():
        (tmp_path / "sources" / text.split()[1]).write_text("another file")
    line = fetch(H3_CLIENT_SOURCES=str(tmp_path / "sources"))
    assert line.startswith(f"error: files in {tmp_path}/sources (H3_CLIENT_SOURCES) have other digests than")
    shutil.rmtree(tmp_path / "fetched")
    assert fetch() == (
        "error: apt knows no mirror of Debian here: run `apt-get update`, or name one in H3_CLIENT_MIRROR"
    )


def test_a_source_that_debian_has_no_longer_is_one_line_that_says_what_to_do(fetch, tmp_path):
    if not pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists():
        pytest.skip("debian-archive-keyring is not installed")
    (tmp_path / "apt-cache").write_text("#!/bin/sh\n")
    (tmp_path / "apt-cache").chmod(0o755)
    sources = manifest.read("h3-client").folder / "sources"
    assert fetch(H3_CLIENT_MIRROR="http://mirror.test/debian") == (
        f"error: Debian no longer has ngtcp2_1.11.0.orig.tar.xz: put the files that {sources} names into a folder, "
        "and name it in H3_CLIENT_SOURCES"
    )

"""`conformance adapter new`: a new adapter works as it is, and a refusal leaves nothing behind."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest
from helpers import invoke, shown

from conformance.catalogue import documents
from conformance.cli import main
from conformance.commands import adapter_check, adapter_new
from conformance.engine import benches
from conformance.lab import adapter, manifest, pki
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.reporting.text import setup
from conformance.support import paths, schema

SCAFFOLDS = paths.PACKAGE / "scaffold"
LANGUAGES = adapter_new.languages("tcp")
#: all scaffolds, as (transport, language)
ALL = [(transport, language) for transport in ("tcp", "udp") for language in adapter_new.languages(transport)]
SIZE = 300_000


def needs(language, tool, reason="is not here"):
    """Return the language as a parameter that is skipped if its tool is missing."""
    return pytest.param(language, marks=pytest.mark.skipif(not shutil.which(tool), reason=f"{tool} {reason}"))


def fetched(language, tool):
    """Return the language as a parameter that is skipped without its tool or permission to fetch from a registry."""
    here = os.environ.get("CC_TEST_FETCH") == "1" and shutil.which(tool)
    return pytest.param(language, marks=pytest.mark.skipif(not here, reason=f"needs CC_TEST_FETCH=1 and {tool}"))


#: the languages whose scaffolds can be built here; Rust's fetches from a registry
BUILT = [needs("python", "python3"), needs("c", "cc"), needs("go", "go"), fetched("rust", "cargo")]


def test_there_is_one_for_each_language_that_the_command_offers():
    command = main.commands["adapter"].commands["new"]
    (choice,) = [option.type for option in command.params if option.name == "language"]
    assert LANGUAGES == sorted(choice.choices) == ["c", "go", "python", "rust"]
    assert adapter_new.languages("udp") == ["go", "rust"]


@pytest.mark.parametrize(("transport", "language"), ALL)
def test_a_new_adapter_satisfies_the_schema_and_has_its_name_everywhere(transport, language, tmp_path):
    before = os.umask(0o077)
    try:
        path = adapter_new.new("x.1-y", language, tmp_path, transport)
    finally:
        os.umask(before)
    assert path == tmp_path / "x.1-y" / "adapter.json"
    assert schema.load("adapter", path)["name"] == "x.1-y"
    about = manifest.read(str(path))  # executable, and readable by the stacks
    assert about.offered() == (["reno"] if (transport, language) == ("udp", "go") else ["cubic", "reno"])
    assert about.transport == transport
    assert about.client == ("h3-client" if transport == "udp" else None)
    assert about.packages
    files = [file for file in path.parent.rglob("*") if file.is_file()]
    texts = [file.read_text() for file in files]
    assert not any("my-stack" in text for text in texts)
    assert sum("YOUR STACK" in text for text in texts) >= 2
    programs = {about.program, *([about.build["program"]] if about.build else [])}
    assert {str(f.relative_to(about.folder)) for f in files if f.stat().st_mode & 0o111} == programs
    assert {f.stat().st_mode & 0o777 for f in files} <= {0o755, 0o644}
    assert sorted(tmp_path.iterdir()) == [path.parent]


@pytest.mark.parametrize(("transport", "language"), ALL)
def test_what_newcomers_copy_is_short_and_names_no_registry(transport, language):
    for file in (SCAFFOLDS / transport / language).rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            text = file.read_text()
            assert len(text.splitlines()) <= 120 or file.name in ("crates.lock", "go.sum"), file
            assert "source = " not in text or file.name == "build", file
            assert "://" not in text.replace("https://CC_HOSTNAME", "").replace("https://%s", ""), file


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "Big", "-x", "x y", "é", "x\n", "x" * 64])
def test_a_bad_name_is_refused(name, tmp_path):
    with pytest.raises(UserError, match="use at most 63 lower-case letters"):
        adapter_new.new(name, "c", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_transport_that_a_language_has_no_scaffold_for_is_refused(tmp_path):
    command = ["adapter", "new", "x", "--lang", "python", "--transport", "udp", "--into", str(tmp_path)]
    result = invoke(*command)
    assert result.exit_code == 2
    assert result.output == "conformance: there is no scaffold for udp in python; choose --lang go or rust\n"
    assert list(tmp_path.iterdir()) == []


def test_a_quic_stack_in_rust_has_a_copy_of_what_the_suites_own_adapters_share(tmp_path):
    """The adapter may lie anywhere, so none of its files may refer to the suite's folder."""
    home = adapter_new.new("x", "rust", tmp_path, "udp").parent
    shared = paths.data("adapters", "common", "rust")
    names = {file.relative_to(shared) for file in shared.rglob("*") if file.is_file()}
    assert names == {file.relative_to(home / "cc-adapter") for file in home.glob("cc-adapter/**/*") if file.is_file()}
    for name in names:
        assert (home / "cc-adapter" / name).read_bytes() == (shared / name).read_bytes()
    assert 'path = "cc-adapter"' in (home / "Cargo.toml").read_text()
    assert not manifest.read(str(home / "adapter.json")).shares
    # The scaffold's lock file pins the shared crate, as its manifest does.
    lock = (home / "crates.lock").read_text()
    assert 'name = "cc-adapter"' in lock


@pytest.mark.parametrize("there", ["folder", "file", "link"])
def test_what_exists_is_left_alone(there, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "x"
    {"folder": place.mkdir, "file": place.touch, "link": lambda: place.symlink_to("nowhere")}[there]()
    result = invoke("adapter", "new", "x", "--lang", "c")
    assert result.exit_code == 2
    assert result.output == "conformance: x already exists; choose another name, or another folder with --into\n"
    assert list(tmp_path.iterdir()) == [place]
    assert there != "folder" or list(place.iterdir()) == []


def test_a_failure_half_way_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "rename", full)
    with pytest.raises(UserError, match=r"cannot write .*x: No space left on device; name another folder"):
        adapter_new.new("x", "rust", tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match="No such file or directory"):
        adapter_new.new("x", "rust", tmp_path / "nowhere")


def test_the_command_says_how_to_go_on(tmp_path):
    result = invoke("adapter", "new", "x", "--lang", "go", "--into", tmp_path)
    assert result.exit_code == 0, result.output
    for words in ("README.txt", "adapter build", "adapter check", "run cubic"):
        assert words in result.output
    command = ["adapter", "new", "y", "--lang", "go", "--transport", "udp", "--into", str(tmp_path)]
    assert "run reno" in invoke(*command).output
    assert f"{tmp_path}/x/adapter.json" in result.output


@pytest.fixture(scope="module")
def stack(request, tmp_path_factory):
    """Build a new scaffold; return a function that starts one of its verbs with the harness's variables."""
    folder = tmp_path_factory.mktemp(request.param)
    path = adapter_new.new("fresh", request.param, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC_CONFORMANCE_CACHE", str(folder / "cache"))
        build = adapter.build(str(path))
        loaded = adapter.load(str(path))
        certificates = pki.ensure()
    assert loaded.has == {"cubic", "reno"}
    assert loaded.version.startswith("fresh 0.1")
    www = folder / "www"
    www.mkdir()
    (www / str(SIZE)).write_bytes(bytes(SIZE))
    (folder / "7").write_text("outside")
    (www / "secret").write_text("not a body")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # Reno, because a user of a kernel with another default may not choose CUBIC (tcp_allowed_congestion_control).
    variables = {
        **os.environ, "CC_ALGORITHM": "reno", "CC_CALLED": "reno", "CC_ADDRESS": "127.0.0.1", "CC_PORT": str(port),
        "CC_HOSTNAME": pki.HOSTNAME, "CC_BYTES": str(SIZE), "CC_WWW": str(www), "CC_SCRATCH": str(folder),
        "CC_CERT": f"{certificates}/server.crt", "CC_KEY": f"{certificates}/server.key",
        "CC_CA": f"{certificates}/ca.crt", "CC_BUILD": str(build or ""),
    }  # fmt: skip

    def start(verb, **changes):
        return subprocess.Popen(
            [str(loaded.manifest.folder / loaded.manifest.program), verb], env={**variables, **changes}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    start.port, start.certificates = port, certificates
    return start


def finish(process, timeout_s=20):
    """Return (status, stdout, stderr) of a process; kill it if it does not end by itself."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
    return process.returncode, out, err


def wait_until_ready(server, port):
    for _ in range(200):
        assert server.poll() is None, server.stderr.read()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server is not ready")


def status_line(stack, path):
    """Return the status line of the server's answer to a GET of exactly this path."""
    context = ssl.create_default_context(cafile=f"{stack.certificates}/ca.crt")
    with (
        socket.create_connection(("127.0.0.1", stack.port), 10) as plain,
        context.wrap_socket(plain, server_hostname=pki.HOSTNAME) as secure,
    ):
        secure.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return secure.recv(1 << 14).split(b"\r\n")[0].decode()


def assert_failed(done):
    """Assert that a verb failed with a reason of one line and without a result."""
    status, out, err = done
    assert status not in (0, 127)
    assert out == ""
    assert len(err.strip().splitlines()) == 1, err


@pytest.mark.slow
@pytest.mark.parametrize("stack", BUILT, indirect=True)
def test_server_and_client_keep_what_the_guests_check_does_not_see(stack, tmp_path):
    secrets = tmp_path / "secrets"
    server = stack("server", SSLKEYLOGFILE=str(secrets))
    try:
        wait_until_ready(server, stack.port)
        status, out, err = finish(stack("client"))
        assert (status, err) == (0, "")
        result = json.loads(out)
        assert result["bytes"] == SIZE
        assert 0 < result["handshake_s"] <= result["completion_s"] < 20
        assert "SERVER_TRAFFIC_SECRET_0 " in secrets.read_text()
        for path in ("/", "/1", "/secret", "/../7", "/7", f"/{SIZE}/", f"/./{SIZE}/../secret", "/%2e%2e/7"):
            assert " 404 " in status_line(stack, path), path
        assert " 200 " in status_line(stack, f"/{SIZE}")
        assert_failed(finish(stack("client", CC_HOSTNAME="other.test")))
        assert_failed(finish(stack("client", CC_CA=f"{stack.certificates}/other-ca.crt")))
        assert_failed(finish(stack("client", CC_BYTES=str(SIZE + 1))))
        assert finish(stack("client"))[0] == 0
        assert_failed(finish(stack("server")))  # the port is taken
    finally:
        server.terminate()
        began = time.monotonic()
        finish(server)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("stack", BUILT, indirect=True)
def test_a_server_refuses_what_it_does_not_offer(stack):
    status, out, err = finish(stack("server", CC_CALLED="bbr"))
    assert (status, out, len(err.splitlines())) == (127, "", 1)
    assert_failed(finish(stack("server", CC_KEY="/nowhere")))
    assert_failed(finish(stack("nosuchverb")))


@pytest.mark.slow
@pytest.mark.parametrize("stack", BUILT, indirect=True)
@pytest.mark.parametrize("head", [f"Content-Length: {SIZE}\r\n", f"Content-Length: {SIZE // 2}\r\n", ""])
def test_a_client_fails_when_the_body_ends_early_however_politely(stack, head):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{stack.certificates}/server.crt", f"{stack.certificates}/server.key")

    def half():
        plain, _ = listener.accept()
        with context.wrap_socket(plain, server_side=True) as secure:
            secure.recv(1 << 14)
            secure.sendall(f"HTTP/1.1 200 OK\r\n{head}Connection: close\r\n\r\n".encode() + bytes(SIZE // 2))
            with contextlib.suppress(OSError):  # the client may have left
                secure.unwrap()

    with socket.create_server(("127.0.0.1", stack.port)) as listener:
        thread = threading.Thread(target=half, daemon=True)
        thread.start()
        assert_failed(finish(stack("client")))
        thread.join(10)


@pytest.mark.guest
@pytest.mark.parametrize("language", BUILT[:2])
def test_a_new_adapter_keeps_every_clause(language, tmp_path):
    path = adapter_new.new("fresh", language, tmp_path)
    found = adapter_check.compute(benches.Choice(stack=str(path)), None)
    text = shown(setup.show_clauses, found)
    assert found.exit_status == 0, text
    # A new adapter has contract 1, which asks for one body on a connection.
    assert "NO" not in text and text.count("left open") == 1 and "several requests" in text, text


@pytest.mark.guest
@pytest.mark.parametrize("language", [fetched("go", "go"), fetched("rust", "cargo")])
def test_a_new_quic_stack_keeps_every_clause_and_can_be_measured(language, tmp_path):
    path = str(adapter_new.new("fresh", language, tmp_path, "udp"))
    adapter.build(path)
    # No client asks for a path with "..", and Python speaks no HTTP/3. The scaffold's own client fetches one body.
    for client, left_open in ((adapter.COMMON, 1), (adapter.OWN, 2)):
        found = adapter_check.compute(benches.Choice(stack=path, client=client), None)
        text = shown(setup.show_clauses, found)
        assert found.exit_status == 0, text
        assert "NO" not in text and text.count("left open") == left_open, text
    bench = benches.find(benches.Choice(stack=path))
    trials = bench.trials("reno", documents.profile("packets", Cell(10, 20, 1)), [1])
    (measurement,) = bench.place("reno").room.run(bench.adapter, [trials], threading.Event())
    assert measurement.outcome is Outcome.OK
    assert 0.2 < measurement.metrics["utilization"] < 1

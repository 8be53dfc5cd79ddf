"""The manifests that ship, without building or running anything of theirs."""

import dataclasses
import os
import subprocess
import types

import pytest

from conformance.catalogue import studies
from conformance.lab import adapter, manifest
from conformance.model.errors import UserError
from conformance.support import files, paths, schema

MANIFESTS = sorted(paths.data("adapters").glob("*/adapter.json"))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_a_shipped_manifest_is_complete(path):
    data = schema.load("adapter", path)
    assert data["name"] == path.parent.name
    assert os.access(path.parent / data["program"], os.X_OK)
    if "build" in data:
        assert os.access(path.parent / data["build"]["program"], os.X_OK)
    # The contents of another root file system cannot be known, so its manifest lists no algorithms.
    assert ("algorithms" in data) + ("kernel_algorithms" in data) == (not data.get("rootfs"))
    assert data["packages"], "a user who lacks something must be told what to install"
    if "client" in data:
        client = schema.load("adapter", paths.data("adapters", data["client"], "adapter.json"))
        assert client["transport"] == data["transport"]


def test_there_is_a_stack_of_each_transport():
    transports = {schema.load("adapter", path)["transport"] for path in MANIFESTS}
    assert transports == {"tcp", "udp"}


def test_a_folder_stands_for_the_adapter_in_it():
    folder = paths.data("adapters", "quinn")
    assert manifest.read(str(folder)) == manifest.read(str(folder / "adapter.json"))


def test_a_client_only_adapter_offers_no_algorithm():
    assert schema.load("adapter", paths.data("adapters", "h3-client", "adapter.json"))["algorithms"] == {}
    assert "h3-client" in [about.name for about in manifest.shipped()]


def digest(folder):
    """Return the digest of an adapter whose files lie in a folder, or are this one file."""
    return adapter.files_digest(types.SimpleNamespace(takes=(), places=lambda: (folder,)))


def test_a_link_into_another_adapter_counts_with_what_it_leads_to(tmp_path):
    """An adapter that uses another's files becomes another stack when they change."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    (theirs / "client.c").write_text("1")
    (ours / "client.c").symlink_to("../theirs/client.c")
    before = digest(ours)
    (theirs / "client.c").write_text("2")
    changed = digest(ours)
    assert changed != before
    with files.replacing(ours / "expected.json"):  # as an `expect update` leaves it that is killed here
        assert digest(ours) == changed


def test_a_link_to_a_folder_elsewhere_is_refused_as_its_files_would_not_count(tmp_path):
    (tmp_path / "ours" / "lib").mkdir(parents=True)
    (tmp_path / "ours" / "lib" / "a.py").write_text("1")
    before = digest(tmp_path / "ours")
    (tmp_path / "ours" / "lib64").symlink_to("lib")  # as a venv has it
    assert digest(tmp_path / "ours") == before
    (tmp_path / "src").mkdir()
    (tmp_path / "ours" / "src").symlink_to("../src")
    with pytest.raises(UserError, match="ours/src is a link to a folder, whose files would not count; name"):
        digest(tmp_path / "ours")


def test_where_a_file_lies_counts_and_what_version_control_keeps_does_not(tmp_path):
    (tmp_path / "on").mkdir()
    (tmp_path / "on" / "x.conf").write_text("1")
    on = digest(tmp_path)
    (tmp_path / "on").rename(tmp_path / "off")
    assert digest(tmp_path) != on
    (tmp_path / "off").rename(tmp_path / "on")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("a commit")
    assert digest(tmp_path) == on
    (tmp_path / "on" / os.fsdecode(b"notes-\xe9.txt")).write_text("in Latin-1")
    assert digest(tmp_path) != on


def test_a_file_of_an_adapter_that_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / "x").symlink_to("/proc/self/mem")
    with pytest.raises(UserError, match=r"cannot read .*x: Input/output error; make it readable"):
        digest(tmp_path)


@pytest.mark.parametrize("folder", [path.parent for path in MANIFESTS], ids=lambda folder: folder.name)
def test_links_stay_among_the_adapters(folder):
    """A link must lead to a file, and to the same one wherever the suite lies."""
    for link in (path for path in folder.rglob("*") if path.is_symlink()):
        assert link.is_file()
        assert not link.readlink().is_absolute()
        assert link.resolve().is_relative_to(paths.data("adapters").resolve())


@pytest.fixture
def ask(tmp_path):
    """Return a function that runs a verb of google-quiche-options with programs that print what reaches them."""
    about = manifest.read("google-quiche-options")
    for program in ("run-server", "run-client"):
        path = tmp_path / program
        path.write_text('#!/bin/sh\necho "${0##*/} $1 $CC_CALLED ${CC_CONNECTION_OPTIONS-none}"\n')
        path.chmod(0o755)

    def run(verb, algorithm):
        environment = {"PATH": manifest.GUEST_PATH, "CC_BUILD": str(tmp_path), "CC_CALLED": about.called(algorithm)}
        ended = subprocess.run([about.folder / about.program, verb], env=environment, capture_output=True, text=True)
        return ended.returncode, ended.stdout.strip()

    return run


@pytest.mark.parametrize(
    ("algorithm", "option"), [("bbrv1", "TBBR"), ("bbrv2", "B2ON"), ("cubic", "BYTE"), ("reno", "RENO")]
)
def test_google_quiche_options_lets_the_client_alone_choose(ask, algorithm, option):
    assert ask("client", algorithm) == (0, f"run-client client {option} {option}")
    assert ask("server", algorithm) == (0, "run-server server bbr none")


def test_google_quiche_options_refuses_what_is_no_option_of_its_own(ask):
    assert ask("client", "vegas") == ask("server", "vegas") == (127, "")
    assert ask("client", "BYTE RENO") == (127, "")


def test_a_stack_that_is_not_public_has_a_place_and_says_so_in_one_line():
    (closed,) = manifest.not_public()
    assert closed.name == "bequant" and closed.name not in manifest.names()
    assert closed.study in studies.files()
    with pytest.raises(UserError, match=r"stack bequant is unsupported: .* is not public: ") as found:
        manifest.read("bequant")
    assert "\n" not in str(found.value) and closed.source in str(found.value)


def from_suite(folder, sites):
    """Unpack a package of a suite, where apt's sources of Debian are `sites` and a newer version is installed."""
    apt = f"""[ "$1" != indextargets ] || {{ printf %s '{sites}'; exit; }}
case "$*" in
    *download*status=/dev/null* | *status=/dev/null*download*) touch package.deb ;;
    *download*) echo "E: Can't find a source to download it" >&2; exit 100 ;;
esac"""
    for program, text in (("apt-get", apt), ("dpkg-deb", 'case "$1" in -f) echo "$3" ;; esac')):
        (folder / program).write_text(f"#!/bin/sh\n{text}\n")
        (folder / program).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    command = [paths.data("adapters", "ngtcp2-1.11", "from-suite"), "bookworm-backports", folder / "files", "ngtcp2"]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_packages_of_another_suite_are_unpacked_though_newer_ones_are_installed(tmp_path):
    done = from_suite(tmp_path, "http://deb.debian.org/debian\nhttp://mirror.example/debian")
    assert (done.returncode, done.stdout) == (0, "Package Version\n"), done.stderr


def test_packages_of_debian_are_refused_elsewhere_in_one_line(tmp_path):
    done = from_suite(tmp_path, "")
    assert done.returncode == 1
    assert done.stderr.startswith("error: bookworm-backports needs Debian") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "lacking", "mend"),
    [
        ("linux-tcp", ["nginx"], "run `apt-get install nginx-light`"),
        ("linux-tcp-h2", ["curl", "nginx"], "run `apt-get install curl nginx-light`"),
        ("linux-tcp", ["cc"], "run `apt-get install gcc libc6-dev libssl-dev`"),
        ("quinn", ["cargo", "cc"], "install Rust 1.88 or later, with rustup"),
    ],
)
def test_only_the_packages_of_what_is_missing_are_named_where_they_are_known(monkeypatch, name, lacking, mend):
    """Who installed a wheel needs no compiler, which other packages of a manifest are for."""
    monkeypatch.setattr(manifest, "which", lambda tool: None if tool in lacking else f"/usr/bin/{tool}")
    assert manifest.read(name).mend(lacking) == mend


def test_a_package_of_a_program_that_is_there_mends_nothing(monkeypatch):
    monkeypatch.setattr(manifest, "which", lambda tool: "/usr/bin/nginx" if tool == "nginx" else None)
    about = dataclasses.replace(manifest.read("linux-tcp"), needs=("nginx", "frobnicate"), packages=("nginx-light",))
    with pytest.raises(UserError, match="linux-tcp needs frobnicate on PATH; install what is missing; "):
        about.require()


def test_a_stack_that_cannot_run_leads_to_the_check_of_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "GUEST_PATH", str(tmp_path))
    with pytest.raises(UserError, match="on PATH; run `apt-get install nginx-light`; `conformance doctor`"):
        manifest.read("linux-tcp").require()

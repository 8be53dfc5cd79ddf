"""Builds of adapters: made once, complete or not at all, readable by the stacks, and removed when interrupted."""

import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest
import rich.console
from helpers import at_once, invoke, refusal

from conformance.commands import adapter_new
from conformance.lab import adapter, building
from conformance.lab.manifest import read
from conformance.model.errors import UserError
from conformance.reporting.text.progress import ConsoleNotes

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def stack(tmp_path):
    """Return a function that writes an adapter whose build is this shell script, and returns its manifest's path."""

    def write(build, mode=0o755, **recipe):
        folder = tmp_path / "stack"
        folder.mkdir(exist_ok=True)
        about = {
            "contract": 1, "name": "built", "title": "t", "program": "stack", "transport": "tcp",
            "build": {"program": "build", **recipe}, "algorithms": {"cubic": {"called": "c", "evidence": "e"}},
        }  # fmt: skip
        (folder / "adapter.json").write_text(json.dumps(about))
        for name, text in (("stack", 'printf \'{"version": "%s"}\' "$(cat "$CC_BUILD/made")"'), ("build", build)):
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755 if name == "stack" else mode)
        return str(folder / "adapter.json")

    return write


def kept(own_cache):
    return sorted(p.name for p in (own_cache / "adapters").iterdir() if p.is_dir())


def ends(pid):
    """Return whether a process ends within 5 s; a zombie has ended."""
    status = pathlib.Path(f"/proc/{pid}/stat")
    for _ in range(100):
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_is_built_once_and_again_when_a_file_changed(stack, own_cache):
    manifest = stack('date +%N > "$CC_BUILD/made"')
    first = adapter.load(manifest)
    assert adapter.load(manifest) == first
    assert first.version.isdigit()
    stack('date +%N > "$CC_BUILD/made"; true')
    assert adapter.load(manifest).digest != first.digest
    assert len(kept(own_cache)) == 2


def test_is_readable_by_nobody_whatever_the_umask(stack):
    manifest = stack('mkdir "$CC_BUILD/bin"; echo 1 > "$CC_BUILD/made"; cp /bin/true "$CC_BUILD/bin"')
    before = os.umask(0o077)
    try:
        build = adapter.load(manifest).build
    finally:
        os.umask(before)
    assert (build / "bin" / "true").stat().st_mode & 0o005 == 0o005
    assert all(path.stat().st_mode & 0o004 for path in (build, *build.rglob("*")))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        ("echo first; echo 'x.c:1: error: no such thing'; exit 1", "built does not build: x.c:1: error: no such thing"),
        (
            "echo 'error: failed to run custom build command for `a v1`'"
            "; echo \"  thread 'main' (7) panicked at /b.rs:1:2:\"; echo '  no libclang here'; exit 1",
            "built does not build: no libclang here",
        ),
        (
            "echo 'error: rustc 1.85.1 is not supported by the following packages:'"
            "; echo '  icu@2.1 requires rustc 1.9'; echo '  x@1.0 requires rustc 1.88.1'; exit 1",
            r"rustc 1.85.1 is not supported by the following packages; install Rust 1\.88 or later, with rustup$",
        ),
        ("exit 3", "it printed nothing"),
        ("true", "left nothing in CC_BUILD"),
    ],
)
def test_a_build_that_fails_says_why_and_keeps_nothing_but_its_log(stack, own_cache, build, words):
    with pytest.raises(UserError, match=words):
        adapter.load(stack(build))
    assert kept(own_cache) == []
    assert (own_cache / "adapters" / "built.log").exists()


@pytest.mark.parametrize(
    "command", ["run cubic", "gate cubic", "compare linux-tcp {} --algorithm cubic", "adapter check {}"]
)
def test_every_command_shows_the_last_lines_of_a_build_that_failed(stack, own_cache, monkeypatch, tmp_path, command):
    """The lines come from untrusted programs and are shown as plain text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("conformance.kernel.store.find", lambda name: None)
    path = stack("for n in $(seq 20); do echo line $n; done; printf '\\033[2Jx.c:1: error: no\\nhint: y\\n'; exit 1")
    words = command.format(path).split() + ([] if "{}" in command else ["--stack", path])
    done = invoke(*words)
    assert done.exit_code == 2
    first, *lines = [line for line in done.output.splitlines() if not line.startswith("compare: ")]
    assert first == f"conformance: built does not build: [2Jx.c:1: error: no; see {own_cache}/adapters/built.log"
    assert lines == [*(f"  line {n}" for n in range(11, 21)), "  [2Jx.c:1: error: no", "  hint: y"]


def test_what_is_built_runs_where_compilers_are_missing(stack, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    compiler = tmp_path / "tools" / "compiler"
    compiler.parent.mkdir()
    compiler.write_text('#!/bin/sh\necho 1 > "$CC_BUILD/made"\n')
    compiler.chmod(0o755)
    manifest = stack("compiler", needs=["compiler"])
    first = adapter.load(manifest)
    compiler.unlink()
    assert adapter.load(manifest) == first
    assert "building built needs compiler" in refusal(adapter.build, manifest, again=True)


def test_what_a_read_only_cache_holds_is_not_built(stack, own_cache, tmp_path, monkeypatch):
    manifest = stack('date +%N > "$CC_BUILD/made"')
    first = adapter.load(manifest)
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", f"{tmp_path}/writable:{own_cache}")
    assert adapter.load(manifest) == first
    assert not (tmp_path / "writable").exists()
    adapter.build(manifest, again=True)
    assert adapter.load(manifest).digest != first.digest
    assert len(kept(own_cache)) == len(kept(tmp_path / "writable")) == 1


def test_what_was_built_elsewhere_is_taken_where_its_libraries_are_and_not_when_built_here(stack, own_cache):
    manifest = stack('cp /bin/true "$CC_BUILD/program"; echo here > "$CC_BUILD/made"')
    about = read(manifest)
    brought = own_cache / "adapters" / building.brought("built", adapter.files_digest(about))
    brought.mkdir(parents=True)
    program = pathlib.Path("/bin/true").read_bytes()
    (brought / "program").write_bytes(program)
    (brought / "script").write_text("#!/bin/sh\n")
    assert adapter.is_built(about)
    assert building.ensure(about, adapter.files_digest(about)) == brought
    for missing in (program.replace(b"libc.so.6", b"libx.so.6"), program.replace(b"GLIBC_2.34", b"GLIBC_2.99")):
        (brought / "program").write_bytes(missing)
        assert not adapter.is_built(about)
    here = adapter.load(manifest).build
    assert here != brought
    (brought / "program").write_bytes(program)
    assert adapter.load(manifest).build == here


def test_a_build_finds_what_the_user_has_and_then_what_guests_have(stack, tmp_path, monkeypatch):
    """The PATH of Debian's ordinary users lacks sbin, and rustup's compiler is in their home."""
    for folder, tools in (("home", ("cargo",)), ("sbin", ("cargo", "nginx"))):
        (tmp_path / folder).mkdir()
        for tool in tools:
            (tmp_path / folder / tool).write_text(f"#!/bin/sh\necho {folder}\n")
            (tmp_path / folder / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/home")
    monkeypatch.setattr("conformance.lab.manifest.GUEST_PATH", f"{tmp_path}/sbin:/usr/bin:/bin")
    path = stack('echo "$(cargo), $(nginx)" > "$CC_BUILD/made"', needs=["cargo", "nginx"])
    assert adapter.load(path).version == "home, sbin"


def test_what_is_lacking_is_named_first(stack, monkeypatch):
    needed = {
        "needs": ["sh", "nosuchtool"],
        "headers": ["stdio.h", "nosuch/header.h"],
        "libraries": ["c", "nosuch", "elsewhere"],
    }
    monkeypatch.setenv("LIBELSEWHERE_PATH", "/opt/elsewhere")
    with pytest.raises(UserError, match=r"needs nosuchtool, nosuch/header\.h, libnosuch(?!,)"):
        adapter.load(stack("true", **needed))
    with pytest.raises(UserError, match=r"/build/program: (.*) is not executable; run `chmod a\+rx \1`"):
        adapter.load(stack("true", mode=0o644))


def test_a_build_that_takes_too_long_is_ended_with_all_its_processes(stack, monkeypatch, tmp_path):
    monkeypatch.setattr(building, "_TIMEOUT_S", 0.3)
    with pytest.raises(UserError, match="did not end within"):
        adapter.load(stack(f"sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' & wait"))
    assert ends(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(("stacks", "mend"), [(1, ""), (2, "; run the same command again to resume")])
def test_a_build_whose_command_is_terminated_ends_with_all_its_processes(stack, tmp_path, stacks, mend):
    """CI ends cancelled commands by SIGTERM. What is half built is removed; stacks before it need no second build."""
    seen = tmp_path / "pid"
    manifest = stack(f"setsid sleep 600 & echo $! > {seen}.part; mv {seen}.part {seen}; wait")
    command = subprocess.Popen(
        [sys.executable, "-m", "conformance", "adapter", "build", *[manifest] * stacks],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not seen.exists() and command.poll() is None:
        time.sleep(0.01)
    command.terminate()
    _, said = command.communicate()
    assert command.returncode == 130
    assert said.endswith(f"conformance: interrupted{mend}\n")
    assert ends(int(seen.read_text()))


def test_two_at_once_build_once(stack, tmp_path):
    manifest = stack(f'echo x >> {tmp_path}/count; sleep 0.2; echo 1 > "$CC_BUILD/made"')
    at_once(*[lambda: adapter.load(manifest)] * 3)
    assert (tmp_path / "count").read_text() == "x\n"


def test_a_build_that_fetches_waits_until_it_is_asked_for(stack, own_cache):
    manifest = stack('echo 1 > "$CC_BUILD/made"', fetches=True)
    with pytest.raises(building.NotBuilt, match=r"not built; run `conformance adapter build /.*adapter\.json`"):
        adapter.load(manifest)
    assert adapter.build(manifest).is_dir()
    assert adapter.load(manifest).version == "1"


def test_a_build_that_need_not_be_asked_for_says_that_it_takes_a_while(stack, own_cache, monkeypatch):
    said = []
    monkeypatch.setattr(building.Unasked, "say", said.append)
    manifest = stack('echo 1 > "$CC_BUILD/made"', fetches=True, unasked=True)
    assert adapter.load(manifest).version == adapter.load(manifest).version == "1"
    assert said == ["building built, which is kept for the next time (some minutes)"]


def test_a_build_that_need_not_be_asked_for_repeats_nothing(monkeypatch):
    said = []
    monkeypatch.setattr(building.Unasked, "say", lambda line: said.append(line.partition("): ")[2]))
    monkeypatch.setattr(building, "_SAY_EVERY_S", 0)
    say = building._say_now_and_then("built")
    for _ in range(3):
        say(3, 12, "3/12 a.c")
    say(3, 12, "warning: x")
    assert said == ["3/12 a.c", "3 of 12 steps warning: x"]


def test_a_build_takes_what_another_adapter_built_and_is_another_stack_if_that_changes(
    stack, own_cache, tmp_path, monkeypatch
):
    """The other one is built first."""
    first = pathlib.Path(stack('echo 1 > "$CC_BUILD/made"'))
    read_shipped = adapter.manifest.read
    monkeypatch.setattr(
        adapter.manifest, "read", lambda name: read_shipped(str(first) if name == "the-other" else name)
    )
    second = tmp_path / "second"
    shutil.copytree(first.parent, second)
    about = json.loads(first.read_text())
    (second / "adapter.json").write_text(
        json.dumps({**about, "name": "second", "build": {"program": "build", "takes": ["the-other"]}})
    )
    (second / "build").write_text('#!/bin/sh\ncp "$CC_BUILD_THE_OTHER/made" "$CC_BUILD"\n')
    before = adapter.load(str(second))
    assert before.version == "1"
    (first.parent / "build").write_text('#!/bin/sh\necho 2 > "$CC_BUILD/made"\n')
    assert not adapter.is_built(read_shipped(str(second)))
    after = adapter.load(str(second))
    assert after.version == "2" and after.digest != before.digest


def test_a_program_that_is_linked_statically_needs_no_library(stack, own_cache, tmp_path):
    manifest = stack('echo here > "$CC_BUILD/made"')
    about = read(manifest)
    brought = own_cache / "adapters" / building.brought("built", adapter.files_digest(about))
    brought.mkdir(parents=True)
    (tmp_path / "main.c").write_text("int main(void) { return 0; }")
    command = ["cc", "-static", "-o", str(brought / "program"), str(tmp_path / "main.c")]
    subprocess.run(command, check=True)
    (brought / "LICENSES").write_text("Do what you like.")
    assert building.ensure(about, adapter.files_digest(about)) == brought


def test_a_build_can_be_asked_for_again(stack, own_cache):
    manifest = stack('date +%N > "$CC_BUILD/made"')
    first = adapter.load(manifest)
    assert adapter.build(manifest) == first.build
    assert adapter.load(manifest).digest == first.digest
    assert adapter.build(manifest, again=True) == first.build
    assert adapter.load(manifest).digest != first.digest
    assert len(kept(own_cache)) == 1


@pytest.mark.parametrize(
    ("printed", "done", "total"),
    [
        (r"Compiling a v1\n    Building [===> ] 7/20: b\r", 7, 20),
        (r"[ 40%%] Building C object\nnote: x\n", 40, 100),
        (r"[3/12] CC a.o\n", 3, 12),
        (r"nothing that counts\n", None, None),
    ],
)
def test_progress_is_read_from_what_builds_print(stack, printed, done, total):
    seen = []
    manifest = stack(f"printf '{printed}'; sleep 0.5; echo 1 > \"$CC_BUILD/made\"")
    adapter.build(manifest, progress=lambda *how_far: seen.append(how_far))
    assert seen[-1][:2] == (done, total)
    assert seen[-1][2] == seen[-1][2].strip() != ""


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("1", "/: 1 is not of type 'object'"),
        ("version 1", "did not print a JSON object, but 'version 1'"),
        ("{}", "'version' is a required property"),
        ('{"version": "1", "algorithms": "cubic"}', "/algorithms: 'cubic' is not of type 'array'"),
        ("", "did not print a JSON object, but ''; make it print {"),
    ],
)
def test_a_description_that_is_none_says_what_is_wrong(tmp_path, stack, printed, words):
    manifest = pathlib.Path(stack("true > $CC_BUILD/made"))
    (manifest.parent / "stack").write_text(f"#!/bin/sh\nprintf '%s' '{printed}'\n")
    with pytest.raises(UserError) as caught:
        adapter.load(str(manifest))
    assert words in str(caught.value)


def test_a_build_that_lacks_an_algorithm_says_so(stack):
    manifest = pathlib.Path(stack("true > $CC_BUILD/made"))
    (manifest.parent / "stack").write_text('#!/bin/sh\necho \'{"version": "2", "algorithms": ["r"]}\'\n')
    found = adapter.load(str(manifest))
    assert found.why_not("cubic") == "this build of built (2) has no c"
    assert found.why_not("reno") == "built does not offer reno"


def test_who_fetches_is_the_users_choice(stack, tmp_path):
    manifest = stack('echo 1 > "$CC_BUILD/made"')
    assert adapter.load(manifest).client is None
    other = tmp_path / "other"
    shutil.copytree(pathlib.Path(manifest).parent, other)
    named = adapter.load(manifest, str(other / "adapter.json"))
    assert named.client.manifest.folder == other
    assert named.digest != adapter.load(manifest).digest
    about = json.loads((other / "adapter.json").read_text())
    (other / "adapter.json").write_text(json.dumps({**about, "transport": "udp"}))
    with pytest.raises(UserError, match="client speaks udp, but built serves over tcp"):
        adapter.load(manifest, str(other / "adapter.json"))
    pathlib.Path(manifest).write_text(json.dumps({**about, "client_chooses": True}))
    (other / "adapter.json").write_text(json.dumps({**about, "name": "other"}))
    assert adapter.load(manifest, adapter.OWN).client is None
    assert "built's own client requests the algorithm" in refusal(adapter.load, manifest, str(other / "adapter.json"))
    by_another_path = pathlib.Path(manifest).parent / ".." / pathlib.Path(manifest).parent.name / "adapter.json"
    assert adapter.load(manifest, str(by_another_path)).client is None
    pathlib.Path(manifest).write_text(json.dumps({**about, "client_chooses": True, "client": "other"}))
    assert "/client: " in refusal(adapter.load, manifest)
    pathlib.Path(manifest).write_text(json.dumps(about))
    # Each names the other as its client: only the other's own client is used, not its choice of a client.
    (other / "adapter.json").write_text(json.dumps({**about, "name": "other", "client": "built"}))
    assert adapter.load(str(other / "adapter.json"), adapter.OWN).client is None


def test_what_the_client_of_a_stack_lacks_is_told_before_the_stack_is_built(stack, own_cache, monkeypatch):
    path = pathlib.Path(stack('echo 1 > "$CC_BUILD/made"'))
    path.write_text(json.dumps({**json.loads(path.read_text()), "client": "h3-client", "transport": "udp"}))
    monkeypatch.setattr(building, "missing", lambda recipe: list(recipe.get("needs", ()))[:1])
    out = io.StringIO()
    made = adapter_new.build([str(path)], False, ConsoleNotes(rich.console.Console(file=out, width=500)))
    lacking, *_, built = out.getvalue().splitlines()
    assert (made.exit_status, kept(own_cache)) == (0, [pathlib.Path(made.items[0].path).name])
    assert f"{path} is tested with h3-client, which cannot be built: building h3-client needs apt-get" in lacking
    assert "run `apt-get install" in lacking and built.startswith(f"{path}: 1; built")


def test_a_client_of_another_transport_is_refused_before_anything_is_built(stack, own_cache, monkeypatch):
    """The common client, which speaks UDP, takes minutes to build."""
    monkeypatch.setattr(building, "ensure", lambda *arguments, **options: pytest.fail("something is built"))
    path = pathlib.Path(stack("true"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "client": "h3-client"}))
    with pytest.raises(UserError, match=r"speaks udp, but built serves over tcp; correct `client` or `transport` in /"):
        adapter.load(str(path))


@pytest.mark.parametrize(
    ("client", "words"), [("h3-client", "client speaks udp"), ("nope", "stack 'nope' is not known")]
)
def test_a_manifest_with_a_client_that_cannot_fetch_is_not_built(stack, own_cache, client, words):
    path = pathlib.Path(stack("true"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "client": client}))
    out = io.StringIO()
    made = adapter_new.build([str(path)], False, ConsoleNotes(rich.console.Console(file=out, width=500)))
    assert (made.exit_status, made.items) == (2, ())
    assert words in out.getvalue() and out.getvalue().count("\n") == 1


def test_algorithms_are_the_stacks_or_the_kernels(stack):
    path = pathlib.Path(stack("true"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "kernel_algorithms": {"cubic": "cubic"}}))
    with pytest.raises(UserError, match=r"adapter\.json: /kernel_algorithms: .*; leave out one of the two lists"):
        read(str(path))


def test_a_program_whose_name_no_file_can_have_is_no_program(stack):
    for name, why in (("a\0b", "control characters are not text"), ("a" * 300, ".* is not a file")):
        path = pathlib.Path(stack("true"))
        about = json.loads(path.read_text())
        path.write_text(json.dumps({**about, "program": name}))
        with pytest.raises(UserError, match=rf"adapter\.json: /program: {why}"):
            adapter.load(str(path))


def test_what_is_shared_counts_as_part_of_the_stack(stack, tmp_path, own_cache):
    """An edit of shared files causes a new build and makes another stack; expected.json and other files do neither."""
    common, single = tmp_path / "common", tmp_path / "one.txt"
    (common / "src").mkdir(parents=True)
    (common / "src" / "a").write_text("1")
    single.write_text("2")
    path = stack('cat "${0%/*}/../common/src/a" "${0%/*}/../one.txt" > "$CC_BUILD/made"')
    share(path, "../common", "../one.txt")
    first = adapter.load(path)
    assert first.version == "12"
    (tmp_path / "neighbour").write_text("x")
    (common / "expected.json").write_text("{}")
    assert adapter.load(path) == first
    (common / "src" / "a").write_text("3")
    second = adapter.load(path)
    single.write_text("4")
    third = adapter.load(path)
    assert (second.version, third.version) == ("32", "34")
    (common / "src" / "b").write_text("new")
    fourth = adapter.load(path)
    assert len({found.digest for found in (first, second, third, fourth)}) == 4
    assert len(kept(own_cache)) == 4


def share(path, *shares):
    """Write into a manifest that it shares these files and folders."""
    path = pathlib.Path(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "shares": shares}))


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        (["../nowhere"], r"/shares/0: .*/nowhere is neither a file nor a folder"),
        (["build", "a\0b"], r"/shares/1: control characters are not text"),
        (["a" * 300], r"/shares/0: .* is neither a file nor a folder"),
        (["../pipe"], r"/shares/0: .*/pipe is neither a file nor a folder"),
        ([".."], r"/shares/0: .* contains the adapter itself; share a folder next to it"),
        (["."], r"/shares/0: .* contains the adapter itself"),
        (["/etc"], r"/shares/0: '/etc' does not match"),
        ([], r"/shares: "),
        (["build", "build"], r"/shares: "),
    ],
)
def test_what_cannot_be_shared_is_refused_in_one_line(stack, tmp_path, shares, words):
    path = stack('echo 1 > "$CC_BUILD/made"')
    os.mkfifo(tmp_path / "pipe")
    share(path, *shares)
    with pytest.raises(UserError, match=rf"adapter\.json: {words}") as refused:
        adapter.load(path)
    assert "\n" not in str(refused.value)


def test_sharing_without_a_build_is_refused(stack):
    """Only a build sees shared files."""
    path = pathlib.Path(stack("true"))
    about = json.loads(path.read_text())
    del about["build"]
    path.write_text(json.dumps({**about, "shares": ["stack"]}))
    assert "adapter.json: /: 'build' is a dependency of 'shares'" in refusal(adapter.load, str(path))

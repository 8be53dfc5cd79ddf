"""Working trees instead of what a build takes: which names are found, what is built, and that no old binary is used."""

import io
import json
import os
import pathlib
import re
import subprocess

import pytest
import rich.console
from helpers import at_once, program, refusal

from conformance.commands import adapter_new
from conformance.engine import benches
from conformance.lab import adapter, building, sources, stand_ins
from conformance.model.errors import UserError
from conformance.model.trials.trial import Scheme
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import paths

pytestmark = pytest.mark.usefixtures("own_cache")

LOCK = """version = 4

[[package]]
name = "app"
version = "0.0.0"

[[package]]
name = "core"
version = "1.0.0"
source = "r"
"""
GO_MOD = """module app

go 1.21

require example.org/x/quic/v2 v2.1.0

require (
\texample.org/y v0.1.0 // indirect
)
"""
PRINTS = 'printf \'{"version": "stack 1.2"}\''
#: a stand-in for cargo without a registry: it fills the lock file, records its arguments, and copies the tree as binary
CARGO = """
case " $* " in
    *" update --workspace "*)
        printf '\\n[[package]]\\nname = "core"\\nversion = "1.0.1"\\n' >> Cargo.lock
        [ -z "$UNUSED" ] || printf '\\n[[patch.unused]]\\nname = "core"\\nversion = "9.0.0"\\n' >> Cargo.lock
        ;;
    *" build "*)
        mkdir -p "$CARGO_TARGET_DIR/release"
        echo "$@" > "$CARGO_TARGET_DIR/release/words"
        [ ! -e "$CARGO_TARGET_DIR/kept" ] || echo -incremental- >> "$CARGO_TARGET_DIR/release/words"
        touch "$CARGO_TARGET_DIR/kept"
        place=$(echo "$@" | sed 's/.*core.path="\\([^"]*\\)".*/\\1/')
        ! grep -q nonsense "$place/src/lib.rs" || { echo "error: $place/src/lib.rs:1: nonsense"; exit 101; }
        cat "$place/src/lib.rs" > "$CARGO_TARGET_DIR/release/app"
        ;;
esac
"""
CARGO_BUILD = """
cp "${0%/*}/Cargo.toml" .; cp "${0%/*}/crates.lock" Cargo.lock
CARGO_TARGET_DIR=target cargo build --release --locked || exit
mv target/release/app target/release/words "$CC_BUILD"; cp Cargo.lock Cargo.toml "$CC_BUILD"
"""


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """Return a function that writes an adapter with this build and these files, and returns its manifest's path."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("UNUSED", raising=False)

    def write(build, lists=(), **files):
        folder = tmp_path / "adapter"
        about = {
            "contract": 1, "name": "built", "title": "t", "program": "stack", "transport": "tcp",
            "build": {"program": "build"}, "algorithms": {"cubic": {"called": "c", "evidence": "e"}},
            **({"sources": lists} if lists else {}),
        }  # fmt: skip
        program(folder / "build", build)
        program(folder / "stack", PRINTS)
        (folder / "adapter.json").write_text(json.dumps(about))
        for name, text in files.items():
            (folder / name.replace("_DOT_", ".")).write_text(text)
        return str(folder / "adapter.json")

    return write


@pytest.fixture
def rust(stack, tmp_path):
    """Write an adapter whose lock file has the crate `core`, with the fake cargo; return its manifest's path."""
    program(tmp_path / "bin" / "cargo", CARGO)
    return stack(CARGO_BUILD, crates_DOT_lock=LOCK, Cargo_DOT_toml='[dependencies]\ncore = "=1.0.0"\n')


@pytest.fixture
def tree(tmp_path):
    """Make a workspace with the crate `core`; return its folder."""
    root = tmp_path / "fork"
    (root / "core" / "src").mkdir(parents=True)
    (root / "Cargo.toml").write_text('[workspace]\nmembers = ["core"]\n[workspace.package]\nversion = "1.0.1"\n')
    (root / "core" / "Cargo.toml").write_text('[package]\nname = "core"\nversion.workspace = true\n')
    (root / "core" / "src" / "lib.rs").write_text("beta 0.7\n")
    return root


def change(tree, text):
    (tree / "core" / "src" / "lib.rs").write_text(text)


def words(found):
    return (found.build / "words").read_text()


def test_a_crate_is_built_from_the_tree(rust, tree):
    found = adapter.load(rust, given=[f"core={tree}"])
    assert (found.build / "app").read_text() == "beta 0.7\n"
    assert "build --release" in words(found)
    assert "--locked" not in words(found)
    # Only that entry of the lock file is replaced, and the adapter's own pin to it.
    assert 'name = "app"' in (found.build / "Cargo.lock").read_text()
    assert "source" not in (found.build / "Cargo.lock").read_text()
    assert 'core = "=1.0.1"' in (found.build / "Cargo.toml").read_text()
    assert not [path for path in tree.rglob("*") if path.name in ("target", "Cargo.lock")]


def test_builds_live_side_by_side_and_are_told_apart(rust, tree):
    first = adapter.load(rust, given=[f"core={tree}"])
    change(tree, "beta 0.8\n")
    second = adapter.load(rust, given=[f"core={tree}"])
    change(tree, "beta 0.7\n")
    third = adapter.load(rust, given=[f"core={tree}"])
    assert third == first
    assert (first.build / "app").read_text() == "beta 0.7\n"
    assert (second.build / "app").read_text() == "beta 0.8\n"
    assert first.digest != second.digest
    schemes = [
        Scheme(
            algorithm="cubic", stack=found.name, stack_version=f"{found.version}; client c 3 (d 4.5; with e@f)",
            stack_digest=found.digest, kernel="default", kernel_release="7", kernel_digest="k",
        )
        for found in (first, second)
    ]  # fmt: skip
    assert all(scheme.version.startswith("1.2+core@") for scheme in schemes)
    assert len({scheme.id for scheme in schemes}) == 2
    assert schemes[0].trees == (f"core@{first.version[-6:]}",)


def test_what_tools_made_is_kept_for_the_next_state_and_the_next_tree(rust, tree, tmp_path):
    assert "-incremental-" not in words(adapter.load(rust, given=[f"core={tree}"]))
    change(tree, "beta 0.8\n")
    assert "-incremental-" in words(adapter.load(rust, given=[f"core={tree}"]))
    other = tmp_path / "other"
    tree.rename(other)
    change(other, "beta 0.9\n")
    assert "-incremental-" in words(adapter.load(rust, given=[f"core={other}/core"]))
    adapter.build(rust, again=True, given=[f"core={other}"])
    assert "-incremental-" not in words(adapter.load(rust, given=[f"core={other}"]))


def test_a_changed_tree_is_never_judged_by_an_old_binary(rust, tree):
    """Not even if its files have old times; a build that fetches must be asked for, and the message has the command."""
    about = json.loads(pathlib.Path(rust).read_text())
    pathlib.Path(rust).write_text(json.dumps({**about, "build": {"program": "build", "fetches": True}}))
    given = [f"core={tree}"]
    adapter.build(rust, given=given)
    assert (adapter.load(rust, given=given).build / "app").read_text() == "beta 0.7\n"
    change(tree, "beta 0.8\n")
    os.utime(tree / "core" / "src" / "lib.rs", (1, 1))
    with pytest.raises(building.NotBuilt) as refused:
        adapter.load(rust, given=given)
    assert "not built with core@" in str(refused.value)
    assert f"run `conformance adapter build {rust} --source core={tree}`" in str(refused.value)
    adapter.build(rust, given=given)
    assert (adapter.load(rust, given=given).build / "app").read_text() == "beta 0.8\n"
    with pytest.raises(building.NotBuilt, match=r"stack built is not built; run"):
        adapter.load(rust)  # its release is another build


def test_a_tree_that_does_not_compile_says_where_in_the_tree(rust, tree, own_cache):
    change(tree, "nonsense")
    with pytest.raises(building.Failed) as failed:
        adapter.load(rust, given=[f"core={tree}"])
    log = own_cache / "adapters" / "built.log"
    assert str(failed.value) == f"built does not build: error: {tree}/core/src/lib.rs:1: nonsense; see {log}"
    assert failed.value.lines[-1] == f"error: {tree}/core/src/lib.rs:1: nonsense"
    assert str(tree) in log.read_text()


def test_adapter_build_says_what_it_built_and_whether_it_did(rust, tree):
    """`was built before` refers to this state of the tree only; a failed build shows the end of its log."""
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    subprocess.run(["git", "-C", str(tree), "add", "."], check=True)
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "-C", str(tree), *who, "commit", "-qm", "x"], check=True)

    def told():
        out = io.StringIO()
        made = adapter_new.build(
            [rust], False, ConsoleNotes(rich.console.Console(file=out, width=500)), [f"core={tree}"]
        )
        return out.getvalue(), made.exit_status

    first, status = told()
    assert status == 0
    assert re.search(r"stack 1\.2; with core@\w{6}; core is at \w{8}; built in ", first)
    assert "; was built before, " in told()[0]
    change(tree, "beta 0.8\n")
    assert re.search(r"core is at \w{8}-dirty; built in ", told()[0])
    change(tree, "nonsense")
    text, status = told()
    assert status == 2
    assert f"\n  error: {tree}/core/src/lib.rs:1: nonsense\nconformance: built does not build: error: " in text


def test_a_version_that_nothing_asks_for_is_said_before_anything_is_compiled(rust, tree, monkeypatch):
    monkeypatch.setenv("UNUSED", "1")
    with pytest.raises(building.Failed, match=r"error: core 1\.0\.1 in .*fork/core does not have a version that other"):
        adapter.load(rust, given=[f"core={tree}"])


def test_two_crates_of_one_workspace_share_its_copy(rust, tree, tmp_path):
    (tree / "app").mkdir()
    (tree / "app" / "Cargo.toml").write_text('[package]\nname = "app"\nversion = "1.0.0"\n')
    found = adapter.load(rust, given=[f"core={tree}", f"app={tree}/app"])
    assert words(found).count("--config patch.crates-io.") == 2
    places = {word.split('"')[1].rpartition("/")[0] for word in words(found).split() if word.startswith("patch.")}
    # `app` was given as a folder outside of any repository, so it is a tree of its own.
    assert len(places) == 2
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    subprocess.run(["git", "-C", str(tree), "add", "."], check=True)
    found = adapter.load(rust, given=[f"core={tree}", f"app={tree}/app"])
    places = {word.split('"')[1].rpartition("/")[0] for word in words(found).split() if word.startswith("patch.")}
    assert len(places) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["core"],
            "--source 'core' is not of the form NAME=PATH or NAME=VERSION; write, for example, quinn-proto=",
        ),
        (["=x"], "--source '=x' is not of the form NAME=PATH"),
        (["core=a", "core=b"], "--source names core twice"),
        (["core=nowhere"], "--source core: {here}/nowhere is not a folder"),
        (["core=file"], "--source core: {here}/file is not a folder"),
        (["cor=."], "stack built does not build with 'cor'; did you mean core?"),
        (["zzz=."], "stack built does not build with 'zzz'; give a name from its lock file, such as app"),
        (["core=empty"], "--source core: there is no crate core in {here}/empty; it has no Cargo.toml"),
        (["core=other"], "--source core: there is no crate core in {here}/other; it has what"),
        (["core=broken"], "--source core: there is no crate core in {here}/broken; it has no Cargo.toml"),
    ],
)
def test_a_mistake_is_one_line(rust, tmp_path, monkeypatch, given, message):
    here = tmp_path / "here"
    for name, text in (("other", '[package]\nname = "what"\n'), ("broken", "[[[")):
        (here / name).mkdir(parents=True)
        (here / name / "Cargo.toml").write_text(text)
    (here / "empty").mkdir()
    (here / "file").write_text("")
    monkeypatch.chdir(here)
    assert refusal(adapter.load, rust, given=given).startswith(message.format(here=here))


def test_a_stack_that_compiles_nothing_of_the_kind_refuses(tree):
    with pytest.raises(UserError, match="stack linux-tcp uses nothing that a working tree can replace"):
        sources.find(adapter.manifest.read("linux-tcp"), [f"core={tree}"])
    with pytest.raises(UserError, match=r"can replace; leave out --source, or name the stack ngtcp2-1\.11$"):
        sources.find(adapter.manifest.read("ngtcp2"), [f"ngtcp2={tree}"])


def test_what_shipped_adapters_take_is_found(tmp_path):
    """Sources are found by the lock files as they are, and users' builds by the variables in build programs."""
    (tmp_path / "go.mod").write_text("module github.com/quic-go/quic-go\n")
    for stack, name, kind in (
        ("quinn", "quinn-proto", sources.Kind.CRATE),
        ("quic-go", "quic-go", sources.Kind.MODULE),
        ("quic-go", "github.com/quic-go/quic-go", sources.Kind.MODULE),
        ("picoquic", "picoquic", sources.Kind.HOME),
        ("lsquic", "lsquic", sources.Kind.HOME),
        ("neqo", "neqo", sources.Kind.HOME),
        ("ngtcp2-1.11", "ngtcp2", sources.Kind.HOME),
        ("openssl-quic", "openssl", sources.Kind.HOME),
        ("haproxy", "haproxy", sources.Kind.HOME),
        ("noq", "noq-proto", sources.Kind.CRATE),
        ("s2n-quic", "s2n-quic-core", sources.Kind.CRATE),
        ("tquic", "tquic", sources.Kind.CRATE),
        ("cloudflare-quiche", "quiche", sources.Kind.CRATE),
        ("msquic", "msquic", sources.Kind.CRATE),
    ):
        (tmp_path / "Cargo.toml").write_text(f'[package]\nname = "{name}"\n')
        (found,) = sources.find(adapter.manifest.read(stack), [f"{name}={tmp_path}"])
        assert (found.kind, found.folder) == (kind, tmp_path)
        assert found.label == f"{name.rpartition('/')[2]}@{found.tree.digest[:6]}"


def test_relative_paths_are_seen_from_here(rust, tree, monkeypatch):
    monkeypatch.chdir(tree / "core")
    assert sources.absolute(["core=.."]) == (f"core={tree}/core/..",)
    assert (adapter.load(rust, given=["core=.."]).build / "app").read_text() == "beta 0.7\n"


def test_the_variable_counts_where_no_option_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("CC_SOURCE", f"a={tmp_path}/x,b={tmp_path}/y z")
    assert sources.chosen(()) == sources.chosen(None) == (f"a={tmp_path}/x", f"b={tmp_path}/y z")
    assert sources.chosen([f"c={tmp_path}"]) == (f"c={tmp_path}",)
    monkeypatch.delenv("CC_SOURCE")
    assert sources.chosen(()) == ()


def test_a_choice_writes_its_trees_as_options(tmp_path):
    choice = benches.Choice(stack="quinn", source=("a=/x", "b=/y z"))
    assert choice.options() == " --stack quinn --source a=/x --source 'b=/y z'"
    assert choice.options("source") == " --stack quinn"
    assert benches.Choice().options() == ""
    for more in ({"source": ("a=/x",)}, {"stack": "quinn"}, {"client": "own"}):
        with pytest.raises(UserError, match="an exported image is run as it is; leave out --stack, --client and"):
            benches.find(benches.Choice(**more, interop_rootfs=str(tmp_path)))


GO = """
case "$1" in
    env) echo "$PWD/go.mod" ;;
    mod) shift 2; for last; do :; done; echo "$@" >> "$last" ;;
    build)
        cp "$(echo "$GOFLAGS" | sed 's/.*-modfile=\\([^ ]*\\).*/\\1/')" "$CC_BUILD/go.mod"
        echo "$GOFLAGS" > "$CC_BUILD/flags"
        ;;
esac
"""


def test_a_module_is_replaced_in_a_go_mod_aside(stack, tmp_path):
    program(tmp_path / "bin" / "go", GO)
    path = stack('cp "${0%/*}/go.mod" .; go build .; cmp go.mod "${0%/*}/go.mod"', go_DOT_mod=GO_MOD)
    fork = tmp_path / "fork"
    fork.mkdir()
    (fork / "go.mod").write_text("module example.org/x/quic/v2\n")
    found = adapter.load(path, given=[f"quic={fork}"])
    assert "-replace=example.org/x/quic/v2=" in (found.build / "go.mod").read_text()
    assert "-mod=mod" in (found.build / "flags").read_text()
    assert found.version.startswith("stack 1.2; with quic@")
    (fork / "go.mod").write_text("module example.org/renamed\n")
    with pytest.raises(UserError, match=r"no Go module example.org/x/quic/v2 in .*; it has example.org/renamed"):
        adapter.load(path, given=[f"quic={fork}"])


def test_modules_whose_names_end_alike_have_a_copy_each_and_are_named_in_full(stack, tmp_path):
    modules = "module example.org/stack\nrequire (\n\texample.org/x/net v1.0.0\n\texample.org/y/net v1.0.0\n)\n"
    about = adapter.manifest.read(stack("true", go_DOT_mod=modules))
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "go.mod").write_text(f"module example.org/{name}/net\n")
    with pytest.raises(UserError, match=r"have names that end in 'net'; give example\.org/x/net or example\.org/y/net"):
        sources.find(about, [f"net={tmp_path / 'x'}"])
    found = sources.find(about, [f"example.org/{name}/net={tmp_path / name}" for name in ("x", "y")])
    with sources.workshop("built", found, "", False) as workshop:
        copies = {root.name: (copy / "go.mod").read_text() for copy, root in workshop.copies.items()}
    assert copies == {name: f"module example.org/{name}/net\n" for name in ("x", "y")}


def test_a_folder_that_the_user_built_is_found_in_a_variable(stack, tmp_path, monkeypatch):
    """Its programs count although git ignores them; setting the variable has the same effect as --source."""
    monkeypatch.delenv("DEMO_HOME", raising=False)
    path = stack('[ -n "$DEMO_HOME" ] || { echo error: set DEMO_HOME; exit 1; }; cp "$DEMO_HOME/demo" "$CC_BUILD"')
    home = tmp_path / "demo"
    home.mkdir()
    program(home / "demo", "one")
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    (home / ".gitignore").write_text("demo\n")
    subprocess.run(["git", "-C", str(home), "add", ".gitignore"], check=True)
    first = adapter.load(path, given=[f"demo={home}"])
    program(home / "demo", "two")
    second = adapter.load(path, given=[f"demo={home}"])
    assert [b.build.joinpath("demo").read_text()[-4:-1] for b in (first, second)] == ["one", "two"]
    assert first.digest != second.digest
    assert "set DEMO_HOME" in refusal(adapter.load, path)
    monkeypatch.setenv("DEMO_HOME", str(home))
    assert adapter.load(path) == second
    program(home / "demo", "three")
    third = adapter.load(path)
    assert re.fullmatch(r"stack 1\.2; with demo@\w{6}", third.version)
    assert len({first.digest, second.digest, third.digest}) == 3
    assert third.build.joinpath("demo").read_text().endswith("three\n")


def test_a_changed_folder_in_a_variable_is_never_judged_by_an_old_binary(stack, tmp_path, monkeypatch):
    """A build that must be asked for names the command with the folder; without the variable, it names the variable."""
    monkeypatch.delenv("DEMO_HOME", raising=False)
    path = stack('cp "$DEMO_HOME/demo" "$CC_BUILD"')
    about = json.loads(pathlib.Path(path).read_text())
    pathlib.Path(path).write_text(json.dumps({**about, "build": {"program": "build", "fetches": True}}))
    with pytest.raises(building.NotBuilt, match=r"adapter build \S+`, or set DEMO_HOME to what you built$"):
        adapter.load(path)
    home = tmp_path / "demo"
    program(home / "demo", "one")
    monkeypatch.setenv("DEMO_HOME", str(home))
    assert not adapter.is_built(adapter.manifest.read(path))
    adapter.build(path)
    assert adapter.is_built(adapter.manifest.read(path))
    first = adapter.load(path)
    program(home / "demo", "two")
    assert not adapter.is_built(adapter.manifest.read(path))
    with pytest.raises(building.NotBuilt, match=rf"not built with demo@\w+; run `.* --source demo={home}`$"):
        adapter.load(path)
    adapter.build(path)
    assert adapter.load(path).digest != first.digest
    program(home / "demo", "one")
    assert adapter.load(path) == first  # both builds are kept


def test_a_changed_program_on_path_is_never_judged_by_an_old_binary(stack, tmp_path, monkeypatch):
    """The program counts if no folder is named, and a change to it causes a new build."""
    monkeypatch.delenv("DEMO_HOME", raising=False)
    path = stack(
        'if [ -n "${DEMO_HOME:-}" ]; then demo="$DEMO_HOME/demo"; else demo=$(command -v demo-server) || exit 1; fi\n'
        'cp "$demo" "$CC_BUILD/demo"'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    program(tmp_path / "bin" / "demo-server", "one")
    first = adapter.load(path)
    assert re.fullmatch(r"stack 1\.2; with demo-server@\w{6}", first.version)
    program(tmp_path / "bin" / "demo-server", "two")
    second = adapter.load(path)
    assert [b.build.joinpath("demo").read_text()[-4:-1] for b in (first, second)] == ["one", "two"]
    assert first.digest != second.digest
    program(tmp_path / "home" / "demo", "three")
    monkeypatch.setenv("DEMO_HOME", str(tmp_path / "home"))
    # If the variable is set, programs on PATH do not count.
    assert re.fullmatch(r"stack 1\.2; with demo@\w{6}", adapter.load(path).version)


@pytest.mark.parametrize(
    ("name", "server"),
    [("lsquic", "http_server"), ("neqo", "neqo-server"), ("picoquic", "picoquicdemo"), ("quicly", "h2o")],
)
def test_each_stack_of_the_users_counts_the_program_that_it_takes_from_path(tmp_path, monkeypatch, name, server):
    about = adapter.manifest.read(name)
    for variable in sources.homes(about).values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sources.find(about) == ()
    program(tmp_path / server, "x")
    (found,) = sources.find(about)
    assert (found.name, found.kind, found.commit) == (server, sources.Kind.PROGRAM, None)


def test_a_given_folder_counts_before_that_of_the_variable(stack, tmp_path, monkeypatch):
    path = stack('cp "$DEMO_HOME/demo" "$CC_BUILD"')
    for name in ("one", "two"):
        program(tmp_path / name / "demo", name)
    monkeypatch.setenv("DEMO_HOME", str(tmp_path / "one"))
    found = adapter.load(path, given=[f"demo={tmp_path}/two"])
    assert found.build.joinpath("demo").read_text().endswith("two\n")
    assert found.version.count("@") == 1
    monkeypatch.setenv("DEMO_HOME", "nowhere")
    with pytest.raises(UserError, match=r"^DEMO_HOME: /\S+/nowhere is not a folder; "):
        adapter.load(path)
    assert adapter.load(path, given=[f"demo={tmp_path}/two"]) == found


def test_what_neqo_uses_of_nss_counts_and_its_sources_do_not(tmp_path, monkeypatch):
    """NSS puts its build beside its sources, where neqo's build looks for it: $NSS_DIR/../dist/Release."""
    program(tmp_path / "neqo" / "neqo-server", "x")
    program(tmp_path / "dist" / "Release" / "bin" / "certutil", "x")
    program(tmp_path / "nss" / "build.sh", "x")
    monkeypatch.setenv("NEQO_HOME", str(tmp_path / "neqo"))
    monkeypatch.setenv("NSS_DIR", str(tmp_path / "nss"))

    def found():
        neqo, nss = sources.find(adapter.manifest.read("neqo"))
        assert (neqo.name, neqo.variable, nss.name, nss.variable) == ("neqo", "NEQO_HOME", "nss", "NSS_DIR")
        with sources.workshop("neqo", (neqo, nss), "", False) as workshop:
            environment = {name: workshop.environment[name] for name in ("NEQO_HOME", "NSS_DIR")}
            assert environment == {"NEQO_HOME": str(tmp_path / "neqo"), "NSS_DIR": str(tmp_path / "nss")}
            workshop.check()
        return neqo.label, nss.label

    neqo, nss = found()
    program(tmp_path / "nss" / "build.sh", "y")
    assert found() == (neqo, nss)
    program(tmp_path / "dist" / "Release" / "bin" / "certutil", "y")
    assert found()[0] == neqo
    assert found()[1] != nss


def test_a_tree_that_changes_while_it_is_built_in_place_is_no_build(stack, tmp_path, own_cache):
    path = stack('echo x >> "$DEMO_HOME/demo"; echo 1 > "$CC_BUILD/made"')
    home = tmp_path / "demo"
    program(home / "demo", "one")
    with pytest.raises(UserError, match="demo changed while it was being built; run the same command again"):
        adapter.load(path, given=[f"demo={home}"])
    assert not list((own_cache / "adapters").glob("built-*"))


def test_a_manifest_names_sources_outside_of_its_folder(stack, tmp_path):
    """An adapter inside a stack's own repository builds that; no old binary is used, not from a CI's cache either."""
    path = stack('cat "${0%/*}/../src/cc.c" > "$CC_BUILD/made"', lists=["../src"])
    source = tmp_path / "src"
    source.mkdir()
    (source / "cc.c").write_text("beta 0.7")
    first = adapter.load(path)
    assert first.version.startswith("stack 1.2; with src@")
    (source / "cc.c").write_text("beta 0.8")
    second = adapter.load(path)
    assert (second.build / "made").read_text() == "beta 0.8"
    assert len({first.digest, second.digest}) == 2
    assert adapter.load(path) == second


@pytest.mark.parametrize("with_git", [True, False])
def test_the_cache_may_lie_in_the_tree_that_is_built(stack, tmp_path, monkeypatch, with_git):
    """GitLab caches only files in the project's folder."""
    path = stack('cat "${0%/*}/../src/cc.c" > "$CC_BUILD/made"', lists=[".."])
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "cc.c").write_text("beta 0.7")
    if with_git:
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
        subprocess.run(["git", "-C", str(tmp_path), "add", "."], check=True)
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", str(tmp_path / ".cache" / "cc-conformance"))
    adapter.build(path)
    first = adapter.load(path)
    assert first.build.is_relative_to(tmp_path)
    (tmp_path / "part-1.jsonl").write_text('{"evidence":{}}\n')
    assert adapter.load(path) == first


@pytest.mark.parametrize(
    ("wrong", "why"), [("../nowhere", ".* is neither a file nor a folder"), ("a\0b", "control characters are not text")]
)
def test_sources_that_are_not_there_are_refused(stack, wrong, why):
    path = stack("true", lists=[wrong])
    with pytest.raises(UserError, match=rf"adapter\.json: /sources/0: {why}"):
        adapter.load(path)


def test_two_at_once_build_once(rust, tree):
    found = []
    at_once(*[lambda: found.append(adapter.load(rust, given=[f"core={tree}"]))] * 3)
    assert len(found) == 3
    assert len({str(one.build) for one in found}) == 1
    assert "-incremental-" not in words(found[0])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('a = "=1.0.0"\nquinn = "=1.0.0"\n', 'a = "=1.0.0"\nquinn = "=2.0.0"\n'),
        ('quinn = { path = "x", version = "=1.0.0" }\n', 'quinn = { path = "x", version = "=2.0.0" }\n'),
        (
            '[dependencies.quinn]\nfeatures = []\nversion = "=1.0.0"\n[dependencies.b]\nversion = "=1.0.0"\n',
            '[dependencies.quinn]\nfeatures = []\nversion = "=2.0.0"\n[dependencies.b]\nversion = "=1.0.0"\n',
        ),
        ('quinn = "1.0"\nh3-quinn = "=1.0.0"\n', 'quinn = "1.0"\nh3-quinn = "=1.0.0"\n'),
        ('[dependencies.quinn]\n[x]\nversion = "=1"\n', '[dependencies.quinn]\n[x]\nversion = "=1"\n'),
    ],
)  # fmt: skip
def test_an_exact_pin_gives_way_to_the_trees_version(before, after):
    assert stand_ins.freed(before, "quinn", "2.0.0") == after


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("CC_TEST_FETCH"), reason="downloads crates and compiles for minutes: CC_TEST_FETCH=1"
)
def test_quinn_is_built_with_a_fork_of_quinn_proto(monkeypatch, tmp_path):
    """This uses the real cargo and the network; the fork is cargo's copy of a release, with a line changed."""
    monkeypatch.delenv("CC_CONFORMANCE_CACHE")
    adapter.build("quinn")
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    (released,) = [path.resolve() for path in home.glob("registry/src/*/quinn-proto-0.11.19")]
    fork = tmp_path / "fork"
    subprocess.run(["cp", "-r", str(released), str(fork)], check=True)
    given = [f"quinn-proto={fork}"]
    adapter.build("quinn", given=given)
    same = adapter.load("quinn", given=given)
    cubic = fork / "src" / "congestion" / "cubic.rs"
    text = cubic.read_text()
    cubic.write_text(text.replace("BETA_CUBIC: f64 = 0.7", "BETA_CUBIC: f64 = 0.8"))
    assert cubic.read_text() != text
    with pytest.raises(building.NotBuilt, match=r"not built with quinn-proto@\w{6}; run .*--source quinn-proto="):
        adapter.load("quinn", given=given)
    adapter.build("quinn", given=given)
    changed = adapter.load("quinn", given=given)
    assert (same.build / "quinn").read_bytes() != (changed.build / "quinn").read_bytes()
    assert len({same.version, changed.version, adapter.load("quinn").version}) == 3
    assert paths.cache("adapters") in changed.build.parents

"""Versions of registries in place of a working tree, with tools that stand in for cargo and go."""

import json
import pathlib

import pytest
from test_sources import GO_MOD, program

from conformance.lab import registry, sources
from conformance.model.errors import UserError
from conformance.model.trials.trial import Scheme
from conformance.support import paths


class About:
    """An adapter in a folder that takes Go modules and crates."""

    name, build, sources = "quic", None, ()

    def __init__(self, folder):
        self.folder = folder


@pytest.fixture
def about(tmp_path, monkeypatch):
    """Return an adapter whose tools, in an empty registry, find the one version v2.0.1 or 2.0.1 of anything."""
    monkeypatch.setattr(registry.manifest, "search_path", lambda: f"{tmp_path / 'bin'}:/usr/bin:/bin")
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    (fetched / "go.mod").write_text("module example.org/x/quic/v2\n")
    told = json.dumps({"packages": [{"name": "core", "manifest_path": str(fetched / "Cargo.toml")}]})
    program(
        tmp_path / "bin" / "cargo",
        f"""
case " $* " in *" --offline "*) exit 101 ;; esac
grep -q '"core" = {{ version = "=2.0.1"' Cargo.toml || {{ echo "noise
error: no such version" >&2; exit 101; }}
echo '{told}'
""",
    )
    program(
        tmp_path / "bin" / "go",
        f"""
case "$4" in
    *@v2.0.1) echo '{{"Dir": "{fetched}"}}' ;;
    *) printf '%s' '{{"Error": "no such\\tversion"}}'; exit 1 ;;
esac
""",
    )
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "go.mod").write_text(GO_MOD)
    (adapter / "crates.lock").write_text('[[package]]\nname = "core"\n')
    return About(adapter)


@pytest.mark.parametrize("given", ["quic=v2.0.1", "quic=2.0.1", "core=2.0.1"])
def test_a_version_is_fetched_and_named(about, tmp_path, given):
    (found,) = sources.find(about, [given])
    name, _, version = given.partition("=")
    assert found.folder == tmp_path / "fetched"
    assert (found.label, found.commit) == (f"{sources.short(found.name)}@{version}", None)
    assert sources.options([found]) == f" --source {found.name}={version}" and name in found.name


@pytest.mark.parametrize(
    ("given", "words"),
    [("quic=v9.9", "go: no such version"), ("core=9.9", "cargo: error: no such version")],
)
def test_a_version_that_no_registry_has_is_one_line(about, given, words):
    with pytest.raises(UserError) as refused:
        sources.find(about, [given])
    assert str(refused.value) == f"{words}; name a version that the registry has, or see that it answers"


def test_a_version_of_a_python_package_replaces_what_the_build_installed(about, tmp_path, monkeypatch):
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    (about.folder / "requirements.lock").write_text("wire-quic==3.0 \\\n    --hash=sha256:12\n")
    installs = (
        'for last; do :; done; while [ "$1" != --target ]; do shift; done; mkdir -p "$2/wire"; echo $last >"$2/wire/v"'
    )
    program(tmp_path / "bin" / "python3", installs)
    monkeypatch.setattr(registry, "_PYTHON", str(tmp_path / "bin" / "python3"))
    (source,) = sources.find(about, ["wire-quic=2.0"])
    assert source.label == "wire-quic@2.0"
    build = tmp_path / "build"
    for name in ("wire", "wire_quic-3.0.dist-info", "other"):
        (build / name).mkdir(parents=True)
        (build / name / "new").touch()
    sources.Workshop(sources=(source,)).replace(build)
    assert sorted(str(path.relative_to(build)) for path in build.rglob("*") if path.is_file()) == [
        "other/new",
        "wire/v",
    ]
    assert (build / "wire" / "v").read_text() == "wire-quic==2.0\n"
    program(tmp_path / "bin" / "python3", "exit 1")  # it is fetched once
    assert sources.find(about, ["wire-quic=2.0"]) == (source,)


def test_a_tree_of_a_python_package_is_refused(about):
    (about.folder / "requirements.lock").write_text("wire-quic==3.0\n")
    with pytest.raises(UserError, match=r"of Python packages, versions are taken; write wire-quic=1\.2\.3"):
        sources.find(about, ["wire-quic=/tmp"])


def test_a_users_own_build_has_no_versions(about, tmp_path):
    program(about.folder / "build", "echo $LIB_HOME")
    about.build = {"program": "build"}
    with pytest.raises(UserError, match=r"lib=1\.2: no registry has versions of lib; name the folder of a build"):
        sources.find(about, ["lib=1.2"])


def test_a_folder_that_looks_like_a_version_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1.2").mkdir()
    assert sources.absolute(["quic=1.2", "core=1.3"]) == ("core=1.3", f"quic={tmp_path / '1.2'}")


def test_another_version_of_the_stack_is_the_versions_that_people_read():
    def version(stack, stated):
        return Scheme(
            algorithm="reno", stack=stack, stack_version=stated, stack_digest="d" * 16, kernel="default",
            kernel_release="7.2.11", kernel_digest="k" * 16,
        ).version  # fmt: skip

    assert version("quic-go", "quic-go v0.65.0, go1.26; with quic-go@v0.63.0") == "0.63.0"
    assert version("quic-go", "quic-go v0.65.0; with quic-go@1a2b3c") == "0.65.0+quic-go@1a2b3c"
    assert version("quinn", "quinn 0.11.9; with quinn-proto@0.11.8") == "0.11.9+quinn-proto@0.11.8"


def test_the_newest_version_is_learnt_from_the_tool_that_builds(about, tmp_path, monkeypatch):
    program(
        tmp_path / "bin" / "cargo",
        """
for version in 0.9.1 0.10.2; do printf '[[package]]\\nname = "core"\\nversion = "%s"\\n' $version; done > Cargo.lock
""",
    )
    program(tmp_path / "bin" / "go", """echo '{"Version": "v2.1.0"}'""")
    program(tmp_path / "bin" / "python", """echo '{"install": [{"metadata": {"version": "1.7.2"}}]}'""")
    monkeypatch.setattr(registry, "_PYTHON", "python")
    (about.folder / "requirements.lock").write_text("pack==1.0\n")
    assert [sources.newest(about, part) for part in ("core", "quic", "pack")] == ["0.10.2", "v2.1.0", "1.7.2"]


def test_what_another_process_fetched_meanwhile_is_used(own_cache, monkeypatch):
    kept = paths.cache("packages", "aioquic-1.2.0")

    def fetch(command, folder):
        for place in (kept, pathlib.Path(folder, "new")):
            (place / "aioquic").mkdir(parents=True)

    monkeypatch.setattr(registry, "_run", fetch)
    assert registry.package("aioquic", "1.2.0") == kept and [path.name for path in kept.iterdir()] == ["aioquic"]
    assert list(kept.parent.iterdir()) == [kept]

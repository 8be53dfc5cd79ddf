"""Where the default kernel's source comes from. Stand-ins for apt's programs answer with a line of shell each."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest

from conformance.kernel import build, source, store, suites
from conformance.model.errors import UserError
from conformance.support import limits, paths

# $last is the package; this machine's apt knows the packages in lists/, Debian's newer suites have those in newer/.
APT_CACHE = """
lists=lists
case "$*" in *Dir::State=*) lists=newer ;; esac
case " $* " in
*" search "*) for name in $(ls {folder}/$lists); do echo "$name - Linux kernel source"; done ;;
*" show "*)
    [ -e {folder}/$lists/$last ] || exit 100
    echo "Package: $last"
    echo "SHA256: $(sha256sum < {folder}/$lists/$last | cut -d ' ' -f 1)" ;;
esac
"""
APT_GET = """
case " $* " in
*" indextargets "*) cat ${CONTAINER:-{folder}}/mirror ;;
*" download "*) echo "$last" >> {folder}/fetched; cat {folder}/*/$last > $last.deb ;;
esac
"""
# Docker answers if it is set up. A container has this machine's files, the cache at another path, and a Debian mirror.
DOCKER = """
[ -e {folder}/docker ] || exit 1
[ "$1" = info ] && exit
echo "$*" >> {folder}/containers
for word; do case "$word" in *:/cache/sources) sources=${word%:/cache/sources} ;; esac; done
while [ "$1" != sh ]; do shift; done
export CONTAINER={folder}/container CC_CONFORMANCE_CACHE="${sources%/sources}"
sh -c "$(echo "$3" | sed "s,/cache/sources,$sources,g")" sh "$last"
"""
# An archive is a tarball behind three bytes.
DPKG_DEB = """
mkdir -p "$3/usr/src" && tail -c +4 "$2" > "$3/usr/src/$(basename "$2" .deb).tar.gz"
"""


class Debian:
    """The package lists of a machine; `notes` holds what source.locate() said."""

    def __init__(self, folder):
        self.folder, self.notes = folder, []
        (folder / "mirror").write_text("http://mirror.example/debian/\n")

    def add(self, name, where="lists", sublevel=1):
        major, minor = suites.series(name)
        tree = self.folder.parent / "trees" / name
        (tree / "arch" / "um").mkdir(parents=True, exist_ok=True)
        (tree / "Makefile").write_text(f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {sublevel}\n")
        tarball = self.folder.parent / "trees" / f"{name}.tar.gz"
        with tarfile.open(tarball, "w:gz") as tar:
            tar.add(tree, name)
        (self.folder / where / name).write_bytes(b"deb" + tarball.read_bytes())

    def locate(self, package=None):
        self.notes.clear()
        return source.locate(package, note=self.notes.append).name

    @property
    def fetched(self):
        log = self.folder / "fetched"
        return log.read_text().split() if log.exists() else []


@pytest.fixture
def debian(tmp_path, monkeypatch, own_cache):
    folder = tmp_path / "debian"
    for name in ("bin", "lists", "newer"):
        (folder / name).mkdir(parents=True)
    programs = {"apt-cache": APT_CACHE, "apt-get": APT_GET, "dpkg-deb": DPKG_DEB, "docker": DOCKER, "podman": "exit 1"}
    for name, text in programs.items():
        program = folder / "bin" / name
        program.write_text("#!/bin/sh\nfor last; do :; done\n" + text.replace("{folder}", str(folder)))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(source, "_INSTALLED", tmp_path / "none")
    monkeypatch.setattr(suites, "_KEYRING", pathlib.Path("/dev/null"))
    return Debian(folder)


@pytest.fixture
def compiled(monkeypatch):
    """Replace compiling; return the list of the digests of kernels that would have been compiled."""
    made = []

    def compiles(recipe, located, progress, jobs):
        made.append(recipe.digest)
        home = store.folder(recipe.digest)
        home.mkdir(parents=True)
        (home / "kernel.json").write_text('{"release": "7.2.1", "source": "s", "patches": []}')

    monkeypatch.setattr(build, "_build", compiles)
    monkeypatch.setattr(build, "missing_tools", list)
    return made


@pytest.mark.parametrize("where", ["lists", "newer"])
def test_the_default_source_is_linux_7_2_where_there_is_another_and_wherever_it_is(debian, where):
    debian.add("linux-source-6.12")
    debian.add("linux-source-7.2", where)
    assert debian.locate() == "linux-source-7.2.tar.gz"
    assert (debian.locate("linux-source-6.12"), debian.notes) == ("linux-source-6.12.tar.gz", [])
    assert debian.locate() == "linux-source-7.2.tar.gz"
    assert debian.fetched == ["linux-source-7.2", "linux-source-6.12"]


def test_what_replaced_it_is_taken_is_said_each_time_and_is_looked_for_once(debian):
    debian.add("linux-source-6.12")
    debian.add("linux-source-7.4", "newer")
    for _ in range(2):
        assert debian.locate() == "linux-source-7.4.tar.gz"
        assert debian.notes == ["Debian no longer has linux-source-7.2; using linux-source-7.4"]
        shutil.rmtree(debian.folder / "newer", ignore_errors=True)
    assert source.here() == source.here("linux-source-7.2") == source.here("linux-source-7.4")
    assert debian.fetched == ["linux-source-7.4"]


def test_a_debian_that_cannot_reach_newer_suites_does_not_get_an_older_kernel(debian):
    debian.add("linux-source-6.12")
    with pytest.raises(UserError, match=r"neither this machine's apt nor .* has linux-source-7\.2"):
        debian.locate()


def test_a_distribution_without_debians_mirror_gives_its_nearest_and_that_is_said(debian):
    (debian.folder / "mirror").write_text("")
    with pytest.raises(UserError, match=r"apt knows no linux-source package of 6\.1 or later; run `apt-get update`"):
        debian.locate()
    for name in ("linux-source-6.5.0", "linux-source-6.8.0"):
        debian.add(name)
    assert debian.locate() == "linux-source-6.8.0.tar.gz"
    said = "no linux-source-7.2, and there is no docker or podman to fetch it with; using linux-source-6.8.0, on which"
    assert [said in note for note in debian.notes] == [True]
    for name in ("linux-source-7.5.0", "linux-source-7.3.0"):
        debian.add(name)
    assert debian.locate() == "linux-source-7.3.0.tar.gz"


def test_a_digest_fetches_nothing_and_what_was_built_from_a_package_is_found_without_its_source(
    debian, compiled, own_cache
):
    debian.add("linux-source-7.2")
    notes = []
    of_package = build.digest_of(note=notes.append)
    assert (debian.fetched, len(notes)) == ([], 1)
    assert not (own_cache / "sources").exists()
    built = build.build()
    assert (built.name, [built.digest]) == ("default", compiled)
    assert build.digest_of() == built.digest != of_package
    # This is the state of a CI job that keeps kernels but no sources.
    shutil.rmtree(own_cache / "sources")
    assert build.digest_of() == of_package
    assert build.build("again").digest == built.digest
    assert (debian.fetched, len(compiled)) == (["linux-source-7.2"], 1)
    # Debian's next version is another kernel, and so is a kernel with a patch.
    patch = own_cache / "own.patch"
    patch.write_text("x")
    assert build.digest_of(patches=[patch]) not in (of_package, built.digest)
    debian.add("linux-source-7.2", sublevel=2)
    assert build.digest_of() != of_package
    assert build.build().digest != built.digest
    assert debian.fetched == ["linux-source-7.2"] * 2


def test_a_distribution_without_debians_mirror_gets_the_default_source_in_a_container(debian, monkeypatch):
    """Ubuntu is such a distribution; the same code looks for the source there, with the container's keyring."""
    (debian.folder / "mirror").write_text("")
    (debian.folder / "container").mkdir()
    (debian.folder / "container" / "mirror").write_text("http://mirror.example/debian/\n")
    (debian.folder / "docker").touch()
    debian.add("linux-source-6.8.0")
    debian.add("linux-source-7.2", "newer")
    if not pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists():
        pytest.skip("this is no Debian")
    assert (debian.locate(), debian.notes) == ("linux-source-7.2.tar.gz", [])
    assert (debian.locate("linux-source-6.8.0"), debian.fetched) == (
        "linux-source-6.8.0.tar.gz", ["linux-source-7.2", "linux-source-6.8.0"],
    )  # fmt: skip
    (run,) = (debian.folder / "containers").read_text().split("run --rm ")[1:]
    assert f"{paths.PACKAGE}:/suite/conformance:ro" in run and "PYTHONPATH=/suite" in run
    with pytest.raises(UserError, match=r"cannot fetch linux-source-6\.1 in a container of debian:12-slim with docker"):
        debian.locate("linux-source-6.1")


def test_what_runs_in_a_container_needs_only_python():
    program = "from conformance.kernel import source"
    path = str(paths.PACKAGE.parent)
    assert (
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({path!r}); {program}"]
        ).returncode
        == 0
    )


def test_a_digest_that_only_fetching_could_tell_is_of_recipe_and_name(debian, compiled, own_cache):
    debian.add("linux-source-7.2", "newer")
    notes = []
    by_name = build.digest_of(note=notes.append)
    assert "computed from the name linux-source-7.2, which apt does not know" in notes[0]
    patch = own_cache.parent / "own.patch"
    patch.write_text("x")
    others = {build.digest_of("linux-source-7.1"), build.digest_of(patches=[patch])}
    assert debian.fetched == [] and len({by_name, *others}) == 3
    built = build.build()
    # In a CI job that keeps kernels but no sources, nothing is fetched, built or looked for.
    shutil.rmtree(own_cache / "sources")
    debian.add("linux-source-7.2", "newer", sublevel=2)
    assert build.digest_of() == by_name
    notes.clear()
    assert build.build("again", note=notes.append).digest == built.digest
    assert [note.partition(" earlier;")[0] for note in notes] == ["using the kernel built from linux-source-7.2"]
    assert (debian.fetched, compiled) == (["linux-source-7.2"], [built.digest])
    assert build.build("patched", patches=[patch]).digest != built.digest


@pytest.mark.parametrize(("asked", "jobs"), [(None, 3), (5, 5)])
def test_it_is_compiled_with_the_cores_that_this_process_may_use(debian, monkeypatch, asked, jobs):
    """The process is in a container with a quota of three cores, on a machine with many."""
    debian.add("linux-source-7.2")
    monkeypatch.setattr(limits, "cores", lambda: list(range(64)))
    monkeypatch.setattr(limits, "core_quota", lambda: 2.5)
    monkeypatch.setattr(limits, "memory_mb", lambda: None)
    monkeypatch.setattr(limits, "most_processes", lambda: None)
    seen = []

    def compiles(recipe, located, progress, jobs):
        seen.append(jobs)
        raise UserError("enough")

    monkeypatch.setattr(build, "_build", compiles)
    monkeypatch.setattr(build, "missing_tools", list)
    with pytest.raises(UserError, match="enough"):
        build.build(jobs=asked)
    assert seen == [jobs]

"""The kernel's recipe and store. Building a kernel is left to `make kernel`, which every CI run does."""

import io
import json
import pathlib
import re
import subprocess
import tarfile

import pytest
from helpers import refusal

from conformance.kernel import build, source, store, suites
from conformance.model.errors import UserError
from conformance.support import paths


@pytest.fixture
def tree(tmp_path):
    """Make a folder that passes for a kernel source."""
    folder = tmp_path / "linux"
    (folder / "arch" / "um").mkdir(parents=True)
    (folder / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n")
    return folder


def test_no_kernel_names_the_command_that_builds_one(own_cache):
    assert "run `conformance kernel build`" in refusal(store.find)
    for name, command in (
        ("default", "build`"),
        (
            "bbrv3",
            "build bbrv3 --source linux-source-6.12 --patch bbr3.patch`; its patch is 6.12/0002-bbr3.patch of https://",
        ),
        ("6.12", "build 6.12 --source linux-source-6.12`"),
        ("7.2", "build 7.2 --source linux-source-7.2`"),
        ("mine", "build mine`"),
    ):
        with pytest.raises(UserError, match=re.escape(f"run `conformance kernel {command}")):
            store.find(name)
    assert store.kernels() == []


def test_the_kernel_of_a_study_is_built_with_a_patch_that_ships(own_cache, monkeypatch, tmp_path):
    monkeypatch.chdir(paths.PACKAGE.parent)
    build_it = "conformance kernel build fixed --source linux-source-7.2 --patch studies/kernels/fixed-7.2.patch"
    with pytest.raises(UserError, match=f"no guest kernel named 'fixed' is built .*; run `{re.escape(build_it)}`"):
        store.find("fixed")
    monkeypatch.chdir(tmp_path)
    patch = pathlib.Path(store.how_to_build("fixed").rpartition(" ")[2])
    assert patch.is_absolute()
    assert patch.read_text().count("\n+++ b/net/ipv4/") == 3


def test_a_kernel_is_found_by_name(own_cache):
    home = store.folder("d" * 16)
    home.mkdir(parents=True)
    (home / "kernel.json").write_text('{"release": "6.12.1", "source": "s.tar", "patches": ["bbr3.patch"]}')
    store.link("bbrv3", "d" * 16)
    found = store.find("bbrv3")
    assert (found.release, found.patches, found.binary) == ("6.12.1", ("bbr3.patch",), home / "linux")
    store.link("gone", "e" * 16)
    assert [k.name for k in store.kernels()] == ["bbrv3"]


def test_a_kernel_of_another_version_of_the_suite_is_told_from_todays(own_cache, tmp_path):
    patch = tmp_path / "user.patch"
    patch.write_text("a user's patch")
    todays = dict(build._recipe((7, 2), "5" * 16, [patch]).inputs)
    home = store.folder("d" * 16)
    home.mkdir(parents=True)
    store.link("mine", "d" * 16)

    def is_current(**about):
        words = {"release": "7.2.11", "source": "s.tar", "patches": ["user.patch"], **about}
        (home / "kernel.json").write_text(json.dumps(words))
        return build.is_current(store.find("mine"))

    assert is_current(inputs=todays)
    assert not is_current(inputs={**todays, "config": "0" * 16})
    assert not is_current(inputs={**todays, "patches": todays["patches"][:-1]})
    assert not is_current()


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 65])
def test_names_that_are_no_file_names_are_refused(name):
    assert "kernel name" in refusal(store.check_name, name)


def test_sources_that_are_none_are_refused(tmp_path):
    assert "no such file, folder or linux-source package" in refusal(source.locate, str(tmp_path / "nowhere"))
    assert "it has no arch/um" in refusal(source.locate, str(tmp_path))
    (tmp_path / "t.tar").write_bytes(b"no tarball")
    assert "cannot unpack" in refusal(source.unpack, tmp_path / "t.tar", tmp_path / "into" / "linux")


def test_a_package_is_not_mistaken_for_one_with_a_longer_number(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "_INSTALLED", tmp_path)
    for name in ("linux-source-6.1.tar.xz", "linux-source-6.12.tar.xz", "linux-source-6.1.patch.xz"):
        (tmp_path / name).write_bytes(b"")
    assert source.here("linux-source-6.1") == tmp_path / "linux-source-6.1.tar.xz"


def test_the_digest_follows_content(tree):
    before = source.digest(tree)
    (tree / "Makefile").write_text("other:\n")
    assert source.digest(tree) != before


def test_a_tarball_unpacks_without_its_top_folder(tree, tmp_path):
    tarball = tmp_path / "linux.tar"
    with tarfile.open(tarball, "w") as tar:
        tar.add(tree, "linux-6.12")
        info = tarfile.TarInfo("linux-6.12/README")
        info.size = 2
        tar.addfile(info, io.BytesIO(b"hi"))
    source.unpack(tarball, tmp_path / "out" / "linux")
    assert (tmp_path / "out" / "linux" / "README").read_text() == "hi"


def test_a_missing_patch_is_an_error_before_anything_is_unpacked(tree):
    assert "no such file" in refusal(build.build, "x", str(tree), ["/nonexistent.patch"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-nothing like it\n+x\n", "FAILED"),
        (b"no patch at all\n", "Only garbage was found in the patch input"),
        (b"--- a/caf\xe9\n+++ b/caf\xe9\n@@ -1 +1 @@\n-x\n+y\n", "can't find file to patch"),
    ],
)
def test_a_patch_that_does_not_apply_is_named_with_what_patch_says(tree, tmp_path, own_cache, monkeypatch, text, said):
    """Also of a file that is no patch, or in another encoding."""
    monkeypatch.setattr(build, "missing_tools", lambda: [])
    monkeypatch.setattr(build, "own_patches", lambda version: [])
    bad = tmp_path / "bbr9.patch"
    bad.write_bytes(text)
    why = refusal(build.build, "x", str(tree), [bad])
    assert "bbr9.patch does not apply to this source" in why and said in why
    assert not list((own_cache / "build").glob("*"))


def test_a_program_that_cannot_be_stripped_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"strip failed: .*none.*; free space"):
        build._strip(tmp_path / "none", tmp_path / "to")


def test_an_option_that_kconfig_dropped_is_an_error(tmp_path):
    config = tmp_path / ".config"
    config.write_text("CONFIG_A=y\n")
    build._check_config(config, "CONFIG_A=y\n# a comment\nCONFIG_B=y # optional: new in 7.0\n")
    assert "does not offer CONFIG_C=y" in refusal(build._check_config, config, "CONFIG_A=y\nCONFIG_C=y\n")


@pytest.mark.parametrize(
    ("version", "count", "faster"), [((6, 1), 6, 2), ((6, 12), 7, 2), ((7, 2), 10, 5), ((7, 3), 10, 5)]
)
def test_each_source_gets_the_patches_for_its_version_in_order(version, count, faster):
    own = build.own_patches(version)
    names = [p.name for p in own]
    assert len(names) == count
    assert names == sorted(names)
    assert len(build.faster_patches(version)) == faster
    since = {"since-6.12"} if version >= (6, 12) else set()
    assert {p.parent.name for p in own} == {"patches", "7.2" if version >= (7, 2) else "6.1"} | since


def test_a_source_older_than_our_patches_is_refused():
    assert "no patches for Linux 5.10; give a source of 6.1 or later" in refusal(build.own_patches, (5, 10))


def test_the_version_is_what_the_makefile_says(tree, tmp_path):
    assert source.version(tree) == (6, 12)
    tarball = tmp_path / "linux.tar"
    with tarfile.open(tarball, "w") as tar:
        tar.add(tree, "linux-source-6.12")
    assert source.version(tarball) == (6, 12)
    (tree / "Makefile").write_text("all:\n")
    assert "names no version" in refusal(source.version, tree)


def test_a_package_that_debian_replaced_is_replaced_where_any_new_one_will_do():
    held = {f"linux-source-{v}": [] for v in ("6.12", "7.10", "7.3")}
    assert suites.newest(held, "linux-source-7.2") == "linux-source-7.10"
    assert suites.newest(held, "linux-source-7.11") is None
    assert suites.newest(held, "linux-source-6.1") is None
    assert suites.newest({}, "linux-source-7.2") is None


@pytest.fixture
def apt(monkeypatch):
    """Return Debian as {suite: packages}; `apt[None]` is what apt-get says if there is no such suite."""
    held = {None: "E: The repository 'http://mirror.example/debian x Release' does not have a Release file."}

    def run(command):
        lists = next((w for w in command if w.startswith("Dir::State=")), "")
        suite = lists.rpartition("/")[2]
        if "indextargets" in command:
            return subprocess.CompletedProcess(command, 0, "http://mirror.example/debian/\n", "")
        if suite not in held:
            return subprocess.CompletedProcess(command, 100, "", held[None])
        return subprocess.CompletedProcess(command, 0, "".join(f"{name} - a source\n" for name in held[suite]), "")

    monkeypatch.setattr(suites, "_run", run)
    monkeypatch.setattr(suites, "_KEYRING", pathlib.Path("/dev/null"))
    return held


def test_a_package_is_found_in_the_first_suite_that_has_it(apt, tmp_path):
    apt.update({"testing": ["linux-source-7.2", "linux-source-7.2.1-extra"], "unstable": ["linux-source-7.2"]})
    package, options = suites.find("linux-source-7.2", tmp_path)
    assert package == "linux-source-7.2"
    assert f"Dir::State={tmp_path}/testing" in options
    assert "http://mirror.example/debian/ testing main" in (tmp_path / "testing" / "sources.list").read_text()


def test_where_no_suite_has_it_the_error_says_what_they_have_and_no_address(apt, tmp_path):
    with pytest.raises(UserError, match="stable-backports: E: The repository") as caught:
        suites.find("linux-source-7.2", tmp_path)
    assert "mirror.example" not in str(caught.value)
    apt.update({suite: ["linux-source-6.12"] for suite in suites.SUITES})
    with pytest.raises(UserError, match=r"neither this machine's apt nor .* has linux-source-7\.2 \(they have linux-"):
        suites.find("linux-source-7.2", tmp_path)


def test_a_series_that_is_newer_than_all_is_refused_after_one_suite(apt, tmp_path):
    apt.update({"unstable": ["linux-source-7.2", "linux-source-7.3"], "testing": ["linux-source-7.2"]})
    with pytest.raises(UserError, match=r"nor its mirror's unstable has linux-source-9\.9 \(they have linux"):
        suites.find("linux-source-9.9", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["unstable"]
    apt["testing"] = ["linux-source-7.3"]
    apt["unstable"] = ["linux-source-7.4"]
    assert suites.find("linux-source-7.3", tmp_path)[0] == "linux-source-7.3", "testing still has it"


def test_a_series_without_patches_is_refused_before_it_is_looked_for(monkeypatch, own_cache):
    monkeypatch.setattr(source, "locate", lambda *_: pytest.fail("it was looked for"))
    with pytest.raises(UserError, match=r"there are no patches for Linux 5\.10; give a source of 6\.1 or later"):
        build.build("old", "linux-source-5.10")


def test_the_digest_is_had_without_building_and_is_the_one_that_a_build_is_found_by(
    tree, tmp_path, own_cache, monkeypatch
):
    patch = tmp_path / "own.patch"
    patch.write_text("x")
    digest = build.digest_of(tree)
    assert digest != build.digest_of(tree, [patch])
    home = store.folder(digest)
    home.mkdir(parents=True)
    (home / "kernel.json").write_text('{"release": "6.12.1", "source": "linux", "patches": []}')
    monkeypatch.setattr(build, "missing_tools", list)
    assert build.build("mine", tree).digest == digest
    with pytest.raises(UserError, match=r"--patch .*none: no such file"):
        build.digest_of(tree, [tmp_path / "none"])

"""The kernel's recipe and store; building one is left to `make kernel`, which every CI run does."""

import io
import tarfile

import pytest

from conformance.kernel import build, source, store
from conformance.model.errors import UserError


@pytest.fixture
def tree(tmp_path):
    """A folder that passes for a kernel source."""
    folder = tmp_path / "linux"
    (folder / "arch" / "um").mkdir(parents=True)
    (folder / "Makefile").write_text("all:\n")
    return folder


def test_no_kernel_names_the_command_that_builds_one(own_cache):
    with pytest.raises(UserError, match="run `conformance kernel build`"):
        store.find()
    with pytest.raises(UserError, match="run `conformance kernel build bbrv3 --patch"):
        store.find("bbrv3")
    assert store.kernels() == []


def test_a_kernel_is_found_by_name(own_cache):
    home = store.folder("d" * 16)
    home.mkdir(parents=True)
    (home / "kernel.json").write_text('{"release": "6.12.1", "source": "s.tar", "patches": ["bbr3.patch"]}')
    store.link("bbrv3", "d" * 16)
    found = store.find("bbrv3")
    assert (found.release, found.patches, found.binary) == ("6.12.1", ("bbr3.patch",), home / "linux")
    store.link("gone", "e" * 16)
    assert [k.name for k in store.kernels()] == ["bbrv3"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 65])
def test_names_that_are_no_file_names_are_refused(name):
    with pytest.raises(UserError, match="kernel name"):
        store.check_name(name)


def test_sources_that_are_none_are_refused(tmp_path):
    with pytest.raises(UserError, match="no such file, folder or linux-source package"):
        source.locate(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="it has no arch/um"):
        source.locate(str(tmp_path))
    (tmp_path / "t.tar").write_bytes(b"no tarball")
    with pytest.raises(UserError, match="cannot unpack"):
        source.unpack(tmp_path / "t.tar", tmp_path / "into" / "linux")


def test_a_package_is_not_mistaken_for_one_with_a_longer_number(tmp_path):
    for name in ("linux-source-6.1.tar.xz", "linux-source-6.12.tar.xz", "linux-source-6.1.patch.xz"):
        (tmp_path / name).write_bytes(b"")
    assert source._tarballs(tmp_path, "linux-source-6.1") == [tmp_path / "linux-source-6.1.tar.xz"]


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
    with pytest.raises(UserError, match="no such file"):
        build.build("x", str(tree), ["/nonexistent.patch"])


def test_a_patch_that_does_not_apply_is_named(tree, tmp_path, own_cache, monkeypatch):
    monkeypatch.setattr(build, "missing_tools", lambda: [])
    monkeypatch.setattr(build, "own_patches", lambda: [])
    bad = tmp_path / "bbr9.patch"
    bad.write_text("--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-nothing like it\n+x\n")
    with pytest.raises(UserError, match=r"bbr9\.patch does not apply to this source"):
        build.build("x", str(tree), [bad])
    assert not list((own_cache / "build").glob("*"))


def test_an_option_that_kconfig_dropped_is_an_error(tmp_path):
    config = tmp_path / ".config"
    config.write_text("CONFIG_A=y\n")
    build._check_config(config, "CONFIG_A=y\n# a comment\nCONFIG_B=y # optional: new in 7.0\n")
    with pytest.raises(UserError, match="does not offer CONFIG_C=y"):
        build._check_config(config, "CONFIG_A=y\nCONFIG_C=y\n")


def test_our_patches_are_where_the_build_looks():
    names = [p.name for p in build.own_patches()]
    assert len(names) == 5
    assert names == sorted(names)
    assert len(build.faster_patches()) == 2

"""Container images that are made here: packed in each way, with layers, and malicious ones."""

import gzip
import hashlib
import io
import json
import lzma
import platform
import subprocess
import tarfile

import pyarrow
import pytest

from conformance.lab import image
from conformance.model.errors import UserError
from conformance.support import paths

OURS = image._ARCHITECTURES.get(platform.machine(), platform.machine())
TYPES = {"": "", "gz": "+gzip", "zst": "+zstd"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", str(tmp_path / "cache"))


def member(name, content=None, kind=None, link="", mode=0o644):
    about = tarfile.TarInfo(name)
    about.type = kind or (tarfile.DIRTYPE if content is None and not link else tarfile.REGTYPE)
    about.size, about.linkname, about.mode = len(content or b""), link, mode
    return about, content


def packed_tar(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for about, content in members:
            archive.addfile(about, io.BytesIO(content or b""))
    return out.getvalue()


def compressed(layer, how):
    if how == "gz":
        return gzip.compress(layer)
    return bytes(pyarrow.compress(layer, codec="zstd")) if how == "zst" else layer


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def config(plain, architecture=OURS):
    return json.dumps({"architecture": architecture, "rootfs": {"type": "layers", "diff_ids": plain}}).encode()


def oci(plain, how="gz", architecture=OURS, media_type=None, platforms=()):
    """Return {name: content} of an OCI image with these layers."""
    blobs = [config([digest(layer) for layer in plain], architecture)] + [compressed(layer, how) for layer in plain]
    media_type = media_type or f"application/vnd.oci.image.layer.v1.tar{TYPES[how]}"
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "config": {"digest": digest(blobs[0])},
            "layers": [{"mediaType": media_type, "digest": digest(blob)} for blob in blobs[1:]],
        }
    ).encode()
    entries = [{"digest": digest(manifest), **({"platform": p} if p else {})} for p in platforms or (None,)]
    files = {"oci-layout": b"{}", "index.json": json.dumps({"manifests": entries}).encode()}
    return files | {f"blobs/sha256/{digest(blob)[7:]}": blob for blob in [*blobs, manifest]}


def docker(plain, how=""):
    """Return {name: content} as `docker save` writes it."""
    names = [f"{n}/layer.tar" for n, _ in enumerate(plain)]
    manifest = [{"Config": "config.json", "RepoTags": ["endpoint:latest"], "Layers": names}]
    layer_files = {name: compressed(layer, how) for name, layer in zip(names, plain, strict=True)}
    files = {"manifest.json": json.dumps(manifest).encode(), "config.json": config([digest(layer) for layer in plain])}
    return files | layer_files


def folder(files, path):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def archive(files, path):
    path.write_bytes(packed_tar(*(member(name, content) for name, content in files.items())))
    return path


BASE = packed_tar(
    member("etc/", mode=0o755),
    member("etc/passwd", b"root"),
    member("etc/shadow", b"secret", mode=0o400),
    member("usr/bin/", mode=0o755),
    member("bin", kind=tarfile.SYMTYPE, link="usr/bin"),
    member("opt/old", b"old"),
    member("opt/kept", b"kept"),
    member("var/lib/one", b"1"),
)
UPPER = packed_tar(
    member("./bin/run", b"#!", mode=0o4755),
    member("etc/.wh.passwd", b""),
    member("opt/new", b"new"),
    member("opt/.wh..wh..opq", b""),
    member("var/lib", b"a file now"),
    member("usr/bin/again", kind=tarfile.LNKTYPE, link="bin/run"),
    member("dev/console", kind=tarfile.CHRTYPE),
)


def listing(root):
    return {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir() or p.is_symlink()}


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("packed", [oci, docker])
@pytest.mark.parametrize("place", [folder, archive])
def test_layers_are_put_one_over_the_other(tmp_path, place, packed, how):
    root = image.unpacked(str(place(packed([BASE, UPPER], how), tmp_path / "endpoint.tar")))
    assert root.name == "endpoint"
    assert listing(root) == {"bin", "etc/shadow", "opt/new", "usr/bin/again", "usr/bin/run", "var/lib"}
    assert (root / "usr/bin/run").samefile(root / "usr/bin/again")
    assert (root / "usr/bin/run").stat().st_mode & 0o7777 == 0o755  # no set-user-ID
    assert (root / "etc/shadow").stat().st_mode & 0o777 == 0o604  # the image's root is `nobody` in the guest


def test_an_image_is_unpacked_once(tmp_path):
    path = str(archive(oci([BASE]), tmp_path / "my image.oci.tar"))
    first = image.unpacked(path)
    (first / "mark").touch()
    assert image.unpacked(path) == first
    assert (first / "mark").exists()
    assert first.name == image.name_of(path) == "my-image"
    assert image.unpacked(str(archive(oci([BASE, UPPER]), tmp_path / "my image.oci.tar"))) != first


def test_an_archive_may_be_compressed_as_a_whole(tmp_path):
    path = archive(docker([BASE]), tmp_path / "i.tar")
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert (image.unpacked(str(path)) / "etc/passwd").read_text() == "root"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member("../evil", b"x")], "lies outside"),
        ([member("/evil", b"x")], "lies outside"),
        ([member("a/../../evil", b"x")], "lies outside"),
        ([member("a", kind=tarfile.LNKTYPE, link="../../evil")], "lies outside"),
        ([member("a", kind=tarfile.LNKTYPE, link="nothing")], "link to something that is not a file"),
        ([member("a", kind=tarfile.SYMTYPE, link="a"), member("a/b", b"x")], "loop of links"),
        ([member("a", b"x"), member("a/b", b"x")], "a file and a folder"),
        ([member("a/.wh...", b"x")], "not a valid file name"),
    ],
)
def test_a_layer_that_would_write_elsewhere_is_refused(tmp_path, members, words):
    path = archive(oci([packed_tar(*members)]), tmp_path / "i.tar")
    with pytest.raises(UserError, match=words):
        image.unpacked(str(path))
    assert not list(tmp_path.rglob("evil"))
    assert [p for p in paths.cache("images").rglob("*") if p.name != "lock" and not p.is_dir()] == []


def test_links_are_followed_inside_only(tmp_path):
    """Links resolve as in a guest, where the image's folder is the root."""
    (tmp_path / "outside").mkdir()
    outside = str(tmp_path / "outside")
    layer = packed_tar(
        member("absolute", kind=tarfile.SYMTYPE, link=outside),
        member("absolute/x", b"x"),
        member("up", kind=tarfile.SYMTYPE, link="../../../../etc"),
        member("up/y", b"y"),
    )
    root = image.unpacked(str(archive(oci([layer]), tmp_path / "i.tar")))
    assert list((tmp_path / "outside").iterdir()) == []
    assert (root / outside.lstrip("/") / "x").read_text() == "x"
    assert (root / "etc/y").read_text() == "y"


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_a_file_of_which_a_layer_holds_little_counts_with_its_size(tmp_path, form):
    with open(tmp_path / "big", "wb") as file:
        file.truncate(64 << 20)
    words = ["tar", f"--format={form}", "--sparse", "-C", str(tmp_path), "-cf", str(tmp_path / "layer.tar"), "big"]
    subprocess.run(words, check=True)
    layer = (tmp_path / "layer.tar").read_bytes()
    assert len(layer) < 1 << 20
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(image.Unsafe, match="more than 1 MB"):
        image.Unpacking(root, most_bytes=1 << 20).add(io.BytesIO(layer), digest(layer))
    assert sum(file.stat().st_size for file in root.rglob("*")) == 0


def test_folders_within_each_other_are_bounded(tmp_path):
    with pytest.raises(UserError, match="is nested in more than 200 folders"):
        image.unpacked(str(archive(oci([packed_tar(member("/".join(["a"] * 300) + "/f", b"x"))]), tmp_path / "i.tar")))


def test_a_damaged_archive_of_xz_is_one_line(tmp_path):
    whole = archive(oci([BASE]), tmp_path / "i.tar").read_bytes()
    packed = bytearray(lzma.compress(whole))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "i.tar.xz").write_bytes(packed)
    with pytest.raises(UserError, match="is not a usable image"):
        image.unpacked(str(tmp_path / "i.tar.xz"))


def test_size_and_number_of_files_are_bounded(tmp_path):
    def add(**bounds):
        root = tmp_path / str(bounds)
        root.mkdir()
        image.Unpacking(root, **bounds).add(io.BytesIO(gzip.compress(BASE)), digest(BASE))

    add(most_bytes=len(BASE))
    with pytest.raises(image.Unsafe, match="MB"):
        add(most_bytes=len(BASE) - 1)
    with pytest.raises(image.Unsafe, match="more than 3 files"):
        add(most_files=3)


OTHER = {"architecture": "s390x", "os": "linux"}
MINE = {"architecture": OURS, "os": "linux"}


def spoilt(files, name, content):
    return files | {next(key for key in files if name in key): content}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (oci([BASE], architecture="s390x"), f"is for s390x, but this machine is {OURS}"),
        (oci([BASE], platforms=[OTHER]), "it is for s390x"),
        (oci([BASE], platforms=[MINE, MINE]), "holds 2 images"),
        (oci([BASE], media_type="application/vnd.oci.image.layer.v1.tar+xz"), "unknown media type .*xz"),
        (spoilt(oci([BASE]), "index.json", b"{}"), "index.json does not say"),
        (spoilt(oci([BASE]), "index.json", b"["), "index.json is not a JSON object"),
        (spoilt(oci([BASE]), "index.json", b'{"manifests": [{"digest": "sha256:../../x"}]}'), "is not a digest"),
        (spoilt(docker([BASE]), "config.json", config(["sha256:0"])), "does not match its digest"),
        (spoilt(docker([BASE]), "config.json", config([])), "does not say what its layers are"),
        (spoilt(docker([BASE]), "config.json", b'{"architecture": "%s", "rootfs": 1}' % OURS.encode()), "does not say"),
        (spoilt(docker([BASE]), "manifest.json", b"[]"), "does not name exactly one image"),
        (spoilt(docker([BASE]), "layer.tar", b"no tar at all" * 99), "not a usable image"),
        (spoilt(docker([BASE], "gz"), "layer.tar", gzip.compress(BASE)[:-300]), "not a usable image|cannot"),
        (spoilt(docker([BASE], "zst"), "layer.tar", compressed(BASE, "zst")[:-9]), "not a usable image|cannot"),
        ({"etc/passwd": b""}, "neither index.json nor manifest.json"),
    ],
)
def test_what_is_no_image_for_us_is_refused_in_a_line(tmp_path, files, words):
    for path in (archive(files, tmp_path / "i.tar"), folder(files, tmp_path / "i")):
        with pytest.raises(UserError, match=words) as refusal:
            image.unpacked(str(path))
        assert "\n" not in str(refusal.value)


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "i.tar").write_text("hello")
    with pytest.raises(UserError, match="neither a folder nor a tar archive"):
        image.unpacked(str(tmp_path / "i.tar"))
    with pytest.raises(UserError, match="No such file"):
        image.unpacked(str(tmp_path / "nothing"))


def test_of_a_list_of_images_the_one_for_this_machine_counts(tmp_path):
    unknown = {"architecture": "unknown", "os": "unknown"}
    path = folder(oci([BASE], platforms=[unknown, OTHER, MINE]), tmp_path / "endpoint")
    assert listing(image.unpacked(str(path))) >= {"etc/passwd"}


def test_only_one_option_names_an_image(tmp_path):
    assert image.rootfs("folder", None) == "folder"
    assert image.rootfs(None, None) is None
    path = str(archive(oci([BASE]), tmp_path / "i.tar"))
    assert image.rootfs(None, path) == str(image.unpacked(path))
    with pytest.raises(UserError, match="leave one out"):
        image.rootfs("folder", path)

"""Unpack container images into the user's cache: OCI folders and archives, and what `docker save` writes.

Images come from strangers, so nothing in them is trusted: every layer must have the digest that the image's
configuration gives, no file is written outside the folder, and the size and number of files are limited.
"""

import contextlib
import fcntl
import gzip
import hashlib
import io
import json
import lzma
import os
import pathlib
import platform
import re
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, cast

from conformance.model.errors import UserError
from conformance.support import paths

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_DOCUMENT_BYTES = 4 << 20
#: how deeply indexes may be nested
_INDEXES = 4
_MEND = "save one with `skopeo copy ... oci-archive:FILE`, or with `docker save`"
_Json = dict[str, Any]


class _NoImage(Exception):
    """The file is not an image, or a damaged one; the message says why."""


def name_of(image: str) -> str:
    """Return the name of the stack in an image: the file's name without suffixes that tell how it is packed."""
    plain = re.sub(r"(\.(tar|oci|tgz|gz|zst|img))+$", "", paths.given(image).resolve().name)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip(".-") or "image"


def rootfs(folder: str | None, image: str | None) -> str | None:
    """Return the folder with an image's files: `folder` itself, or where `image` is unpacked. Raises UserError."""
    if image is None:
        return folder
    if folder is not None:
        raise UserError("--interop-image and --interop-rootfs both name an image", "leave one out")
    return str(unpacked(image))


def unpacked(image: str) -> pathlib.Path:
    """Return the folder in the cache with the files of an image; unpack the image now if necessary.

    The folder is named after the digest of the image's configuration, which covers every layer. Raises UserError.
    """
    try:
        with _opened(paths.given(image)) as files:
            return _ensure(image, *_chosen(files), files)
    except (_NoImage, Unsafe, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError) as why:
        raise UserError(f"{image} is not a usable image: {' '.join(str(why).split())}", _MEND) from None
    except OSError as error:
        raise UserError(f"cannot unpack {image}: {error.strerror or error}", "check that it is complete") from None


def _ensure(image: str, config: bytes, blobs: list[str], files: "_Files") -> pathlib.Path:
    about = _document(config, "its configuration")
    _check_architecture(image, about.get("architecture"))
    declared = about.get("rootfs")
    digests = declared.get("diff_ids") if isinstance(declared, dict) else None
    if not isinstance(digests, list) or len(digests) != len(blobs):
        raise _NoImage("its configuration does not say what its layers are")
    home: pathlib.Path = paths.cache("images", hashlib.sha256(config).hexdigest()[:16], name_of(image))
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            with tempfile.TemporaryDirectory(dir=home.parent, prefix=".new-", ignore_cleanup_errors=True) as aside:
                root = pathlib.Path(aside, "root")
                root.mkdir()
                unpacking = Unpacking(root)
                for blob, digest in zip(blobs, digests, strict=True):
                    with files.open(blob) as packed:
                        unpacking.add(packed, str(digest))
                root.chmod(0o755)
                root.rename(home)
    return home


def _check_architecture(image: str, theirs: object) -> None:
    ours = _ARCHITECTURES.get(platform.machine(), platform.machine())
    if theirs != ours:
        raise UserError(f"{image} is for {theirs}, but this machine is {ours}", f"save the image for linux/{ours}")


class _Files:
    """The files of an image, by their names in it."""

    def open(self, name: str) -> IO[bytes]:
        raise NotImplementedError

    def read(self, name: str) -> bytes:
        """Return a document's bytes. Raises _NoImage if there is none of that name, or if it is too long."""
        with self.open(name) as file:
            content = file.read(_DOCUMENT_BYTES + 1)
        if len(content) > _DOCUMENT_BYTES:
            raise _NoImage(f"its {name} is too long")
        return content

    def has(self, name: str) -> bool:
        try:
            self.open(name).close()
        except _NoImage:
            return False
        return True


class _Folder(_Files):
    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder.resolve()

    def open(self, name: str) -> IO[bytes]:
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder) or not path.is_file():
            raise _NoImage(f"it has no {name}")
        return open(path, "rb")


class _Archive(_Files):
    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._members = {member.name.removeprefix("./"): member for member in archive}

    def open(self, name: str) -> IO[bytes]:
        member = self._members.get(name)
        try:
            file = member and self._archive.extractfile(member)
        except KeyError:
            file = None  # a link to nothing
        if not file:
            raise _NoImage(f"it has no {name}")
        return file


@contextlib.contextmanager
def _opened(image: pathlib.Path) -> Iterator[_Files]:
    if image.is_dir():
        yield _Folder(image)
        return
    with open(image, "rb") as file:
        try:
            archive = tarfile.open(fileobj=file, mode="r:*")
        except tarfile.ReadError:
            raise _NoImage("it is neither a folder nor a tar archive") from None
        with archive:
            yield _Archive(archive)


def _chosen(files: _Files) -> tuple[bytes, list[str]]:
    """Return (configuration, names of the layers' files, lowest first) of the image for this machine."""
    if files.has("index.json"):
        return _of_oci(files)
    if files.has("manifest.json"):
        return _of_docker(files)
    raise _NoImage("it has neither index.json nor manifest.json")


def _of_docker(files: _Files) -> tuple[bytes, list[str]]:
    try:
        entries = json.loads(files.read("manifest.json"))
        (entry,) = entries
        config, blobs = str(entry["Config"]), [str(name) for name in entry["Layers"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _NoImage("its manifest.json does not name exactly one image") from None
    return files.read(config), blobs


def _of_oci(files: _Files) -> tuple[bytes, list[str]]:
    manifest = _manifest(files, _document(files.read("index.json"), "index.json"), 0)
    config, blobs = manifest.get("config"), manifest.get("layers")
    if not isinstance(config, dict) or not isinstance(blobs, list):
        raise _NoImage("its manifest does not name a configuration and layers")
    for blob in blobs:
        check_media_type(blob.get("mediaType") if isinstance(blob, dict) else None)
    return _blob(files, config), [_place(blob) for blob in blobs]


def _manifest(files: _Files, index: _Json, depth: int) -> _Json:
    """Return the one manifest for this machine that an index leads to. An entry without a platform counts as ours."""
    entries = index.get("manifests")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries) or depth > _INDEXES:
        raise _NoImage("its index.json does not say what is in it")
    ours = _ARCHITECTURES.get(platform.machine(), platform.machine())
    images = [e for e in entries if _architecture(e) != "unknown"]  # such an entry says how an image was made
    fitting = [e for e in images if _architecture(e) in (None, ours)]
    if images and not fitting:
        raise _NoImage(
            f"it is for {', '.join(sorted({str(_architecture(e)) for e in images}))}, but this machine is {ours}"
        )
    if len(fitting) != 1:
        raise _NoImage(f"it holds {len(fitting)} images for this machine instead of one")
    manifest = _document(_blob(files, fitting[0]), "its manifest")
    return _manifest(files, manifest, depth + 1) if "manifests" in manifest else manifest


def _architecture(entry: _Json) -> object:
    platforms = entry.get("platform")
    return platforms.get("architecture") if isinstance(platforms, dict) else None


def _blob(files: _Files, entry: _Json) -> bytes:
    content = files.read(_place(entry))
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != entry["digest"]:
        raise _NoImage(f"{_place(entry)} does not match its digest")
    return content


def _place(entry: _Json) -> str:
    digest = str(entry.get("digest"))
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise _NoImage(f"{digest[:80]!r} is not a digest")
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _document(content: bytes, what: str) -> _Json:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise _NoImage(f"{what} is not a JSON object")
    return document


MOST_BYTES = 8 << 30
MOST_FILES = 1_000_000
_CHUNK_BYTES = 1 << 20
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_LINKS = 40
#: how deeply folders may be nested: removing them is recursive
_DEEPEST = 200
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MEDIA_TYPES = {
    f"application/vnd.{kind}{packed}"
    for kind, ends in (
        ("oci.image.layer.v1.tar", ("", "+gzip", "+zstd")),
        ("docker.image.rootfs.diff.tar", ("", ".gzip", ".zstd")),
    )
    for packed in ends
}


class Unsafe(Exception):
    """A layer is not what it should be, or would do harm; the message says why."""


def check_media_type(media_type: object) -> None:
    """Raise Unsafe unless an image's manifest gives a layer a type that can be unpacked."""
    if media_type not in _MEDIA_TYPES:
        raise Unsafe(f"a layer has the unknown media type {str(media_type)[:80]!r}")


class Unpacking:
    """Adds layers to a folder. Owners, devices and set-user-ID bits of files are left out.

    An image's programs expect to run as root but run as the user nobody here, so all users may read and execute what
    the owner may.
    """

    def __init__(self, root: pathlib.Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self._root, self._most_bytes, self._most_files = root, most_bytes, most_files
        self._bytes = self._files = self._written_bytes = 0

    def add(self, packed: IO[bytes], diff_id: str) -> None:
        """Add a layer, whose uncompressed bytes must have the digest `diff_id` ("sha256:..."). Raises Unsafe."""
        plain = _Digested(_decompressed(packed), self._count_bytes)
        paths: set[pathlib.Path] = set()
        with tarfile.open(fileobj=cast(IO[bytes], plain), mode="r|") as layer:
            for member in layer:
                self._files += 1
                if self._files > self._most_files:
                    raise Unsafe(f"it has more than {self._most_files} files")
                self._add(layer, member, paths)
        while plain.read(_CHUNK_BYTES):
            pass
        if f"sha256:{plain.digest.hexdigest()}" != diff_id:
            raise Unsafe(f"a layer does not match its digest, {diff_id[:80]}")

    def _count_bytes(self, number: int) -> None:
        self._bytes += number
        self._check_bytes(self._bytes)

    def _check_bytes(self, number: int) -> None:
        if number > self._most_bytes:
            raise Unsafe(f"it has more than {self._most_bytes >> 20} MB")

    def _add(self, layer: tarfile.TarFile, member: tarfile.TarInfo, paths: set[pathlib.Path]) -> None:
        parts = _parts(member.name)
        if not parts:
            return  # the root folder itself
        folder, name = self._inside(parts[:-1]), parts[-1]
        if name == _OPAQUE:
            _empty(folder, paths)
            return
        if name.startswith(_WHITEOUT):
            if name.removeprefix(_WHITEOUT) in ("", ".", ".."):
                raise Unsafe(f"{member.name[:80]!r} is not a valid file name")
            _remove(folder / name.removeprefix(_WHITEOUT))
            return
        place = folder / name
        if not (member.isdir() and _is_folder(place)):
            _remove(place)
        if self._make(layer, member, place):
            paths.update((place, *place.parents))

    def _make(self, layer: tarfile.TarFile, member: tarfile.TarInfo, place: pathlib.Path) -> bool:
        """Make a member at a place where nothing is, or a folder if the member is one; return whether it was made."""
        mode = member.mode & 0o777 | (member.mode & 0o500) >> 6
        if member.isdir():
            place.mkdir(exist_ok=True)
            place.chmod(mode | 0o700)
        elif member.issym():
            # The link is read in a guest only, where the image's folder is the root; nothing here follows it out.
            place.symlink_to(member.linkname)
        elif member.islnk():
            parts = _parts(member.linkname)
            target = self._inside(parts[:-1]) / parts[-1] if parts else self._root
            if not target.is_symlink() and not target.is_file():
                raise Unsafe(f"{member.name[:80]!r} is a hard link to something that is not a file")
            os.link(target, place, follow_symlinks=False)
        elif member.isfile():
            content = layer.extractfile(member)
            assert content is not None
            # A sparse file is larger than the part of it that the layer holds.
            self._written_bytes += member.size
            self._check_bytes(self._written_bytes)
            with open(place, "xb") as file:
                shutil.copyfileobj(content, file, _CHUNK_BYTES)
            place.chmod(mode | 0o600)
        else:
            return False  # devices and pipes; a guest has its own /dev
        return True

    def _inside(self, parts: Iterable[str]) -> pathlib.Path:
        """Return the folder that these names lead to, with the image's folder as the root; make it if necessary."""
        place, left, links = self._root, list(parts)[::-1], 0
        while left:
            name = left.pop()
            if name == "..":
                place = place if place == self._root else place.parent
                continue
            here = place / name
            if here.is_symlink():
                links += 1
                if links > _LINKS:
                    raise Unsafe(f"{name[:80]!r} is in a loop of links")
                target = str(here.readlink())
                if target.startswith("/"):
                    place = self._root
                left += [part for part in target.split("/") if part not in ("", ".")][::-1]
                continue
            if len(here.parts) - len(self._root.parts) > _DEEPEST:
                raise Unsafe(f"{name[:80]!r} is nested in more than {_DEEPEST} folders")
            if not here.exists():
                here.mkdir(mode=0o755)
            elif not here.is_dir():
                raise Unsafe(f"{name[:80]!r} is both a file and a folder")
            place = here
        return place


class _Digested(io.RawIOBase):
    """A stream's bytes, unchanged. `digest` covers the bytes read so far; `count` is told the length of each read."""

    def __init__(self, source: IO[bytes], count: Callable[[int], None]) -> None:
        self._source, self._count = source, count
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        content = self._source.read(size)
        self._count(len(content))
        self.digest.update(content)
        return content


def _decompressed(packed: IO[bytes]) -> IO[bytes]:
    """Return a stream of the uncompressed bytes; the first bytes tell how they are compressed."""
    start = packed.read(4)
    packed.seek(0)
    if start.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=packed))
    if start != _ZSTD:
        return packed
    try:
        import pyarrow
    except ImportError:
        raise Unsafe("its layers are compressed with zstd, which needs the extra parquet (gzip needs none)") from None
    return cast(IO[bytes], pyarrow.input_stream(packed, compression="zstd"))


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise Unsafe(f"{name[:80]!r} lies outside the image")
    return parts


def _is_folder(place: pathlib.Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _remove(place: pathlib.Path) -> None:
    """Remove what is at a place, if anything is."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(place.lstat().st_mode):
            shutil.rmtree(place)
        else:
            place.unlink()


def _empty(folder: pathlib.Path, but: set[pathlib.Path]) -> None:
    """Remove what lower layers put into a folder, but keep what the same layer made (`but`)."""
    for place in folder.iterdir():
        if place not in but:
            _remove(place)
        elif _is_folder(place):
            _empty(place, but)

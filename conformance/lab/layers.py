"""Unpack the layers of a container image, one after another, into a folder. None of them is trusted."""

import contextlib
import gzip
import hashlib
import io
import os
import pathlib
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterable
from typing import IO, cast

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

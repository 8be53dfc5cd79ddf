"""Unpack container images into the user's cache: OCI folders and archives, and what `docker save` writes.

Images come from strangers, so nothing in them is trusted: every layer must have the digest that the image's
configuration gives, no file is written outside the folder, and the size and number of files are limited.
"""

import contextlib
import fcntl
import hashlib
import json
import lzma
import pathlib
import platform
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from conformance.lab import layers
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
    except (_NoImage, layers.Unsafe, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError) as why:
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
                unpacking = layers.Unpacking(root)
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
        layers.check_media_type(blob.get("mediaType") if isinstance(blob, dict) else None)
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

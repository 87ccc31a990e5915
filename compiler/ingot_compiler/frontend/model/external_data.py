"""Reads the files beside a model, and nothing else: a model must not lead out of its folder.

In: the model's folder and a location from the model file. Out: a checked path, or the bytes as a
read-only mapping. Not done here: which tensors there are (``import_model``).

Refused: empty, absolute, ``..``, a drive or backslash, NUL, a symbolic link on the way, anything
but a regular file, a file with several names (hard links; ``onnx`` refuses them too): like a
symbolic link, one brings a file from elsewhere into the folder, and who made the link need not be
able to read what the build then copies into a bundle.

A file that is a relative link to one in the same folder is that one. So is, in Hugging Face's cache
(``NAME/snapshots/REVISION/..``), a link to one of ``NAME/blobs``, which is called by its digest: it
belongs to the same download. No part of where a link leads may be a link again.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from pathlib import Path

from ingot_compiler.ir.errors import ModelError
from ingot_runtime.format.file import open_without_waiting

_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # sha1 or sha256


def safe_external_path(folder: Path, location: str) -> Path:
    """The path of ``location`` below ``folder``; ModelError when it leaves the folder or is no
    regular file."""
    if not _is_relative(location):
        raise _outside(location, "expected a relative path below the model's folder")
    path = folder
    parts = [part for part in location.split("/") if part not in ("", ".")]
    for count, part in enumerate(parts, 1):
        path = path / part
        if _is_link(path, location):
            path = _target(folder, path, location, is_file=count == len(parts))
    found = os.lstat(path)
    if path == folder or not stat.S_ISREG(found.st_mode):
        what, where = "external data is not a file", f"location {location!r}"
        raise ModelError(what, where, "expected a regular file", _DO)
    _check_names(found, location)
    return path


def _is_relative(location: str) -> bool:
    """Whether it may lead to a place below a folder, on any system."""
    parts = location.split("/")
    return (
        bool(location)
        and not location.startswith("/")
        and ".." not in parts
        and "\\" not in location
        and "\0" not in location
        and ":" not in parts[0]
    )


def _check_names(status: os.stat_result, location: str) -> None:
    if status.st_nlink > 1:
        name = location.rpartition("/")[2]
        raise _outside(
            location,
            f"{name!r} has {status.st_nlink} names (hard links), so it is a file from elsewhere too",
            "replace it by a copy of itself: copy it to another name, and rename the copy over it",
        )


def _is_link(path: Path, location: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        why = f"{os.fspath(path)}: {error.strerror or error}"
        raise ModelError("external data is missing", f"location {location!r}", why, _DO) from None
    return stat.S_ISLNK(mode)


def _target(folder: Path, link: Path, location: str, *, is_file: bool) -> Path:
    """Where a link leads, below the folder or to a blob of the same download."""
    real = Path(os.path.realpath(folder))
    text = os.readlink(link)
    place = Path(os.path.normpath(real / link.parent.relative_to(folder) / text))
    root = real if place.is_relative_to(real) else _blobs(real)
    is_blob = root is not None and place.parent == root and _BLOB.fullmatch(place.name)
    if root is None or not is_file or os.path.isabs(text) or not (root == real or is_blob):
        raise _outside(location, f"{link.name!r} is a symbolic link")
    path = root
    for part in place.relative_to(root).parts:
        path = path / part
        if _is_link(path, location):
            raise _outside(location, f"{link.name!r} is a symbolic link to another one")
    return path


def _blobs(folder: Path) -> Path | None:
    """The files of the download that a folder is a snapshot of."""
    parts = folder.parts
    if "snapshots" not in parts[:-1]:
        return None
    last = len(parts) - 1 - parts[::-1].index("snapshots")
    blobs = Path(*parts[:last], "blobs")
    return blobs if blobs.is_dir() and not blobs.is_symlink() else None


def read_external_file(
    folder: Path, location: str, offset_bytes: int, size_bytes: int | None
) -> memoryview:
    """Map ``size_bytes`` (None: to the end) at ``offset_bytes`` of a file beside the model,
    read-only; ModelError when too short."""
    path = safe_external_path(folder, location)
    # A link or a pipe put in place after the check is refused too.
    descriptor = open_without_waiting(os.fspath(path), os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        _check_names(found, location)
        end = found.st_size if size_bytes is None else offset_bytes + size_bytes
        if not 0 <= offset_bytes <= end <= found.st_size:
            size = end - offset_bytes
            range_ = f"{size} bytes at offset {offset_bytes}"
            why = f"expected {range_}, got a file of {found.st_size} bytes"
            raise ModelError("external data is too short", f"location {location!r}", why, _DO)
        if end == offset_bytes:
            return memoryview(b"")
        view = memoryview(mmap.mmap(descriptor, found.st_size, prot=mmap.PROT_READ))
        return view[offset_bytes:end]
    finally:
        os.close(descriptor)


def _outside(
    location: str, why: str, do: str = "put the file itself beside the model and export again"
) -> ModelError:
    return ModelError(
        "external data lies outside the model's folder", f"location {location!r}", why, do
    )


_DO = "copy the data file beside the model, complete"

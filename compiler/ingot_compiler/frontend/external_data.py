"""Reads the files beside a model, and nothing else: a model must not lead out of its folder.

In: the model's folder and a location from the model file. Out: a checked path, or the bytes as a
read-only mapping. Not done here: which tensors there are (``import_model``).

Refused: empty, absolute, ``..``, a drive or backslash, NUL, any symbolic link on the way, anything
but a regular file, a file with several names (hard links; ``onnx`` refuses them too): like a
symbolic link, one brings a file from elsewhere into the folder, and who made the link need not be
able to read what the build then copies into a bundle.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

from ingot_compiler.ir.errors import ModelError
from ingot_runtime.format.file import open_without_waiting


def safe_external_path(folder: Path, location: str) -> Path:
    """The path of ``location`` below ``folder``; ModelError when it leaves the folder or is no
    regular file."""
    if not _is_relative(location):
        raise _outside(location, "expected a relative path below the model's folder")
    path = folder
    for part in location.split("/"):
        if part not in ("", "."):
            path = path / part
            _check_component(path, location)
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


def _check_names(found: os.stat_result, location: str) -> None:
    if found.st_nlink > 1:
        name = location.rpartition("/")[2]
        raise _outside(
            location,
            f"{name!r} has {found.st_nlink} names (hard links), so it is a file from elsewhere too",
            "replace it by a copy of itself: copy it to another name, and rename the copy over it",
        )


def _check_component(path: Path, location: str) -> None:
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        why = f"{os.fspath(path)}: {error.strerror or error}"
        raise ModelError("external data is missing", f"location {location!r}", why, _DO) from None
    if stat.S_ISLNK(mode):
        raise _outside(location, f"{path.name!r} is a symbolic link")


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

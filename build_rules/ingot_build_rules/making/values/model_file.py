"""The file that a model is in: what it looked like when its digest was taken, and its bytes.

In: a path. Out: ``FileState``, bytes. Not done here: parsing, models that are no file
(``stages.model_source``).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import BinaryIO

from ingot_compiler.ir.errors import BuildError, UserError
from ingot_runtime.format.file import open_without_waiting
from ingot_runtime.lazy_dataclass import dataclass

_NO_PERMISSION = (
    "the model file is not readable",
    "permission denied",
    "give yourself read permission",
)
_REFUSALS = {
    errno.ENOENT: (
        "no such model file",
        "expected an .onnx file, got nothing there",
        "check the path",
    ),
    errno.EISDIR: ("the model is a folder", "expected an .onnx file", "name the .onnx file in it"),
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.EINVAL: (
        "the model is not a file",
        "expected an .onnx file that can be read twice, got a pipe or a device",
        "write it to a file, or pass its bytes to ingot.compile",
    ),
}
"""errno of ``open_without_waiting`` -> what is wrong, why, and what to do."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file looked like when its digest was taken: whoever reads it later sees whether it is
    still that file."""

    mtime_ns: int
    size_bytes: int
    inode: int
    ctime_ns: int


def read_model(path: str, state: FileState | None) -> bytes:
    """Read a model whole (the file may change afterwards without harm).

    Raises:
        UserError: it is not what it was when its digest was taken, or not there. BuildError: the
            disk failed.
    """
    with opened_model(path) as file:
        content = file.read()
        if state not in (None, state_of(file)):
            why = "its size or its times are not those that it had when the build began"
            raise UserError(
                "the model file changed while it was built", where=path, why=why, do="build again"
            )
        return content


def state_of(file: BinaryIO) -> FileState:
    """Return what an open file looks like."""
    found = os.fstat(file.fileno())
    return FileState(found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


@contextmanager
def opened_model(path: str) -> Generator[BinaryIO]:
    """Open a model's file, which must be one that can be read twice, without waiting for who writes
    to a pipe.

    Raises:
        UserError: no such file, or not readable. BuildError: the disk failed.
    """
    try:
        with open(path, "rb", opener=open_without_waiting) as file:
            yield file
    except OSError as error:
        refusal = _REFUSALS.get(error.errno or 0)
        if refusal is not None:
            what, why, do = refusal
            raise UserError(what, where=path, why=why, do=do) from None
        what, why = "the model file cannot be read", error.strerror or str(error)
        raise BuildError(what, where=path, why=why, do="check the disk") from error

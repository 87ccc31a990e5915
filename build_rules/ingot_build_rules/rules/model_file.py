"""The file that a model is in: what it looked like when its digest was taken, and its bytes.

In: a path. Out: ``FileState``, bytes. Not done here: parsing, models that are no file
(``compilation.model_source``).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from ingot_compiler.ir.errors import BuildError, UserError


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


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


@contextmanager
def opened_model(path: str) -> Generator[BinaryIO]:
    """Open a model's file, which must be one that can be read twice, without waiting for who writes
    to a pipe.

    Raises:
        UserError: no such file, or not readable. BuildError: the disk failed.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError(
                    "the model is not a file",
                    where=path,
                    why="expected an .onnx file that can be read twice, got a pipe or a device",
                    do="write it to a file, or pass its bytes to ingot.compile",
                )
            yield file
    except FileNotFoundError:
        raise UserError(
            "no such model file",
            where=path,
            why="expected an .onnx file, got nothing there",
            do="check the path",
        ) from None
    except IsADirectoryError:
        raise UserError(
            "the model is a folder",
            where=path,
            why="expected an .onnx file",
            do="name the .onnx file in it",
        ) from None
    except PermissionError:
        raise UserError(
            "the model file is not readable",
            where=path,
            why="permission denied",
            do="give yourself read permission",
        ) from None
    except OSError as error:
        raise BuildError(
            "the model file cannot be read",
            where=path,
            why=error.strerror or str(error),
            do="check the disk",
        ) from error

"""Stage 1: where the model comes from, by digest, before anything is parsed.

In: a path, bytes or a protobuf message. Out: ``ModelSource``, and the bytes behind it. Not done here: parsing.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Protocol, runtime_checkable

from ingot_compiler.ir.errors import BuildError, UserError


@runtime_checkable
class Serializable(Protocol):
    """A protobuf message, such as ``onnx.ModelProto``; the build side does not import ``onnx``."""

    def SerializeToString(self) -> bytes:
        """Return the message's bytes."""
        ...


Model = str | bytes | os.PathLike[str] | Serializable


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file looked like when its digest was taken: whoever reads it later sees whether it is still that file."""

    mtime_ns: int
    size_bytes: int
    inode: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model that nobody has parsed yet: the digest of its bytes, its name in errors, and the file or the bytes."""

    digest: str
    name: str
    path: str = ""
    state: FileState | None = None
    content: bytes = b""


def open_model(model: Model, digest_of: Callable[[str], str]) -> ModelSource:
    """Say which bytes a model is; ``digest_of`` gives the sha256 of a file.

    Raises:
        UserError: no such file, or not readable. BuildError: the disk failed.
    """
    if isinstance(model, bytes):
        return ModelSource(hashlib.sha256(model).hexdigest(), "model", content=model)
    if isinstance(model, str | os.PathLike):
        given: str = os.fspath(model)
        path = os.path.abspath(given)
        with _readable(given) as file:
            state = _state(file)
        return ModelSource(digest_of(path), os.path.basename(path), path, state)
    content = _message_bytes(model)
    return ModelSource(hashlib.sha256(content).hexdigest(), "model", content=content)


def read_model(path: str, state: FileState | None) -> bytes:
    """Read a model whole (the file may change afterwards without harm).

    Raises:
        UserError: it is not what it was when its digest was taken, or not there. BuildError: the disk failed.
    """
    with _readable(path) as file:
        content = file.read()
        if state not in (None, _state(file)):
            why = "its size or its times are not those that it had when the build began"
            raise UserError("the model file changed while it was built", where=path, why=why, do="build again")
        return content


def _state(file: BinaryIO) -> FileState:
    found = os.fstat(file.fileno())
    return FileState(found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


def _message_bytes(model: object) -> bytes:
    if not isinstance(model, Serializable):
        raise UserError(
            "not a model",
            where="argument model",
            why=f"expected a path, bytes or an onnx.ModelProto, got {type(model).__name__}",
            do="pass the path of an .onnx file",
        )
    return model.SerializeToString()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


@contextmanager
def _readable(path: str) -> Generator[BinaryIO]:
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
            "no such model file", where=path, why="expected an .onnx file, got nothing there", do="check the path"
        ) from None
    except IsADirectoryError:
        raise UserError(
            "the model is a folder", where=path, why="expected an .onnx file", do="name the .onnx file in it"
        ) from None
    except PermissionError:
        raise UserError(
            "the model file is not readable", where=path, why="permission denied", do="give yourself read permission"
        ) from None
    except OSError as error:
        raise BuildError(
            "the model file cannot be read", where=path, why=error.strerror or str(error), do="check the disk"
        ) from error

"""Stage 1: where the model comes from, by digest, before anything is parsed.

In: a path, bytes or a protobuf message. Out: ``ModelSource`` and the opened files behind it. Not done here: parsing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ingot_compiler.ir.errors import BuildError, UserError

ReadExternal = Callable[[str, int, int | None], memoryview]
"""(location, offset in bytes, length in bytes or None for the rest) -> those bytes of an external-data file."""


@runtime_checkable
class Serializable(Protocol):
    """A protobuf message, such as ``onnx.ModelProto``; the build side does not import ``onnx``."""

    def SerializeToString(self) -> bytes:
        """Return the message's bytes."""
        ...


Model = str | bytes | os.PathLike[str] | Serializable


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Digest of the model file, and of each part of external-data files that import has read so far."""

    model: str


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model's bytes, and the folder that its external data is relative to (None: it came as bytes)."""

    source: ModelSource
    content: bytes
    folder: str | None
    name: str


def open_model(model: Model) -> OpenedModel:
    """Read a model whole (the file may change afterwards without harm).

    Raises:
        UserError: no such file, or not readable.
        BuildError: the disk failed.
    """
    folder: str | None = None
    name = "model"
    if isinstance(model, bytes):
        content = model
    elif isinstance(model, str | os.PathLike):
        path = os.fspath(model)
        content = _read_file(path)
        folder, name = os.path.dirname(os.path.abspath(path)), os.path.basename(path)
    else:
        content = _message_bytes(model)
    return OpenedModel(ModelSource(hashlib.sha256(content).hexdigest()), content, folder, name)


def _message_bytes(model: object) -> bytes:
    if not isinstance(model, Serializable):
        raise UserError(
            "not a model",
            where="argument model",
            why=f"expected a path, bytes or an onnx.ModelProto, got {type(model).__name__}",
            do="pass the path of an .onnx file",
        )
    return model.SerializeToString()


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
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

"""Stage 1: where the model comes from, by digest, before anything is parsed.

In: a path, bytes or a protobuf message. Out: ``ModelSource``. Not done here: parsing, reading the
file (``values.model_file``).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ingot_build_rules.making.values.model_file import FileState, opened_model, state_of
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass


@runtime_checkable
class Serializable(Protocol):
    """A protobuf message, such as ``onnx.ModelProto``; the build side does not import ``onnx``."""

    def SerializeToString(self) -> bytes:
        """Return the message's bytes."""
        ...


Model = str | bytes | os.PathLike[str] | Serializable


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model that nobody has parsed yet: the digest of its bytes, its name in errors, and the file
    or the bytes."""

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
        with opened_model(given) as file:
            state = state_of(file)
        return ModelSource(digest_of(path), os.path.basename(path), path, state)
    content = _message_bytes(model)
    return ModelSource(hashlib.sha256(content).hexdigest(), "model", content=content)


def _message_bytes(model: object) -> bytes:
    if not isinstance(model, Serializable):
        raise UserError(
            "not a model",
            where="argument model",
            why=f"expected a path, bytes or an onnx.ModelProto, got {type(model).__name__}",
            do="pass the path of an .onnx file",
        )
    return model.SerializeToString()

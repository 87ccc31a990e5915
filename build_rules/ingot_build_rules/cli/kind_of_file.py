"""What a file is that a verb cannot take: a bundle in the place of a model, a model in the place of
a bundle, a model of another tool.

In: the path that the user gave. Out: an error that says what it is and what to do, if it is one of
these. Not done here: reading models and bundles, whose own errors tell of every other file.
"""

from __future__ import annotations

import os

from ingot_compiler.ir.errors import ModelError, UserError
from ingot_runtime.errors import NotABundleError
from ingot_runtime.format.header import MAGIC

_EXPORT = "export it to ONNX first"
OTHER_KINDS = {
    ".ckpt": f"a checkpoint: {_EXPORT}",
    ".engine": f"an engine of TensorRT: {_EXPORT}",
    ".gguf": f"weights of llama.cpp: {_EXPORT}",
    ".h5": f"a model of Keras: {_EXPORT}, with tf2onnx",
    ".keras": f"a model of Keras: {_EXPORT}, with tf2onnx",
    ".mlmodel": f"a model of Core ML: {_EXPORT}",
    ".pb": f"a graph of TensorFlow: {_EXPORT}, with tf2onnx",
    ".pt": f"a file of PyTorch: {_EXPORT}, with torch.onnx.export",
    ".pth": f"a file of PyTorch: {_EXPORT}, with torch.onnx.export",
    ".pt2": f"a program of torch.export: {_EXPORT}, with torch.onnx.export",
    ".safetensors": f"weights without a graph: {_EXPORT}, with optimum or torch.onnx.export",
    ".tflite": f"a model of TensorFlow Lite: {_EXPORT}, with tf2onnx",
}
"""Ending of a file -> why it is no source of a bundle."""
_ONNX_START = b"\x08"
"""The tag of ``ir_version``, which every exporter writes first."""
_CONTENTS = {
    b"PK\x03\x04": f"a zip file, as PyTorch writes: {_EXPORT}, with torch.onnx.export",
    b"\x80\x02": f"a pickle, as PyTorch writes: {_EXPORT}, with torch.onnx.export",
}
"""First bytes -> what they say, where the ending says nothing."""


def check_model_kind(path: str) -> None:
    """Refuse what is known to be no model, before it is read as one.

    Raises:
        UserError: it is a bundle. ModelError: it is a file of another tool.
    """
    start = _start(path)
    if start == MAGIC:
        why = "it is a bundle, which is compiled already"
        do = f"run it (`ingot run {path}`), or see what is in it (`ingot inspect {path}`)"
        raise UserError("the file is not an ONNX model", path, why, do)
    if kind := _other_kind(path, start):
        why, _, do = kind.partition(": ")
        raise ModelError("the file is not an ONNX model", path, f"it is {why}", do)


def check_bundle_kind(path: str) -> None:
    """Refuse what is known to be no bundle, before it is read as one.

    Raises:
        NotABundleError: it is a model.
    """
    start = _start(path)
    if not start or start == MAGIC:
        return
    if kind := _other_kind(path, start):
        why, _, do = kind.partition(": ")
        raise NotABundleError("not a bundle", path, f"it is {why}", f"{do}, and compile that")
    if start.startswith(_ONNX_START) and path.endswith(".onnx"):
        do = f"compile it first: `ingot compile {path}`"
        raise NotABundleError("not a bundle", path, "it is an ONNX model", do)


def _other_kind(path: str, start: bytes) -> str:
    """What a file of another tool is, and what to do; "" for a file that may be a model."""
    if not start or start.startswith(_ONNX_START):
        return ""
    by_content = (kind for first, kind in _CONTENTS.items() if start.startswith(first))
    ending = os.path.splitext(path)[1].lower()
    return OTHER_KINDS.get(ending) or next(by_content, "")


def _start(path: str) -> bytes:
    """The first bytes of a file; none of what cannot be read twice, or not at all."""
    if not os.path.isfile(path):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC))
    except OSError:
        return b""

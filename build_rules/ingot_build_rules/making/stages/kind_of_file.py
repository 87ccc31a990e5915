"""Finds out what kind of file the user gives: a program, by its suffix; or something unexpected,
such as a bundle in the place of a model, a model in the place of a bundle, a file of another tool,
text, or nothing.

In: the path. Out: whether it is a program, and where its weights are; an error that says what it is
and what to do, if it is one of the others. Not done here: reading models, programs and bundles,
whose own errors tell of every other file.
"""

from __future__ import annotations

import os
from typing import cast

from ingot_build_rules.making.options.option_rows import PROGRAM
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_runtime.errors import NotABundleError
from ingot_runtime.format.file import PROGRAM_MAGIC, TRAILER, TRAILER_MAGIC
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
_ARRAYS = "arrays of numpy: give them to a bundle that runs, as its inputs"
_CONTENTS = {
    b"\x80\x02": f"a pickle, as PyTorch writes: {_EXPORT}, with torch.onnx.export",
    b"\x93NUMPY": _ARRAYS,
    b"\x7fELF": "a program or library of Linux",
    b"\x1f\x8b": "compressed with gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first",
    b"PK\x03\x04": "a zip file: unpack it first, if what you need is in it",
    b"version https://git-lfs": "a pointer of git-lfs to a file that is not downloaded: git lfs pull",
}
"""First bytes -> what they say, where the ending says nothing."""
_ZIP_MEMBERS = {
    ".npy": _ARRAYS,
    "data.pkl": f"a file of PyTorch: {_EXPORT}, with torch.onnx.export",
}
"""Ending of a name in a zip file -> what the file is."""
_ONNX_START = b"\x08"
"""The tag of ``ir_version``, which every exporter writes first."""
_LOOKED_AT_BYTES = 64
_TEXT = b"\t\n\r" + bytes(range(0x20, 0x7F))


def check_model_kind(path: str) -> None:
    """Refuse what is known to be no model, before it is read as one.

    Raises:
        UserError: it is a bundle. ModelError: it is a file of another tool.
    """
    start = _start(path)
    if start is None or start.startswith(_ONNX_START):
        return
    if start.startswith(MAGIC):
        why = "it is a bundle, which is compiled already"
        do = f"run it (`ingot run {path}`), or see what is in it (`ingot inspect {path}`)"
        raise UserError("the file is not an ONNX model", path, why, do)
    if kind := _other_kind(path, start):
        why, _, do = kind.partition(": ")
        do = do or "give the path of an .onnx file"
        raise ModelError("the file is not an ONNX model", path, f"it is {why}", do)


def check_bundle_kind(path: str) -> None:
    """Refuse what is known to be no bundle, before it is read as one.

    Raises:
        NotABundleError: it is something else.
    """
    start = _start(path)
    if start is None or start.startswith(MAGIC) or _is_program_with_bundle(path, start):
        return
    if start.startswith(_ONNX_START) and path.endswith(".onnx"):
        do = f"compile it first: `ingot compile {path}`"
        raise NotABundleError("not a bundle", path, "it is an ONNX model", do)
    if kind := _other_kind(path, start):
        why, _, do = kind.partition(": ")
        do = (
            f"{do}, and compile that"
            if _EXPORT in do
            else do or "give a file made by `ingot compile`"
        )
        raise NotABundleError("not a bundle", path, f"it is {why}", do)


def _is_program_with_bundle(path: str, start: bytes) -> bool:
    if not start.startswith(PROGRAM_MAGIC):
        return False
    with open(path, "rb") as file:
        file.seek(-min(TRAILER.size, len(start)), os.SEEK_END)
        return file.read().endswith(TRAILER_MAGIC)


def _other_kind(path: str, start: bytes) -> str:
    """What a file of another tool is, and what to do if there is something special; "" for a file
    that nothing is known of."""
    if not start:
        return "empty"
    ending = os.path.splitext(path)[1].lower()
    if ending in OTHER_KINDS:
        return OTHER_KINDS[ending]
    by_content = (kind for first, kind in _CONTENTS.items() if start.startswith(first))
    kind = _kind_of_archive(path, start) or next(by_content, "")
    return kind or ("" if start.translate(None, _TEXT) else "text")


def _kind_of_archive(path: str, start: bytes) -> str:
    """What the names in a zip file say; "" for other files."""
    if not start.startswith(b"PK"):
        return ""
    import zipfile  # takes milliseconds

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return ""
    kinds = (_ZIP_MEMBERS[end] for end in _ZIP_MEMBERS for name in names if name.endswith(end))
    return next(kinds, "")


def _start(path: str) -> bytes | None:
    """The first bytes of a file; None of what cannot be read twice, or not at all."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read(_LOOKED_AT_BYTES)
    except OSError:
        return None


def is_program(model: object) -> bool:
    """Whether what the user gives as a model is the path of a program."""
    if not isinstance(model, str | os.PathLike):
        return False
    return os.fspath(cast("str", model)).endswith(f".{PROGRAM}")


def weights_beside(path: str) -> str | None:
    """The file with the constants of a program, where it is there: ``NAME.npz`` beside
    ``NAME.ingot-text``."""
    beside = f"{path.removesuffix(f'.{PROGRAM}')}.npz"
    return beside if os.path.isfile(beside) else None

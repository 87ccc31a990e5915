"""The bundle as a file: a skeleton, and the packed weights where it says.

In: a compilation, a path. Out: the file, whole or not at all, left alone where it is the same
already. Not done here: the skeleton (``bundle``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from ingot_artifacts.bundle.write import BundleSkeleton, write_with_weights
from ingot_build_rules.compilation.compilation import Compilation
from ingot_runtime.format.file import open_without_waiting
from ingot_runtime.format.header import MAGIC

_STEP_BYTES = 1 << 20


async def write_bundle_file(compilation: Compilation, path: str) -> bool:
    """Make ``path`` the bundle; return False of a file that had its bytes, which keeps its times.

    Raises:
        OutputError: no folder, no permission, no space.
    """
    parts = await compilation.bundle_parts()
    build = compilation.build
    prefix = await build.value(parts.prefix)
    chunks = [(packed.offset_bytes, await build.value(packed.content)) for packed in parts.packed]
    if _is_there(path, parts.size_bytes, _spans(prefix, chunks)):
        return False
    write_with_weights(BundleSkeleton(parts.root, bytes(prefix), parts.size_bytes), chunks, path)
    return True


def is_other_file(path: str) -> bool:
    """Whether a file is there that is no bundle."""
    try:
        with open(path, "rb", opener=open_without_waiting) as file:
            head = file.read(len(MAGIC))
    except OSError:
        return False
    return bool(head) and head != MAGIC


def _spans(
    prefix: memoryview, chunks: list[tuple[int, memoryview]]
) -> Iterator[tuple[int, memoryview]]:
    yield 0, prefix
    for offset_bytes, content in chunks:
        yield len(prefix) + offset_bytes, content


def _is_there(path: str, size_bytes: int, spans: Iterator[tuple[int, memoryview]]) -> bool:
    """Whether the file has these bytes; what lies between them in a bundle is zero by its digest,
    and looked at here too."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size != size_bytes:
                return False
            at = 0
            for offset, content in spans:
                if not (_are_zero(file, offset - at) and _are_next(file, content)):
                    return False
                at = offset + len(content)
            return _are_zero(file, size_bytes - at)
    except OSError:
        return False


def _are_next(file: BinaryIO, content: memoryview) -> bool:
    """Whether the next bytes of a file are these."""
    parts = (content[at : at + _STEP_BYTES] for at in range(0, len(content), _STEP_BYTES))
    return all(memoryview(file.read(len(part))) == part for part in parts)


def _are_zero(file: BinaryIO, size_bytes: int) -> bool:
    """Whether the next bytes of a file are there, and zero."""
    zeros = memoryview(bytes(min(size_bytes, _STEP_BYTES)))
    return all(
        memoryview(file.read(len(part))) == part
        for part in (zeros[: size_bytes - start] for start in range(0, size_bytes, _STEP_BYTES))
    )

"""Writes the bundle file: a skeleton, and the packed weights at the offsets that it states.

In: a compilation, a path. Out: the file, whole or not at all, left alone where it is the same
already. Not done here: the skeleton (``bundle``).
"""

from __future__ import annotations

import os
from typing import BinaryIO

from ingot_artifacts.bundle.write import BundleSkeleton, bundle_writer
from ingot_build_rules.making.rules.bundle import BundleParts
from ingot_build_rules.making.stages.compilation import Compilation
from ingot_runtime.format.file import open_without_waiting
from ingot_runtime.format.header import MAGIC

_STEP_BYTES = 1 << 20


async def write_bundle_file(compilation: Compilation, path: str) -> bool:
    """Make ``path`` the bundle; return False of a file that had its bytes, which keeps its times.

    Weights are loaded one by one, and dropped when they are written: together they may be larger
    than the memory of the machine.

    Raises:
        OutputError: no folder, no permission, no space.
    """
    parts = await compilation.bundle_parts()
    if await _is_there(path, parts, compilation):
        return False
    prefix = await compilation.build.value(parts.prefix)
    skeleton = BundleSkeleton(parts.root, bytes(prefix), parts.size_bytes)
    with bundle_writer(skeleton, path) as write:
        for packed in parts.packed:
            content = await compilation.build.value(packed.content)
            write(packed.offset_bytes, packed.part_of(content))
    return True


def is_other_file(path: str) -> bool:
    """Whether a file is there that is no bundle."""
    try:
        with open(path, "rb", opener=open_without_waiting) as file:
            head = file.read(len(MAGIC))
    except OSError:
        return False
    return bool(head) and head != MAGIC


async def _is_there(path: str, parts: BundleParts, compilation: Compilation) -> bool:
    """Whether the file has these bytes; what lies between them in a bundle is zero by its digest,
    and looked at here too."""
    prefix = await compilation.build.value(parts.prefix)
    try:
        with open(path, "rb") as file:  # noqa: ASYNC230 - a local file, nothing else waits
            if os.fstat(file.fileno()).st_size != parts.size_bytes or not _are_next(file, prefix):
                return False
            for packed in parts.packed:
                gap = len(prefix) + packed.offset_bytes - file.tell()
                content = await compilation.build.value(packed.content)
                if not (_are_zero(file, gap) and _are_next(file, packed.part_of(content))):
                    return False
            return _are_zero(file, parts.size_bytes - file.tell())
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

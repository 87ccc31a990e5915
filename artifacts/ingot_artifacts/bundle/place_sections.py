"""Where the sections of a bundle lie in its file.

In: how large each is. Out: rows of the table without digests; room on the disk. Not done here: what
is in them (``write``, ``rewrite``).
"""

import errno
import os
from collections.abc import Mapping

from ingot_runtime.format import header as head

_ORDER = (
    head.MANIFEST,
    head.PLAN,
    head.TREE,
    head.SHARED,
    head.LOCK,
    head.DEFAULT,
    head.STATE,
    head.VALUES,
    head.PROGRAM,
    head.DEBUG,
    head.SELFTEST,
    head.SIGNATURE,
    head.CODE,
    head.LIBRARY,
    head.ALTERNATIVE,
    head.WEIGHTS,
)
"""Kinds of sections: what is read first and always comes first, the weights last, code before
them."""
Key = tuple[int, int]
"""Kind and number of a section."""


def place_sections(sizes_bytes: Mapping[Key, int]) -> list[head.Section]:
    """Place the sections one behind the other, in their order."""
    end = head.HEADER_SIZE_BYTES + len(sizes_bytes) * head.ROW_SIZE_BYTES
    sections: list[head.Section] = []
    for kind, id_ in sorted(sizes_bytes, key=lambda key: (_ORDER.index(key[0]), key[1])):
        alignment = head.section_kind(kind).alignment
        offset, size_bytes = end + -end % alignment, sizes_bytes[kind, id_]
        end = offset + size_bytes
        flags = head.OPTIONAL if kind in head.OPTIONAL_KINDS else 0
        row = head.Section(kind, id_, offset, size_bytes, alignment, flags, head.NO_DIGEST)
        sections.append(row)
    return sections


def reserve(descriptor: int, size_bytes: int) -> None:
    """Take the whole file's place on the disk, where that can be: a hole that a full disk cannot
    fill would end who maps the file."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise

"""A bundle whose weights lie in another one as far as they are the same.

In: two open bundles, the name under which the other will lie beside it. Out: the sections that change
or go. Not done here: writing the file (``ingot_artifacts.bundle.rewrite``), reading what is shared
(``ingot_runtime.format.base``).

Weights are mapped, so what is shared are whole pages of 64 KiB. Those of a fine-tune lie where those
of its origin do: a page is looked for at its own place first, then wherever the other bundle has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from ingot_artifacts.bundle.encode_plan import PlanWriter
from ingot_artifacts.bundle.rewrite import Changes, Placed, Ranges
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format import header as head
from ingot_runtime.format.limits import ALIGNMENT_MAPPED_BYTES, SHARED_COUNT_MAX
from ingot_runtime.format.source import Source
from ingot_runtime.lazy_dataclass import dataclass

_PAGE_BYTES = ALIGNMENT_MAPPED_BYTES
_HOST_WEIGHTS = head.WEIGHTS, 0
_BLOCK_SIZE_BYTES = 1 << 24

Row = tuple[int, int, int]
"""Offset in the weights, offset in those of the other bundle, bytes."""


@dataclass(frozen=True, slots=True)
class SharedParts:
    """``changes``: of the bundle; ``shared_bytes`` of its weights lie in the other one."""

    changes: Changes
    shared_bytes: int


def share_changes(base: Source, source: Source, name: str) -> SharedParts:
    """Return what changes where ``source`` has its weights from ``base``, a file called ``name``.
    Signatures go: they are of other sections.

    Raises:
        UserError: one of them shares weights already, or they have none in common.
    """
    for each in (base, source):
        require_own_weights(each, "a bundle with weights of its own is needed")
        if _HOST_WEIGHTS not in each.by_key:
            raise UserError(
                "no weights to share", each.name, "the bundle has none", "ship it whole"
            )
    size = source.by_key[_HOST_WEIGHTS].size_bytes
    rows = _rows(list(_pages(base)), list(_pages(source)))
    if not rows:
        do = "share bundles of one model that was trained further, compiled with the same options"
        why = f"no page of {_PAGE_BYTES} bytes is in {base.name}, too"
        raise UserError("no weights in common", source.name, why, do)
    payload = encode_shared(base.root_digest.hex(), name, size, rows)
    dropped = frozenset(key for key in source.by_key if key[0] == head.SIGNATURE)
    changes = Changes(
        {(head.SHARED, 0): payload}, dropped, placed={_HOST_WEIGHTS: _own(rows, size)}
    )
    return SharedParts(changes, sum(row[2] for row in rows))


def require_own_weights(source: Source, why: str) -> None:
    """Raise ``UserError`` for a bundle some of whose weights lie in another one."""
    if (head.SHARED, 0) in source.by_key:
        do = "take the bundle that `ingot share` was given, which has all of its weights"
        raise UserError("weights are shared with another bundle", source.name, why, do)


def _pages(source: Source) -> Iterator[bytes]:
    """Yield the digest of each page of the host's weights."""
    row = source.by_key[_HOST_WEIGHTS]
    for start in range(0, row.size_bytes, _BLOCK_SIZE_BYTES):
        block = source.read(row.offset + start, min(_BLOCK_SIZE_BYTES, row.size_bytes - start))
        for at in range(0, len(block), _PAGE_BYTES):
            yield hashlib.sha256(block[at : at + _PAGE_BYTES]).digest()


def _rows(known: list[bytes], wanted: list[bytes]) -> list[Row]:
    """Where each page of ``wanted`` lies among ``known``, neighbours together. At least one page
    stays out, and of many rows the smallest do."""
    places = {digest: at for at, digest in reversed(list(enumerate(known)))}
    rows: list[Row] = []
    for at, digest in enumerate(wanted):
        there = at if at < len(known) and known[at] == digest else places.get(digest, -1)
        if there < 0 or at == len(wanted) - 1 == sum(row[2] for row in rows):
            continue
        if rows and (rows[-1][0] + rows[-1][2], rows[-1][1] + rows[-1][2]) == (at, there):
            rows[-1] = *rows[-1][:2], rows[-1][2] + 1
        else:
            rows.append((at, there, 1))
    largest = sorted(rows, key=lambda row: (-row[2], row[0]))[:SHARED_COUNT_MAX]
    return [
        (at * _PAGE_BYTES, there * _PAGE_BYTES, size * _PAGE_BYTES)
        for at, there, size in sorted(largest)
    ]


def _own(rows: list[Row], size_bytes: int) -> Placed:
    """What lies in no row, one part behind the other."""
    pieces: list[tuple[int, int, int]] = []
    end = 0
    for start, stop in gaps(rows, size_bytes):
        pieces.append((end, start, stop - start))
        end += stop - start
    return Placed(end, tuple(pieces))


def gaps(rows: list[Row], size_bytes: int) -> Ranges:
    """Where weights of this size lie in no row."""
    starts = [0, *(at + size for at, _, size in rows)]
    ends = [*(at for at, _, _ in rows), size_bytes]
    return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start < end)


def encode_shared(digest: str, name: str, size_bytes: int, rows: list[Row]) -> bytes:
    """Return the bytes of the section."""
    out = PlanWriter()
    out.text(digest)
    out.text(name)
    out.word(size_bytes, len(rows))
    for row in rows:
        out.word(*row)
    return out.data()

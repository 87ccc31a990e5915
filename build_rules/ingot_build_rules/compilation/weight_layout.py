"""Where each packed constant lies in the weights section; variants share what is equal.

In: the constants of every variant. Out: ``WeightLayout``. Not done here: packing, writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_ALIGNMENT_BYTES = 64
_PAGE_BYTES = 4096
_PAGE_ALIGNED_BYTES_MIN = 1 << 20
_SECTION_MULTIPLE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PlacedConstant:
    """One constant in the section: ``number`` of the variant and of the constant in it that named it first, its place in bytes."""

    variant: int
    number: int
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """``offsets_bytes[v][i]``: place of constant ``i`` of variant ``v``; ``ranges[v]``: what the variant reads."""

    constants: tuple[PlacedConstant, ...]
    size_bytes: int
    offsets_bytes: tuple[tuple[int, ...], ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]


def lay_out(variants: Sequence[Sequence[tuple[str, int]]]) -> WeightLayout:
    """Place the constants in the order in which the variants name them, each distinct one once.

    ``variants[v][i]``: (digest of the expression, packed bytes). Alignment is a cache line, and a page for those above 1 MiB;
    the section is a whole number of MiB, as the tree of digests wants it.
    """
    placed: dict[str, PlacedConstant] = {}
    end_bytes = 0
    offsets: list[tuple[int, ...]] = []
    ranges: list[tuple[tuple[int, int], ...]] = []
    for variant, constants in enumerate(variants):
        mine: list[PlacedConstant] = []
        for number, (name, size_bytes) in enumerate(constants):
            if name not in placed:
                alignment = _PAGE_BYTES if size_bytes > _PAGE_ALIGNED_BYTES_MIN else _ALIGNMENT_BYTES
                start = _round_up(end_bytes, alignment)
                placed[name] = PlacedConstant(variant, number, start, size_bytes)
                end_bytes = start + size_bytes
            mine.append(placed[name])
        offsets.append(tuple(constant.offset_bytes for constant in mine))
        ranges.append(_merge([(constant.offset_bytes, constant.size_bytes) for constant in mine]))
    section_bytes = _round_up(end_bytes, _SECTION_MULTIPLE_BYTES)
    return WeightLayout(tuple(placed.values()), section_bytes, tuple(offsets), tuple(ranges))


def _merge(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join (offset, size) spans whose gap is alignment padding only; empty ones vanish."""
    merged: list[tuple[int, int]] = []
    for start, size in sorted({span for span in spans if span[1]}):
        if merged and start - sum(merged[-1]) < _PAGE_BYTES:
            merged[-1] = (merged[-1][0], max(start + size - merged[-1][0], merged[-1][1]))
        else:
            merged.append((start, size))
    return tuple(merged)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple

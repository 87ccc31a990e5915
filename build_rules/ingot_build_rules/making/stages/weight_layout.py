"""Where each packed constant lies in the weights sections, one per device; variants share what is
equal.

In: the constants of every variant. Out: ``WeightLayout``. Not done here: packing, writing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_runtime.lazy_dataclass import dataclass

_ALIGNMENT_BYTES = 64
_PAGE_BYTES = 4096
_PAGE_ALIGNED_BYTES_MIN = 1 << 20
_SECTION_MULTIPLE_BYTES = 1 << 16
Constant = tuple[str, int, int]
"""(digest of the expression, packed bytes, device)."""


@dataclass(frozen=True, slots=True)
class PlacedConstant:
    """One constant: ``number`` of the variant and of the constant in it that named it first, its
    place in the sections one behind the other."""

    variant: int
    number: int
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """``section_bytes[d]``: size of the section of device ``d``; they follow each other.
    ``offsets_bytes[v][i]``: place of constant ``i`` of variant ``v`` in the section of its device;
    ``ranges[v]``: what the variant reads of the host's."""

    constants: tuple[PlacedConstant, ...]
    section_bytes: tuple[int, ...]
    offsets_bytes: tuple[tuple[int, ...], ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def size_bytes(self) -> int:
        """All sections."""
        return sum(self.section_bytes)


def lay_out(variants: Sequence[Sequence[Constant]], device_count: int) -> WeightLayout:
    """Place the constants, device by device, in the order in which the variants name them, each
    distinct one once per device.

    Alignment is a cache line, and a page for those above 1 MiB; a section is a whole number of the
    largest pages that a processor of ours has, as the format wants it.
    """
    placed: dict[tuple[str, int], PlacedConstant] = {}
    section_bytes: list[int] = []
    for device in range(device_count):
        start = sum(section_bytes)
        end = _place_section(placed, variants, device, start)
        section_bytes.append(_round_up(end - start, _SECTION_MULTIPLE_BYTES))
    starts = [sum(section_bytes[:device]) for device in range(device_count)]
    offsets = tuple(
        tuple(placed[name, device].offset_bytes - starts[device] for name, _, device in constants)
        for constants in variants
    )
    ranges = tuple(_host_ranges(placed, constants) for constants in variants)
    return WeightLayout(tuple(placed.values()), tuple(section_bytes), offsets, ranges)


def _place_section(
    placed: dict[tuple[str, int], PlacedConstant],
    variants: Sequence[Sequence[Constant]],
    device: int,
    start_bytes: int,
) -> int:
    """Add the constants of one device to ``placed``, by (digest, device); return where they end."""
    end = start_bytes
    for variant, constants in enumerate(variants):
        for number, (name, size_bytes, where) in enumerate(constants):
            if where == device and (name, device) not in placed:
                is_large = size_bytes > _PAGE_ALIGNED_BYTES_MIN
                at = _round_up(end, _PAGE_BYTES if is_large else _ALIGNMENT_BYTES)
                placed[name, device] = PlacedConstant(variant, number, at, size_bytes)
                end = at + size_bytes
    return end


def _host_ranges(
    placed: dict[tuple[str, int], PlacedConstant], constants: Sequence[Constant]
) -> tuple[tuple[int, int], ...]:
    """What a variant with these constants reads of the host's section."""
    places = [placed[name, 0] for name, _, device in constants if device == 0]
    return _merge([(place.offset_bytes, place.size_bytes) for place in places])


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

"""Where delimiters and white space are in rows of bytes.

In: a context, rows of bytes. Out: bool in their shape. Not done here: the parts between them
(``ops/string_split``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    concat,
    full,
    reshape,
    size_scalar,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_loop
from ingot_compiler.frontend.families.strings.characters import OUTSIDE

_SPACES = tuple(chr(code).encode() for code in range(0x3001) if chr(code).isspace())
"""What Python's ``str.split`` takes for white space, in UTF-8."""


def begins(context: OpContext, rows: int, text: bytes) -> int:
    """Whether some bytes begin at each place."""
    found: int | None = None
    for at, byte in enumerate(text):
        own = binary_scalar(context, "equal", _ahead(context, rows, at), byte)
        found = own if found is None else context.add("logical_and", found, own)
    assert found is not None
    return found


def _ahead(context: OpContext, rows: int, places: int) -> int:
    """Rows whose byte at each place is that many places further on."""
    if not places:
        return rows
    count, width = context.shape_of(rows)
    behind = full(context, context.dtype_of(rows), OUTSIDE, (count, places))
    return slice_axis(context, concat(context, [rows, behind], 1), 1, places, width)


def separators(context: OpContext, rows: int, delimiter: bytes) -> int:
    """Where delimiters begin, from the front, none inside another."""
    found = begins(context, rows, delimiter)
    size = len(delimiter)
    if not any(delimiter[at:] == delimiter[: size - at] for at in range(1, size)):
        return found  # it cannot overlap itself
    count, width = context.shape_of(rows)

    def fill(inputs: Sequence[int]) -> Sequence[int]:
        place, going, free = inputs
        here = reshape(context, context.add("gather", found, place, axis=1), (count,))
        taken = context.add("logical_and", here, context.add("less_equal", free, place))
        behind = binary_scalar(context, "add", place, size)
        return going, context.add("select", taken, behind, free), taken

    start = full(context, "i64", 0, (count,))
    limit = size_scalar(context, width), width
    _, taken = build_loop(context, limit, (None, True), (start,), fill)
    return context.add("transpose", taken, permutation=(1, 0))


def is_space(context: OpContext, rows: int) -> int:
    """Which bytes belong to white space."""
    ahead = [_ahead(context, rows, places) for places in range(max(map(len, _SPACES)))]
    found: dict[int, int] = {}
    for first, lasts in sorted(_last_bytes().items()):
        own = _in_runs(context, ahead[len(first)], lasts)
        for at, byte in enumerate(first):
            here = binary_scalar(context, "equal", ahead[at], byte)
            own = context.add("logical_and", own, here)
        found[len(first)] = _either(context, found.get(len(first)), own)
    # A character of n bytes begins where it was found, and its last byte is n - 1 further.
    flags: int | None = None
    for size, own in sorted(found.items()):
        for at in range(size + 1):
            flags = _either(context, flags, _back(context, own, at))
    assert flags is not None
    return flags


def _last_bytes() -> dict[bytes, list[int]]:
    """The last bytes of white space, by those before them."""
    found: dict[bytes, list[int]] = {}
    for text in _SPACES:
        found.setdefault(text[:-1], []).append(text[-1])
    return found


def _in_runs(context: OpContext, rows: int, values: Sequence[int]) -> int:
    """Whether each byte is one of some values, which are compared as runs of neighbours."""
    found: int | None = None
    for first in (value for value in values if value - 1 not in values):
        last = next(value for value in range(first, 256) if value + 1 not in values)
        if last == first:
            own = binary_scalar(context, "equal", rows, first)
        else:
            low = context.add("less_equal", context.scalar("i32", first), rows)
            high = binary_scalar(context, "less_equal", rows, last)
            own = context.add("logical_and", low, high)
        found = _either(context, found, own)
    assert found is not None
    return found


def _either(context: OpContext, left: int | None, right: int) -> int:
    return right if left is None else context.add("logical_or", left, right)


def _back(context: OpContext, flags: int, places: int) -> int:
    if not places:
        return flags
    count, width = context.shape_of(flags)
    longer = concat(context, [full(context, "bool", 0, (count, places)), flags], 1)
    return slice_axis(context, longer, 1, 0, width)

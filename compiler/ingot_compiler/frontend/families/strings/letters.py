"""Strings in lower or in upper case: each character for itself, by the tables of Unicode.

In: a context, strings. Out: strings. Not done here: rules that look at the characters around (the
final sigma of Greek) or at the language.

A character is the number of its UTF-8 bytes, the first the lowest; those that change are found by a
search among such numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import accumulate

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    concat,
    full,
    reshape,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.characters import (
    lengths_of,
    longest,
    repeats,
    rows_of,
    shape_of_strings,
)
from ingot_compiler.frontend.families.strings.lookup import found_in
from ingot_compiler.frontend.families.strings.pool import written
from ingot_compiler.ir.dims import dim_product

_CASES: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper}
_LAST = 0x110000
_SURROGATES = range(0xD800, 0xE000)
_LATER = (
    (0x1C89, 0x1C8A), (0xA7CB, 0xA7CF), (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4), (0xA7DA, 0xA7DC),
    (0x10D50, 0x10D85), (0x16EA0, 0x16ED3),
)  # fmt: skip
"""Letters newer than Unicode 14, which some Pythons know: bundles are the same with all."""


@cache
def changes_of(case: str) -> tuple[tuple[int, bytes], ...]:
    """Number and new bytes of each character that changes in LOWER or UPPER case, in the order of
    numbers."""
    change = _CASES[case]
    known = map(chr, (code for code in range(_LAST) if code not in _SURROGATES))
    found = [
        (int.from_bytes(letter.encode(), "little"), change(letter).encode())
        for letter in known
        if change(letter) != letter and not any(map(_is_later, letter + change(letter)))
    ]
    return tuple(sorted(found))


def _is_later(letter: str) -> bool:
    return any(first <= ord(letter) <= last for first, last in _LATER)


def changed_text(case: str, text: str) -> str:
    """A text that is known, changed as strings are."""
    change = _CASES.get(case, str)
    return "".join(map(change, text))


def in_case(context: OpContext, strings: Strings, case: str) -> Strings:
    """Strings in LOWER or UPPER case."""
    shape = shape_of_strings(context, strings)
    lengths = lengths_of(context, strings)
    width = longest(context, lengths)
    rows = rows_of(context, strings, width)
    count = context.shape_of(rows)[0]
    number, own_size = _characters(context, rows)
    table = changes_of(case)
    found = found_in(context, number, [code for code, _ in table])
    sizes = written(context, "i64", [len(text) for _, text in table])
    starts = list(accumulate((len(text) for _, text in table), initial=0))[:-1]
    changes = context.add("less_equal", context.scalar("i64", 0), found)
    safe = binary_scalar(context, "max", found, 0)
    size = context.add("select", changes, context.add("gather", sizes, safe, axis=0), own_size)
    size = context.add("select", binary_scalar(context, "equal", own_size, 0), own_size, size)
    flat = (dim_product((count, width)),)
    counts = reshape(context, size, flat)
    owner, which = repeats(context, counts)
    at = context.add("gather", reshape(context, found, flat), owner, axis=0)
    begin = context.add(
        "gather", written(context, "i64", starts), binary_scalar(context, "max", at, 0), axis=0
    )
    pool = written(context, "u8", list(b"".join(text for _, text in table)))
    new = context.add("gather", pool, context.add("add", begin, which), axis=0)
    old_rows = concat(context, [reshape(context, rows, flat), full(context, "i32", 0, (4,))], 0)
    old = context.add("gather", old_rows, context.add("add", owner, which), axis=0)
    kept = binary_scalar(context, "less", at, 0)
    data = context.add("select", kept, cast(context, old, "u8"), new)
    total = context.add("reduce", size, function="sum", axes=(1,), keepdims=False)
    end = context.add("cumsum", total, axis=0, exclusive=False, reverse=False)
    column = (count, 1)
    pair = [reshape(context, each, column) for each in (context.add("sub", end, total), end)]
    return Strings(reshape(context, concat(context, pair, 1), (*shape, 2)), data)


def _characters(context: OpContext, rows: int) -> tuple[int, int]:
    """For each byte, the number of the character that begins there, and how many bytes that has; 0
    for a byte inside of one, or behind the end."""
    count, width = context.shape_of(rows)
    behind = full(context, "i32", 0, (count, 3))
    longer = cast(context, concat(context, [rows, behind], 1), "i64")
    first = slice_axis(context, longer, 1, 0, width)
    size = context.scalar("i64", 0)
    # 0xxxxxxx, 110xxxxx, 1110xxxx, 11110xxx; what begins with 10 is inside of a character.
    for low, high, own in ((0, 0x7F, 1), (0xC0, 0xDF, 2), (0xE0, 0xEF, 3), (0xF0, 0xFF, 4)):
        above = context.add("less_equal", context.scalar("i64", low), first)
        inside = context.add(
            "logical_and", above, binary_scalar(context, "less_equal", first, high)
        )
        size = context.add("select", inside, context.scalar("i64", own), size)
    number = first
    for at in range(1, 4):
        byte = binary_scalar(context, "mul", slice_axis(context, longer, 1, at, width), 256**at)
        further = context.add("less", context.scalar("i64", at), size)
        added = context.add("select", further, byte, context.scalar("i64", 0))
        number = context.add("add", number, added)
    return number, size

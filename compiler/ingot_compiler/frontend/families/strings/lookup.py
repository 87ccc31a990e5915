"""Strings among those that a model writes down: by a hash, that hash among theirs, and a comparison
of all bytes.

In: a context, strings, texts. Out: the place of each among the texts. Not done here: what follows
from the place (``ops``).

The hash is the sum of (byte + 1) * M^place modulo 2^64; M is chosen so that no two texts have one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    full,
    reduce,
    reshape,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.characters import (
    lengths_of,
    rows_of,
    shape_of_strings,
)
from ingot_compiler.frontend.families.strings.perfect_hash import slots_among
from ingot_compiler.frontend.families.strings.pool import written
from ingot_compiler.ir.errors import InternalError

_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def places_among(context: OpContext, strings: Strings, texts: Sequence[str]) -> int:
    """i64 in the shape of the strings: the place of each among texts that differ, -1 for others."""
    shape = shape_of_strings(context, strings)
    contents = [text.encode() for text in texts]
    if not contents:
        return full(context, "i64", -1, shape)
    width = max(1, *map(len, contents))
    table = np.full((len(contents), width), -1, np.int32)
    for row, content in zip(table, contents, strict=True):
        row[: len(content)] = list(content)
    factors, hashes = _hashes(table)
    rows = rows_of(context, strings, width)
    powers = written(context, "i64", factors.tolist())
    terms = context.add("mul", binary_scalar(context, "add", cast(context, rows, "i64"), 1), powers)
    slots = slots_among(context, reduce(context, terms, "sum", (1,)), hashes.tolist())
    place = slots.place(context)
    flat = written(context, "i32", table.ravel().tolist())
    own = context.add("gather", reshape(context, flat, table.shape), place, axis=0)
    same = reduce(context, context.add("equal", own, rows), "min", (1,))
    fits = context.add("less_equal", lengths_of(context, strings), context.scalar("i64", width))
    same = context.add("logical_and", same, fits)
    place = context.add("select", same, place, context.scalar("i64", -1))
    return reshape(context, place, shape)


def _hashes(table: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Powers of a factor, and the hashes of rows of bytes, which differ."""
    for factor in _FACTORS:
        with np.errstate(over="ignore"):
            powers = np.cumprod(np.full(table.shape[1], factor, np.uint64))
            terms = (table.astype(np.int64) + 1).astype(np.uint64) * powers
            hashes = terms.sum(1, dtype=np.uint64)
        if len(np.unique(hashes)) == len(table):
            return powers.view(np.int64), hashes.view(np.int64)
    raise InternalError("no hash tells all texts of a model apart", where="strings")


def found_in(context: OpContext, numbers: int, table: Sequence[int]) -> int:
    """The place of each number in a table of numbers that differ, -1 where it is not there."""
    slots = slots_among(context, numbers, table)
    return context.add("select", slots.found, slots.place(context), context.scalar("i64", -1))

"""ONNX TfIdfVectorizer: how often each n-gram of a pool occurs in rows of integers.

In: i32, i64 or strings [N, C], or one row. Out: f32 [N, columns], or one row. Not done here: how
strings are found (``strings/lookup``): each is the number of its text in the pool.

Each n-gram is compared with each place of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingot_compiler.frontend.compose import (
    binary_scalar,
    cast,
    full,
    reduce,
    reshape,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.strings.lookup import places_among
from ingot_compiler.frontend.strings.pool import strings_of
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import require

_COMPARED_MAX = 4096  # n-grams of one length


@dataclass(frozen=True, slots=True)
class _Grams:
    """The n-grams of one length, one after the other, and their columns."""

    length: int
    items: tuple[int, ...]
    columns: tuple[int, ...]


def _translate(context: OpContext) -> Sequence[int]:
    words = _words(context)
    if words:
        texts = list(dict.fromkeys(words))
        x = places_among(context, strings_of(context, context.operand(0)), texts)
    else:
        x = cast(context, context.operand(0), "i64")
    require(context.rank_of(x) in (1, 2), "[N, C], or one row", context.type_of(x))
    rows = unsqueeze(context, x, (0,)) if context.rank_of(x) == 1 else x
    columns = context.ints_or("ngram_indexes", ())
    require(min(columns, default=-1) >= 0, "ngram_indexes from 0 on", columns[:8])
    width = max(columns) + 1
    total = full(context, "f32", 0.0, (context.shape_of(rows)[0], width))
    for grams in _grams(context, columns):
        counts = _counts(context, rows, grams)
        if counts is not None:
            total = context.add("add", total, _placed(context, counts, grams, width))
    found = _weighted(context, total)
    return (reshape(context, found, (width,)) if context.rank_of(x) == 1 else found,)


def _words(context: OpContext) -> tuple[str, ...]:
    """The pool, where it is one of strings."""
    found = context.attributes.get("pool_strings", ())
    return tuple(map(str, found)) if isinstance(found, tuple) else ()


def _pool(context: OpContext) -> tuple[int, ...]:
    """The pool as integers."""
    words = _words(context)
    places = {word: place for place, word in enumerate(dict.fromkeys(words))}
    return tuple(places[word] for word in words) or context.ints_or("pool_int64s", ())


def _grams(context: OpContext, columns: Sequence[int]) -> list[_Grams]:
    """Those of the lengths that are asked for."""
    pool, starts = _pool(context), context.ints_or("ngram_counts", ())
    least, most = (context.int_attribute(f"{name}_gram_length", 1) for name in ("min", "max"))
    found: list[_Grams] = []
    taken = 0
    for length, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        fits = 0 <= start <= end <= len(pool) and (end - start) % length == 0
        require(fits, f"whole {length}-grams in the pool", (start, end))
        count = (end - start) // length
        own = tuple(columns[taken : taken + count])
        require(len(own) == count, "a column for each n-gram", len(columns))
        taken += count
        if count > _COMPARED_MAX:
            raise Unsupported(f"{count} n-grams: up to {_COMPARED_MAX} of a length")
        if count and least <= length <= most:
            found.append(_Grams(length, pool[start:end], own))
    return found


def _counts(context: OpContext, rows: int, grams: _Grams) -> int | None:
    """f32 [N, n-grams]; None where no row is long enough."""
    count, size = len(grams.columns), context.shape_of(rows)[1]
    if not isinstance(size, int):
        raise Unsupported("rows whose length is known at run time only")
    table = reshape(context, context.integers(grams.items), (count, grams.length))
    skips = context.int_attribute("max_skip_count", 0) + 1 if grams.length > 1 else 1
    total: int | None = None
    for step in range(1, skips + 1):
        places = size - (grams.length - 1) * step
        if places <= 0:
            break
        hits = _hits(context, rows, table, (grams.length, step, places))
        own = reduce(context, cast(context, hits, "f32"), "sum", (1,))
        total = own if total is None else context.add("add", total, own)
    return total


def _hits(context: OpContext, rows: int, table: int, window: tuple[int, int, int]) -> int:
    """Bool [N, places, n-grams]: whether an n-gram begins at a place."""
    length, step, places = window
    parts = [
        context.add(
            "equal",
            unsqueeze(context, slice_axis(context, rows, 1, at * step, places), (2,)),
            reshape(context, slice_axis(context, table, 1, at, 1), (context.shape_of(table)[0],)),
        )
        for at in range(length)
    ]
    hits = parts[0]
    for part in parts[1:]:
        hits = context.add("logical_and", hits, part)
    return hits


def _placed(context: OpContext, counts: int, grams: _Grams, width: int) -> int:
    """The counts in their columns."""
    wanted = context.integers(grams.columns)
    columns = reshape(context, context.add("iota", dtype="i64", length=width), (width, 1))
    chosen = cast(context, context.add("equal", columns, wanted), "f32")
    shape: tuple[Dim, ...] = (context.shape_of(counts)[0], 1, len(grams.columns))
    spread = context.add("mul", reshape(context, counts, shape), unsqueeze(context, chosen, (0,)))
    return reduce(context, spread, "sum", (2,))


def _weighted(context: OpContext, counts: int) -> int:
    mode = context.string_attribute("mode", "TF", ("TF", "IDF", "TFIDF"))
    given = context.attributes.get("weights", ())
    weights = [float(item) for item in given] if isinstance(given, tuple) else []
    if mode == "TF":
        return counts
    if mode == "IDF":
        present = context.add("less", context.scalar("f32", 0.0), counts)
        counts = cast(context, present, "f32")
    if not weights:
        return counts
    width = context.shape_of(counts)[1]
    require(len(weights) == width, f"{width} weights", len(weights))
    if set(weights) == {weights[0]}:
        return binary_scalar(context, "mul", counts, weights[0])
    return context.add("mul", counts, context.float_vector("f32", weights))


OP = OnnxOp("TfIdfVectorizer", _translate)

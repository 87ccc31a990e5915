"""ONNX TfIdfVectorizer: how often each n-gram of a pool occurs in rows of integers.

In: i32, i64 or strings [N, C], or one row. Out: f32 [N, columns], or one row. Not done here: how
strings are found (``strings/lookup``): each is the number of its text in the pool.

An n-gram is found item by item: the number of what was found so far and that of the next item make
one number, which is looked up among those of the pool. Counts are added where the columns of
n-grams are; what is none has a column of its own behind them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    full,
    reshape,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.strings.lookup import found_in, places_among
from ingot_compiler.frontend.families.strings.pool import strings_of, written
from ingot_compiler.ir.dims import dim_max
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import require
from ingot_runtime.lazy_dataclass import dataclass


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
    counts = full(context, "f32", 0.0, (context.shape_of(rows)[0], width + 1))
    for grams in _grams(context, columns):
        counts = _counted(context, counts, rows, grams)
    found = _weighted(context, slice_axis(context, counts, 1, 0, width))
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
    """The n-grams of the pool whose lengths the node counts."""
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
        if count and least <= length <= most:
            found.append(_Grams(length, pool[start:end], own))
    return found


def _counted(context: OpContext, counts: int, rows: int, grams: _Grams) -> int:
    """Counts with those of the n-grams of one length."""
    items = sorted(set(grams.items))
    item = found_in(context, rows, items)
    numbers = {number: place for place, number in enumerate(items)}
    pool = [
        tuple(numbers[number] for number in grams.items[at : at + grams.length])
        for at in range(0, len(grams.items), grams.length)
    ]
    require(len(set(pool)) == len(pool), "n-grams that differ", "one that is there twice")
    tables = _prefixes(pool, len(items))
    columns = [column for _, column in sorted(zip(pool, grams.columns, strict=True))]
    skips = context.int_attribute("max_skip_count", 0) + 1 if grams.length > 1 else 1
    for step in range(1, skips + 1):
        size = dim_max(context.shape_of(rows)[1] - (grams.length - 1) * step, 0)
        at = slice_axis(context, item, 1, 0, size)
        for place, table in enumerate(tables, 1):
            following = slice_axis(context, item, 1, place * step, size)
            at = _following(context, at, following, table, len(items))
        counts = _added(context, counts, at, columns)
    return counts


def _prefixes(pool: Sequence[tuple[int, ...]], count: int) -> list[list[int]]:
    """For each further item of an n-gram: the sorted numbers of what was found and the item."""
    numbers = [gram[0] for gram in pool]
    tables: list[list[int]] = []
    for place in range(1, len(pool[0])):
        keys = [number * count + gram[place] for number, gram in zip(numbers, pool, strict=True)]
        tables.append(sorted(set(keys)))
        at = {key: number for number, key in enumerate(tables[-1])}
        numbers = [at[key] for key in keys]
    return tables


def _following(
    context: OpContext, at: int, following: int, table: Sequence[int], count: int
) -> int:
    """The number of what was found with one more item, -1 where it begins no n-gram."""
    zero = context.scalar("i64", 0)
    known = context.add(
        "logical_and", *(context.add("less_equal", zero, each) for each in (at, following))
    )
    key = context.add("add", binary_scalar(context, "mul", at, count), following)
    key = context.add("select", known, key, context.scalar("i64", -1))
    return found_in(context, key, table)


def _added(context: OpContext, counts: int, at: int, columns: Sequence[int]) -> int:
    """Counts with one more in the column of each n-gram that is found, or in the last one."""
    none = binary_scalar(context, "less", at, 0)
    last = context.shape_of(counts)[1] - 1
    own = context.add(
        "gather", written(context, "i64", columns), binary_scalar(context, "max", at, 0), axis=0
    )
    own = context.add("select", none, reshape(context, context.integers([last]), ()), own)
    ones = full(context, "f32", 1.0, context.shape_of(at))
    return context.add("scatter_elements", counts, own, ones, axis=1, reduction="add")


def _weighted(context: OpContext, counts: int) -> int:
    mode = context.string_attribute("mode", "TF", ("TF", "IDF", "TFIDF"))
    given = context.attributes.get("weights")
    if mode == "TF":
        return counts
    if mode == "IDF":
        present = context.add("less", context.scalar("f32", 0.0), counts)
        counts = cast(context, present, "f32")
    if not isinstance(given, ConstantSource):
        return counts
    width = context.shape_of(counts)[1]
    require(given.type.shape == (width,), f"{width} weights", given.type.shape)
    return context.add("mul", counts, context.constant(given))


OPS = (OnnxOp("TfIdfVectorizer", _translate),)

"""ONNX StringSplit: the parts of strings between delimiters, or between white space.

In: strings. Out: strings with one axis more, filled up with empty ones, and the number of parts of
each. Not done here: what white space is (Python's ``str.split``, as in ONNX's reference).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    full,
    iota,
    reduce,
    reshape,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.characters import (
    ends_of,
    lengths_of,
    longest,
    rows_of,
    shape_of_strings,
    spans_of,
)
from ingot_compiler.frontend.families.strings.delimiters import is_space, separators
from ingot_compiler.frontend.families.strings.pool import strings_of
from ingot_compiler.ir.dims import Dim

_ANY = (1 << 62) - 1


def _translate(context: OpContext) -> Sequence[int]:
    strings = strings_of(context, context.operand(0))
    shape, lengths = shape_of_strings(context, strings), lengths_of(context, strings)
    # One place behind the longest, where every string has ended.
    width = longest(context, lengths) + 1
    rows = rows_of(context, strings, width)
    limit = context.int_attribute("maxsplit", -1)
    delimiter = context.string_attribute("delimiter", "")
    limit = _ANY if limit < 0 else limit
    if delimiter:
        begin, end = _between(context, rows, lengths, delimiter.encode(), limit)
    else:
        begin, end = _words(context, rows, lengths, limit)
    counts, starts = _columns(context, begin)
    _, stops = _columns(context, end, like=starts)
    first, _ = ends_of(context, spans_of(context, strings))
    first = unsqueeze(context, first, (1,))
    parts = [unsqueeze(context, context.add("add", each, first), (2,)) for each in (starts, stops)]
    most = context.shape_of(starts)[1]
    spans = reshape(context, concat(context, parts, 2), (*shape, most, 2))
    return add_value(context, Strings(spans, strings.pool)), reshape(context, counts, shape)


def _between(
    context: OpContext, rows: int, lengths: int, delimiter: bytes, limit: int
) -> tuple[int, int]:
    """Bool[count, width]: where a part begins, and where one ends."""
    found = separators(context, rows, delimiter)
    number = _running(context, found)
    found = context.add("logical_and", found, binary_scalar(context, "less_equal", number, limit))
    count, width = context.shape_of(rows)
    first = broadcast_to(
        context, binary_scalar(context, "equal", iota(context, width), 0), (count, width)
    )
    # A part begins behind a delimiter: at most at the end of the string, for which there is a place.
    behind = _shifted(context, found, len(delimiter))
    ended = context.add("equal", iota(context, width), unsqueeze(context, lengths, (1,)))
    return context.add("logical_or", first, behind), context.add("logical_or", found, ended)


def _words(context: OpContext, rows: int, lengths: int, limit: int) -> tuple[int, int]:
    """Where words between white space begin and end; the last word of a limited split goes to the
    end."""
    width = context.shape_of(rows)[1]
    inside = context.add("less", iota(context, width), unsqueeze(context, lengths, (1,)))
    word = context.add("logical_and", inside, context.add("logical_not", is_space(context, rows)))
    before = _shifted(context, word, 1)
    begin = context.add("logical_and", word, context.add("logical_not", before))
    end = context.add("logical_and", before, context.add("logical_not", word))
    number = _running(context, begin)
    begin = context.add(
        "logical_and", begin, binary_scalar(context, "less_equal", number, limit + 1)
    )
    kept = context.add("logical_and", end, binary_scalar(context, "less_equal", number, limit))
    ended = context.add("equal", iota(context, width), unsqueeze(context, lengths, (1,)))
    rest = context.add("less", context.scalar("i64", limit), number)
    return begin, context.add("logical_or", kept, context.add("logical_and", ended, rest))


def _running(context: OpContext, flags: int) -> int:
    """How many flags of a row are set up to each place."""
    return context.add(
        "cumsum", cast(context, flags, "i64"), axis=1, exclusive=False, reverse=False
    )


def _shifted(context: OpContext, flags: int, places: int) -> int:
    """Flags that many places further back in each row."""
    count, width = context.shape_of(flags)
    longer = concat(context, [full(context, "bool", 0, (count, places)), flags], 1)
    return slice_axis(context, longer, 1, 0, width)


def _columns(context: OpContext, flags: int, like: int | None = None) -> tuple[int, int]:
    """How many flags each row has, and their places as rows, 0 behind; ``like``: rows as long."""
    count, width = context.shape_of(flags)
    counts = reduce(context, cast(context, flags, "i64"), "sum", (1,))
    most: Dim = longest(context, counts) if like is None else context.shape_of(like)[1]
    target = full(context, "i64", 0, (count, most + 1))
    number = context.add(
        "cumsum", cast(context, flags, "i64"), axis=1, exclusive=True, reverse=False
    )
    place = context.add("select", flags, number, reshape(context, context.integers([most]), ()))
    own = broadcast_to(context, iota(context, width), (count, width))
    found = context.add("scatter_elements", target, place, own, axis=1, reduction="none")
    return counts, slice_axis(context, found, 1, 0, most)


OPS = (OnnxOp("StringSplit", _translate),)

"""com.microsoft Tokenizer: the words of texts, by a pattern of them, by patterns of what is between
them, or character by character.

In: strings. Out: strings with one axis more, filled up with ``pad_value``. Not done here: how a
pattern is found (``strings/pattern_search``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    reduce,
    reshape,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.automaton import PatternError, is_one_character
from ingot_compiler.frontend.families.strings.characters import (
    ends_of,
    lengths_of,
    longest,
    rows_of,
    shape_of_strings,
    spans_of,
)
from ingot_compiler.frontend.families.strings.pattern_search import (
    SearchTable,
    find_matches,
    search_table,
)
from ingot_compiler.frontend.families.strings.pool import (
    joined_strings,
    strings_of,
    written_strings,
)
from ingot_compiler.ir.op_type_error import require

_MARKS = ("\x02", "\x03")  # before the first and behind the last token, where ``mark`` is set


def _translate(context: OpContext) -> Sequence[int]:
    strings = strings_of(context, context.operand(0))
    texts = [context.string_attribute("pad_value", ""), *_MARKS]
    both = [strings, written_strings(context, texts, (len(texts),))]
    (spans, written), pool = joined_strings(context, both)
    shape, lengths = shape_of_strings(context, strings), lengths_of(context, strings)
    # One place behind the longest, where every string has ended.
    rows = rows_of(context, strings, longest(context, lengths) + 1)
    begin, end = _words(context, rows, lengths)
    number, counts = _numbers(context, _long_enough(context, rows, begin, end))
    most = longest(context, counts)
    first, _ = ends_of(context, spans_of(context, Strings(spans, pool)))
    first = unsqueeze(context, first, (1,))
    sides: list[int] = []
    for places, known in zip((begin, end), ends_of(context, written), strict=True):
        own = _with_marks(context, context.add("add", places, first), known)
        pad = slice_axis(context, known, 0, 0, 1)
        target = broadcast_to(context, pad, (context.shape_of(number)[0], most + 1))
        found = context.add("scatter_elements", target, number, own, axis=1, reduction="none")
        sides.append(unsqueeze(context, slice_axis(context, found, 1, 0, most), (2,)))
    result = reshape(context, concat(context, sides, 2), (*shape, most, 2))
    return (add_value(context, Strings(result, pool)),)


def _words(context: OpContext, rows: int, lengths: int) -> tuple[int, int]:
    """i64[rows, places]: where words begin and end, -1 where there is none."""
    word = context.string_attribute("tokenexp", "")
    given = context.attributes.get("separators", ())
    between = [str(item) for item in given] if isinstance(given, tuple) else []
    require(bool(word) != bool(between), "either tokenexp or separators", (word, *between))
    if between == [""]:
        least = context.int_attribute("mincharnum", 1)
        require(least < 2, "mincharnum 1 where each character is a token", least)
        word = "(?s)."
    if word:
        found = find_matches(context, rows, lengths, _table(word))
        return _as_rows(context, found.begin), _as_rows(context, found.end)
    found = find_matches(context, rows, lengths, _table(*between), gaps=True)
    begin, end = (
        concat(context, [_as_rows(context, part), unsqueeze(context, rest, (1,))], 1)
        for part, rest in ((found.begin, found.behind), (found.end, lengths))
    )
    is_word = context.add("less", begin, end)
    return context.add("select", is_word, begin, context.scalar("i64", -1)), end


def _as_rows(context: OpContext, steps: int) -> int:
    return context.add("transpose", steps, permutation=(1, 0))


def _table(*patterns: str) -> SearchTable:
    """One table of all patterns; texts are split by one after the other, which single characters
    alone make the same."""
    for pattern in patterns:
        try:
            fits = len(patterns) == 1 or is_one_character(pattern)
        except PatternError as error:
            raise Unsupported(f"the pattern {pattern!r}: {error}") from None
        if not fits:
            raise Unsupported("several separators of which one is not a single character")
    try:
        return search_table("|".join(patterns))
    except PatternError as error:
        raise Unsupported(f"the patterns {list(patterns)!r}: {error}") from None


def _long_enough(context: OpContext, rows: int, begin: int, end: int) -> int:
    """Bool: which words are there, and have ``mincharnum`` characters."""
    found = context.add("less_equal", context.scalar("i64", 0), begin)
    least = context.int_attribute("mincharnum", 1)
    if least <= 1:
        return found
    # All bytes begin a character but those from 0x80 to 0xBF.
    low, high = (binary_scalar(context, "less_equal", rows, byte) for byte in (0x7F, 0xBF))
    starts = cast(context, context.add("logical_or", low, context.add("logical_not", high)), "i64")
    before = context.add("cumsum", starts, axis=1, exclusive=True, reverse=False)
    at_begin, at_end = (
        context.add("gather_elements", before, binary_scalar(context, "max", side, 0), axis=1)
        for side in (begin, end)
    )
    long = context.add(
        "less_equal", context.scalar("i64", least), context.add("sub", at_end, at_begin)
    )
    return context.add("logical_and", found, long)


def _numbers(context: OpContext, kept: int) -> tuple[int, int]:
    """i64: the column of each token, one behind the last for what is none; how many a row has."""
    ones = cast(context, kept, "i64")
    counts = reduce(context, ones, "sum", (1,))
    number = context.add("cumsum", ones, axis=1, exclusive=True, reverse=False)
    if context.bool_attribute("mark"):
        counts = binary_scalar(context, "add", counts, len(_MARKS))
        last = unsqueeze(context, binary_scalar(context, "add", counts, -1), (1,))
        first = binary_scalar(context, "mul", last, 0)
        number = concat(context, [first, binary_scalar(context, "add", number, 1), last], 1)
        always = broadcast_to(context, context.scalar("bool", 1), context.shape_of(first))
        kept = concat(context, [always, kept, always], 1)
    most = reshape(context, context.integers([longest(context, counts)]), ())
    return context.add("select", kept, number, most), counts


def _with_marks(context: OpContext, places: int, known: int) -> int:
    """Where tokens begin or end, with the marks among them; ``known``: of the padding and the
    marks."""
    if not context.bool_attribute("mark"):
        return places
    count = context.shape_of(places)[0]
    first, last = (
        broadcast_to(context, slice_axis(context, known, 0, at, 1), (count, 1)) for at in (1, 2)
    )
    return concat(context, [first, places, last], 1)


OPS = (
    OnnxOp(
        "Tokenizer",
        _translate,
        signature="X -> Y; mark!:int mincharnum!:int pad_value!:string separators:strings tokenexp:string",
    ),
)

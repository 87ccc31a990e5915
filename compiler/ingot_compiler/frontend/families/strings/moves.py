"""Ops that move elements, on strings: the same op on the numbers of the strings.

In: the context of a node some of whose operands are strings, what translates a node. Out: strings.
Not done here: ops that look at the bytes (``ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.compose import concat, iota, reshape
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.sequences import add_value, value_of
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.characters import shape_of_strings, spans_of
from ingot_compiler.frontend.families.strings.pool import joined_strings
from ingot_compiler.ir.dims import Dim

MOVES = frozenset(
    {
        "ArrayFeatureExtractor", "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements",
        "GatherND", "Reshape", "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "Split",
        "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
    }
)  # fmt: skip
COUNTS = frozenset({"Shape", "Size"})
"""Ops that look at the shape alone, and give numbers."""
OWN = frozenset(
    {
        "Cast", "CastLike", "CategoryMapper", "ConcatFromSequence", "Equal", "Identity", "If", "LabelEncoder", "Loop", "OneHotEncoder",
        "Optional",
        "OptionalGetElement", "OptionalHasElement", "RegexFullMatch", "SequenceConstruct",
        "SequenceInsert", "SequenceMap", "SplitToSequence", "StringConcat", "StringNormalizer",
        "StringSplit", "TfIdfVectorizer", "Tokenizer",
    }
)  # fmt: skip
"""Ops whose own translation takes strings."""


def moved(context: OpContext, translate: Callable[[OpContext], Sequence[int]]) -> Sequence[int]:
    """The results of a node on strings.

    Raises:
        Unsupported: it is none of these ops.
    """
    if context.op not in MOVES | COUNTS:
        raise Unsupported("strings in the place of numbers")
    found = {operand: value_of(context, operand) for operand in context.given()}
    strings = {operand: it for operand, it in found.items() if isinstance(it, Strings)}
    spans, pool = joined_strings(context, list(strings.values()))
    numbers: dict[int, int] = {}
    start: Dim = 0
    rows: list[int] = []
    for (operand, value), own in zip(strings.items(), spans, strict=True):
        flat = spans_of(context, Strings(own, pool))
        count = context.shape_of(flat)[0]
        first = context.integers([start])
        places = context.add("add", iota(context, count), reshape(context, first, ()))
        numbers[operand] = reshape(context, places, shape_of_strings(context, value))
        rows.append(flat)
        start = start + count
    operands = tuple(
        operand if operand is None else numbers.get(operand, operand)
        for operand in context.operands
    )
    results = translate(replace(context, operands=operands))
    if context.op in COUNTS:
        return results
    table = concat(context, rows, 0)
    return [
        add_value(context, Strings(context.add("gather", table, result, axis=0), pool))
        for result in results
    ]


def as_texts(context: OpContext, places: int, strings: Strings) -> int:
    """Strings of a vector by their places."""
    spans = context.add("gather", strings.spans, places, axis=0)
    return add_value(context, Strings(spans, strings.pool))

"""Strings as tensors: where each begins and ends in a pool of bytes.

In: a context, texts or values of strings. Out: tensors. Not done here: what is computed with them
(the other files here).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from ingot_compiler.frontend.build.compose import concat, full, reshape, size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.known_values import as_known_values
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import DType

_LITERAL_COUNT_MAX = 1024


def joined_strings(context: OpContext, values: Sequence[Strings]) -> tuple[list[int], int]:
    """The spans of each in one pool, and that pool."""
    if len({value.pool for value in values}) == 1:
        return [value.spans for value in values], values[0].pool
    spans: list[int] = []
    start: Dim = 0
    for value in values:
        spans.append(context.add("add", value.spans, size_scalar(context, start)))
        start = start + context.shape_of(value.pool)[0]
    return spans, concat(context, [value.pool for value in values], 0)


def written_strings(context: OpContext, texts: Sequence[str], shape: Sequence[int]) -> Strings:
    """Strings that the model writes down."""
    contents = [text.encode("utf-8", "surrogateescape") for text in texts]
    ends = list(accumulate(map(len, contents), initial=0))
    spans = [place for pair in pairwise(ends) for place in pair]
    table = written(context, "i64", spans)
    return Strings(
        reshape(context, table, (*shape, 2)), written(context, "u8", list(b"".join(contents)))
    )


def written(context: OpContext, dtype: DType, numbers: Sequence[int]) -> int:
    """A vector of integers, of any length, that is written in the graph."""
    parts = [
        context.known(dtype, as_known_values(part, (len(part),)))
        for start in range(0, len(numbers), _LITERAL_COUNT_MAX)
        for part in [numbers[start : start + _LITERAL_COUNT_MAX]]
    ]
    return concat(context, parts, 0) if parts else full(context, dtype, 0, (0,))


def strings_of(context: OpContext, value: int) -> Strings:
    """A tensor of strings."""
    found = context.translation.values.get(value)
    if not isinstance(found, Strings):
        raise OpTypeError("strings", "another value" if value < 0 else context.type_of(value))
    return found

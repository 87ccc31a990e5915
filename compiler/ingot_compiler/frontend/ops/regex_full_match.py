"""ONNX RegexFullMatch: whether strings as a whole match a pattern.

In: strings. Out: bool. Not done here: the pattern (``strings/automaton``), which becomes a table of
states and bytes when the model is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    full,
    reshape,
    size_scalar,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.control import build_loop
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.strings.automaton import PatternError, automaton
from ingot_compiler.frontend.families.strings.characters import (
    lengths_of,
    longest,
    rows_of,
    shape_of_strings,
)
from ingot_compiler.frontend.families.strings.pool import strings_of, written


def _translate(context: OpContext) -> Sequence[int]:
    pattern = context.string_attribute("pattern", "")
    strings = strings_of(context, context.operand(0))
    try:
        states = automaton(pattern)
    except PatternError as error:
        raise Unsupported(f"the pattern {pattern!r}: {error}") from None
    classes = written(context, "i64", states.classes)
    table = written(context, "i64", states.table)
    width = longest(context, lengths_of(context, strings))
    rows = rows_of(context, strings, width)
    count = context.shape_of(rows)[0]
    # The end of a string is a byte of its own, which changes no state.
    byte = context.add("gather", classes, binary_scalar(context, "add", rows, 1), axis=0)

    def fill(inputs: Sequence[int]) -> Sequence[int]:
        place, going, state = inputs
        own = reshape(context, context.add("gather", byte, place, axis=1), (count,))
        row = binary_scalar(context, "mul", state, states.class_count)
        return going, context.add("gather", table, context.add("add", row, own), axis=0)

    start = full(context, "i64", 0, (count,))
    (state,) = build_loop(
        context, (size_scalar(context, width), width), (None, True), (start,), fill
    )
    accepts = written(context, "i64", states.accepts)
    found = binary_scalar(context, "equal", context.add("gather", accepts, state, axis=0), 1)
    return (reshape(context, found, shape_of_strings(context, strings)),)


OPS = (OnnxOp("RegexFullMatch", _translate),)

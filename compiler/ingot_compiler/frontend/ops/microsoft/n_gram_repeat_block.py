"""ONNX Runtime NGramRepeatBlock: scores without the tokens that would repeat a run of tokens.

In: tokens so far [B, S], scores [B, vocabulary]. Out: the scores, minus infinity for each token
that followed the last ``ngram_size`` - 1 tokens before. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import full, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.sizes.ranges import maximum, minimum


def _translate(context: OpContext) -> Sequence[int]:
    tokens, scores = context.operand(0), context.operand(1)
    batch, rows = sizes_of(context, tokens, 2)
    size = context.int_attribute("ngram_size", 0)
    require(size > 0, "an ngram_size above 0", str(size))
    # The runs of that size: none in a shorter text.
    runs = maximum(rows - (size - 1), 0)
    is_repeated = full(context, "bool", 1, (batch, runs))
    for place in range(size - 1):
        token = slice_axis(context, tokens, 1, minimum(place, rows), runs)
        last = slice_axis(context, tokens, 1, maximum(rows - (size - 1) + place, 0), 1)
        same = context.add("equal", token, last)
        is_repeated = context.add("logical_and", is_repeated, same)
    followers = slice_axis(context, tokens, 1, minimum(size - 1, rows), runs)
    dtype = context.dtype_of(scores)
    never, always = (context.scalar(dtype, float(text)) for text in ("-inf", "inf"))
    limits = context.add("select", is_repeated, never, always)
    return (
        as_onnx(context, "ScatterElements", scores, followers, limits, axis=1, reduction="min"),
    )


OPS = (
    OnnxOp(
        "NGramRepeatBlock", _translate, signature="input_ids scores -> scores_out; ngram_size!:int"
    ),
)

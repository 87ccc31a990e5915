"""ONNX Bernoulli: 1 with the probability that an element is, else 0.

In: a float tensor of probabilities. Out: the same shape. Not done here: the stream
(``random_numbers``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, wide_float
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.random_numbers import uniform, wanted_dtype


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    dtype = wanted_dtype(context, context.dtype_of(x), floats_only=False)
    wide = wide_float(context.dtype_of(x))
    drawn = uniform(context, wide, context.shape_of(x))
    return (cast(context, context.add("less", drawn, cast(context, x, wide)), dtype),)


OP = OnnxOp("Bernoulli", _translate)

"""ONNX RandomUniform: numbers that lie evenly between two limits.

In: nothing; the shape is an attribute. Out: a float tensor. Not done here: the stream
(``random_numbers``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.random_numbers import (
    scaled_to,
    uniform,
    wanted_dtype,
    wanted_shape,
)


def _translate(context: OpContext) -> Sequence[int]:
    dtype = wanted_dtype(context, "f32")
    offset = context.float_attribute("low", 0.0)
    factor = context.float_attribute("high", 1.0) - offset
    return (
        scaled_to(context, uniform(context, dtype, wanted_shape(context)), factor, offset, dtype),
    )


OP = OnnxOp("RandomUniform", _translate)

"""ONNX RandomNormal: normal numbers of a mean and a standard deviation.

In: nothing; the shape is an attribute. Out: a float tensor. Not done here: the stream
(``random_numbers``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.random_numbers import (
    normal,
    scaled_to,
    wanted_dtype,
    wanted_shape,
)


def _translate(context: OpContext) -> Sequence[int]:
    dtype = wanted_dtype(context, "f32")
    factor, offset = context.float_attribute("scale", 1.0), context.float_attribute("mean", 0.0)
    return (
        scaled_to(context, normal(context, dtype, wanted_shape(context)), factor, offset, dtype),
    )


OP = OnnxOp("RandomNormal", _translate)

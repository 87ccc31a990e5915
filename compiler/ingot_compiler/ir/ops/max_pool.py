"""``max_pool{kernel, strides, pads_before, pads_after, dilations}``: greatest element per window
(ONNX MaxPool-22).

In: x[N, C, spatial..] of numbers. Out: [N, C, positions..]; padding never wins, NaN propagates; a
window of padding only gives the least value. Not done here: indices; ``ceil_mode`` (the frontend
enlarges pads_after).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_ints, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import least
from ingot_compiler.ir.rules.window_rules import infer_pool, pad_spatial, window_view
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dilations", "kernel", "pads_after", "pads_before", "strides")
    return infer_pool(types, attributes)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, kernel = operands[0], attribute_ints(attributes, "kernel")
    view = window_view(pad_spatial(x, attributes, least(x.dtype)), kernel, attributes)
    return (np.asarray(view.max(tuple(range(x.ndim, view.ndim)))),)


OP = CoreOp("max_pool", _infer, _reference, traits=Trait.DENSE_OF_ALL | Trait.EXACT)

"""ONNX Size: the number of elements of a tensor.

In: a tensor. Out: core ``literal`` or ``dim_values``, i64 of rank 0. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.known_values import as_known_values
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    return (
        context.known(
            "i64", as_known_values([context.type_of(context.operand(0)).element_count], ())
        ),
    )


OP = OnnxOp("Size", _translate)

"""ONNX Runtime ScaledSiLU: SiLU of a multiple.

In: x, perhaps a factor of one element in the place of ``alpha``. Out: core ``mul``, ``silu``. Not
done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reshape, scaled
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    x, factor = context.operand(0), context.optional(1)
    if factor is None:
        multiple = scaled(context, x, context.float_attribute("alpha", 1.0))
    else:
        single = reshape(context, cast(context, factor, "f32"), ())
        multiple = cast(
            context, context.add("mul", cast(context, x, "f32"), single), context.dtype_of(x)
        )
    return (context.add("silu", multiple),)


OP = OnnxOp("ScaledSiLU", _translate, signature="X scale? -> Y; alpha:float")

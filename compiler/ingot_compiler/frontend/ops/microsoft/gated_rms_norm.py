"""ONNX Runtime GatedRMSNorm: groups of elements divided by their root mean square, times a gate.

In: x [.., n * C], scale [C], a gate like x. Out: core ``rms_norm``, ``silu`` or ``sigmoid``,
computed in f32. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import cast, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import known_sizes
from ingot_compiler.ir.dims import dim_floordiv, dim_mod
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, scale, gate = (cast(context, context.operand(position), "f32") for position in range(3))
    shape, (width,) = context.shape_of(x), known_sizes(context, scale, 1)
    if width < 1 or not shape or dim_mod(shape[-1], width) != 0:
        raise OpTypeError(f"a last axis of whole groups of {width}", context.type_of(x))
    groups = reshape(context, x, (*shape[:-1], dim_floordiv(shape[-1], width), width))
    epsilon = context.float_attribute("epsilon", 1e-5)
    normal = as_onnx(context, "RMSNormalization", groups, scale, axis=-1, epsilon=epsilon)
    kind = context.string_attribute("activation", "silu", ("silu", "swish", "sigmoid"))
    opened = context.add("sigmoid" if kind == "sigmoid" else "silu", gate)
    result = context.add("mul", reshape(context, normal, shape), opened)
    return (cast(context, result, context.dtype_of(context.operand(0))),)


OP = OnnxOp(
    "GatedRMSNorm", _translate, signature="X scale gate -> Y; activation:string epsilon:float"
)

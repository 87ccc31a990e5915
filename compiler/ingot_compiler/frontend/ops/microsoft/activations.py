"""ONNX Runtime's activation functions, with what is added before.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import cast, reshape, scaled, slice_axis, unsqueeze
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.op_type_error import require


def _bias_add(context: OpContext) -> Sequence[int]:
    """``x + bias + skip``.

    In: a float tensor, a bias along its last axis, a residual. Out: core ``add``.
    """
    total = context.add("add", context.operand(0), context.operand(1))
    return (context.add("add", total, context.operand(2)),)


def _bias_gelu(context: OpContext) -> Sequence[int]:
    """Gelu of a sum.

    In: a float tensor, a bias along its last axis. Out: core ``add``, ``gelu``.
    """
    total = context.add("add", context.operand(0), context.operand(1))
    return (context.add("gelu", total, approximate="none"),)


def _bias_softmax(context: OpContext) -> Sequence[int]:
    """The softmax of a sum, over all axes from one on as one.

    In: scores, a bias. Out: core ``add``, ``softmax``.

    A bias of lower rank lacks axes in the middle (``is_inner_broadcast``), or the first ones.
    """
    x, bias = context.operand(0), context.operand(1)
    rank = context.rank_of(x)
    axis = context.axis_attribute(1, rank)
    missing = rank - context.rank_of(bias)
    if missing > 0 and context.bool_attribute("is_inner_broadcast"):
        bias = unsqueeze(context, bias, range(axis - missing, axis))
    total = context.add("add", x, bias)
    return (as_onnx(context, "Softmax", total, opset=11, axis=axis),)


def _bias_split_gelu(context: OpContext) -> Sequence[int]:
    """The left half of ``x + bias``, times Gelu of the right half.

    In: a float tensor, a bias along its last axis. Out: core ``add``, ``slice``, ``gelu``, ``mul``.
    """
    total = context.add("add", context.operand(0), context.operand(1))
    require(context.rank_of(total) > 0, "rank >= 1", context.type_of(total))
    *rows, size = context.shape_of(total)
    half = dim_floordiv(size, 2)
    pair = reshape(context, total, (*rows, 2, half))
    left, right = (
        reshape(context, slice_axis(context, pair, len(rows), at, 1), (*rows, half))
        for at in (0, 1)
    )
    return (context.add("mul", left, context.add("gelu", right, approximate="none")),)


def fast_gelu(context: OpContext, x: int, bias: int | None) -> int:
    """The approximation for x, or for x + bias."""
    total = x if bias is None else context.add("add", x, bias)
    return context.add("gelu", total, approximate="tanh")


def _fast_gelu(context: OpContext) -> Sequence[int]:
    """The tanh approximation of Gelu, perhaps of a sum.

    In: a float tensor, perhaps a bias along its last axis. Out: core ``add``, ``gelu``.
    """
    return (fast_gelu(context, context.operand(0), context.optional(1)),)


def _gated_add(context: OpContext) -> Sequence[int]:
    """A sum whose second summand each row has a factor for.

    In: x and y [.., C], factors [.., 1]. Out: core ``mul``, ``add``.
    """
    if context.optional(3) is not None:
        raise Unsupported("a gate_weight")
    x, y, gate = map(context.operand, range(3))
    return (context.add("add", x, context.add("mul", y, gate)),)


def _gelu(context: OpContext) -> Sequence[int]:
    """``x * (1 + erf(x / sqrt(2))) / 2``.

    In: a float tensor. Out: core ``gelu``.
    """
    return (context.add("gelu", context.operand(0), approximate="none"),)


def _quick_gelu(context: OpContext) -> Sequence[int]:
    """``x * sigmoid(alpha * x)``.

    In: a float tensor. Out: core ``mul``, ``sigmoid``.
    """
    x = context.operand(0)
    alpha = context.float_attribute("alpha", 1.702)
    if alpha == 1.0:
        return (context.add("silu", x),)
    return (context.add("mul", x, context.add("sigmoid", scaled(context, x, alpha))),)


def _scaled_si_lu(context: OpContext) -> Sequence[int]:
    """SiLU of a multiple.

    In: x, perhaps a factor of one element in the place of ``alpha``. Out: core ``mul``, ``silu``.
    """
    x, factor = context.operand(0), context.optional(1)
    if factor is None:
        multiple = scaled(context, x, context.float_attribute("alpha", 1.0))
    else:
        single = reshape(context, cast(context, factor, "f32"), ())
        multiple = cast(
            context, context.add("mul", cast(context, x, "f32"), single), context.dtype_of(x)
        )
    return (context.add("silu", multiple),)


OPS = (
    OnnxOp("BiasAdd", _bias_add, signature="X bias skip -> Y"),
    OnnxOp("BiasGelu", _bias_gelu, signature="A B -> C"),
    OnnxOp(
        "BiasSoftmax",
        _bias_softmax,
        signature="data bias -> output; axis:int is_inner_broadcast!:int",
    ),
    OnnxOp("BiasSplitGelu", _bias_split_gelu, signature="X bias -> Y"),
    OnnxOp("FastGelu", _fast_gelu, signature="X bias? -> Y"),
    OnnxOp("GatedAdd", _gated_add, signature="X Y gate gate_weight? -> output"),
    OnnxOp("Gelu", _gelu, signature="X -> Y"),
    OnnxOp("QuickGelu", _quick_gelu, signature="X -> Y; alpha:float"),
    OnnxOp("ScaledSiLU", _scaled_si_lu, signature="X scale? -> Y; alpha:float"),
)

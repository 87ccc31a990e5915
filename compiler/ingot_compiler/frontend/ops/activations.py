"""ONNX's activation functions, elementwise.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import as_float, binary_scalar, cast, less_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _celu(context: OpContext) -> Sequence[int]:
    """``max(0, x) + min(0, alpha * (e^(x / alpha) - 1))``.

    In: a float tensor. Out: core elementwise ops.
    """
    x, alpha = context.operand(0), context.float_attribute("alpha", 1.0)
    power = context.add(
        "exp", binary_scalar(context, "div", binary_scalar(context, "min", x, 0), alpha)
    )
    negative = binary_scalar(context, "mul", binary_scalar(context, "sub", power, 1), alpha)
    positive = binary_scalar(context, "max", x, 0)
    return (context.add("add", positive, binary_scalar(context, "min", negative, 0)),)


def _elu(context: OpContext) -> Sequence[int]:
    """``x`` where ``x >= 0``, else ``alpha * (e^x - 1)``.

    In: a float tensor. Out: core elementwise ops.
    """
    x = context.operand(0)
    # min(x, 0): the branch that is not taken must not overflow.
    power = context.add("exp", binary_scalar(context, "min", x, 0))
    negative = binary_scalar(
        context,
        "mul",
        binary_scalar(context, "sub", power, 1),
        context.float_attribute("alpha", 1.0),
    )
    return (context.add("select", less_scalar(context, x, 0), negative, x),)


def _gelu(context: OpContext) -> Sequence[int]:
    """``x * (1 + erf(x / sqrt(2))) / 2``, or its tanh approximation.

    In: a float tensor. Out: core ``gelu``.
    """
    approximate = context.string_attribute("approximate", "none", ("none", "tanh"))
    return (context.add("gelu", context.operand(0), approximate=approximate),)


def _hard_sigmoid(context: OpContext) -> Sequence[int]:
    """``alpha * x + beta``, limited to [0, 1].

    In: a float tensor. Out: core ``mul``, ``add``, ``max``, ``min``.
    """
    x = binary_scalar(context, "mul", context.operand(0), context.float_attribute("alpha", 0.2))
    x = binary_scalar(context, "add", x, context.float_attribute("beta", 0.5))
    return (binary_scalar(context, "min", binary_scalar(context, "max", x, 0), 1),)


def _hard_swish(context: OpContext) -> Sequence[int]:
    """``x`` times ``x / 6 + 1/2``, which is limited to [0, 1].

    In: a float tensor. Out: core ``mul``, ``add``, ``max``, ``min``.
    """
    x = context.operand(0)
    gate = binary_scalar(context, "add", binary_scalar(context, "mul", x, 1 / 6), 0.5)
    gate = binary_scalar(context, "min", binary_scalar(context, "max", gate, 0), 1)
    return (context.add("mul", x, gate),)


def _leaky_relu(context: OpContext) -> Sequence[int]:
    """``x`` where ``x >= 0``, else ``alpha * x``.

    In: a float tensor. Out: core ``mul``, ``less``, ``select``.
    """
    x = context.operand(0)
    scaled = binary_scalar(context, "mul", x, context.float_attribute("alpha", 0.01))
    return (context.add("select", less_scalar(context, x, 0), scaled, x),)


LEAKY_RELU = OnnxOp("LeakyRelu", _leaky_relu)


def _mish(context: OpContext) -> Sequence[int]:
    """``x * tanh(log(1 + e^x))``.

    In: a float tensor. Out: core ``softplus``, ``tanh``, ``mul``.
    """
    x = context.operand(0)
    return (context.add("mul", x, context.add("tanh", context.add("softplus", x))),)


def _prelu(context: OpContext) -> Sequence[int]:
    """``x`` where ``x >= 0``, else ``slope * x``, the slope broadcast to x.

    In: x and slope. Out: core ``mul``, ``less``, ``select``.
    """
    x, slope = context.operand(0), context.operand(1)
    return (context.add("select", less_scalar(context, x, 0), context.add("mul", x, slope), x),)


_ALPHA, _GAMMA = 1.67326319217681884765625, 1.05070102214813232421875  # ONNX Selu-22, defaults


def _selu(context: OpContext) -> Sequence[int]:
    """``gamma * x`` where ``x > 0``, else ``gamma * alpha * (e^x - 1)``.

    In: a float tensor. Out: core elementwise ops.
    """
    x = context.operand(0)
    power = context.add("exp", binary_scalar(context, "min", x, 0))
    alpha = context.float_attribute("alpha", _ALPHA)
    negative = binary_scalar(context, "mul", binary_scalar(context, "sub", power, 1), alpha)
    value = context.add("select", less_scalar(context, x, 0), negative, x)
    return (binary_scalar(context, "mul", value, context.float_attribute("gamma", _GAMMA)),)


def _shrink(context: OpContext) -> Sequence[int]:
    """``x + bias`` below ``-lambd``, ``x - bias`` above ``lambd``, 0 between.

    In: a tensor of numbers. Out: core elementwise ops.
    """
    x = context.operand(0)
    lambd, bias = context.float_attribute("lambd", 0.5), context.float_attribute("bias", 0.0)
    # Integers are compared and shifted as floats, as the attributes are.
    wide = as_float(context, x)
    dtype = context.dtype_of(wide)
    above = context.add("less", context.scalar(dtype, lambd), wide)
    lowered = binary_scalar(context, "sub", wide, bias)
    high = context.add("select", above, lowered, context.scalar(dtype, 0))
    low = binary_scalar(context, "add", wide, bias)
    result = context.add("select", less_scalar(context, wide, -lambd), low, high)
    return (cast(context, result, context.dtype_of(x)),)


def _softsign(context: OpContext) -> Sequence[int]:
    """``x / (1 + |x|)``.

    In: a float tensor. Out: core ``abs``, ``add``, ``div``.
    """
    x = context.operand(0)
    return (context.add("div", x, binary_scalar(context, "add", context.add("abs", x), 1)),)


def _swish(context: OpContext) -> Sequence[int]:
    """``x * sigmoid(alpha * x)``.

    In: a float tensor. Out: core ``silu`` for alpha = 1, else ``mul``, ``sigmoid``.
    """
    x, alpha = context.operand(0), context.float_attribute("alpha", 1.0)
    if alpha == 1.0:
        return (context.add("silu", x),)
    return (context.add("mul", x, context.add("sigmoid", binary_scalar(context, "mul", x, alpha))),)


def _thresholded_relu(context: OpContext) -> Sequence[int]:
    """``x`` where ``x > alpha``, else 0.

    In: a float tensor. Out: core ``less``, ``select``.
    """
    x = context.operand(0)
    dtype = context.dtype_of(x)
    above = context.add("less", context.scalar(dtype, context.float_attribute("alpha", 1.0)), x)
    return (context.add("select", above, x, context.scalar(dtype, 0)),)


OPS = (
    OnnxOp("Celu", _celu),
    OnnxOp("Elu", _elu),
    OnnxOp("Gelu", _gelu),
    OnnxOp("HardSigmoid", _hard_sigmoid),
    OnnxOp("HardSwish", _hard_swish),
    LEAKY_RELU,
    OnnxOp("Mish", _mish),
    OnnxOp("PRelu", _prelu, since=7),
    OnnxOp("Relu", direct("relu")),
    OnnxOp("Selu", _selu),
    OnnxOp("Shrink", _shrink),
    OnnxOp("Sigmoid", direct("sigmoid")),
    OnnxOp("Softplus", direct("softplus")),
    OnnxOp("Softsign", _softsign),
    OnnxOp("Swish", _swish),
    OnnxOp("ThresholdedRelu", _thresholded_relu),
)

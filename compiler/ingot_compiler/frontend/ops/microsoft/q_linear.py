"""ONNX Runtime's ops on quantized tensors that give quantized ones.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.compose import cast, concat, reshape, scaled, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.channels_last import to_first, to_last
from ingot_compiler.frontend.families.weights.q_linear import dequantized, floats, quantized
from ingot_compiler.frontend.ops.activations import LEAKY_RELU
from ingot_compiler.frontend.ops.along_axis import SOFTMAX
from ingot_compiler.frontend.ops.pooling import AVERAGE_POOL, GLOBAL_AVERAGE_POOL
from ingot_compiler.ir.op_type_error import OpTypeError


def _q_gemm(context: OpContext) -> Sequence[int]:
    """``alpha * A' B' + C`` of quantized matrices; quantized where the result has a scale.

    In: a, b, each with scale and zero point; perhaps C of i32, whose scale is alpha times both;
    perhaps scale and zero point of the result. Out: 8-bit integers, or f32.
    """
    for position in (0, 3):
        if context.rank_of(context.operand(position)) != 2:
            raise OpTypeError("matrices", context.type_of(context.operand(position)))
    transposed = context.bool_attribute("transB")
    a, scale = dequantized(context, 0), context.operand(4)
    axis = 0 if transposed else 1
    b = floats(context, context.operand(3), scale, context.optional(5), axis)
    a = transpose(context, a, (1, 0)) if context.bool_attribute("transA") else a
    b = transpose(context, b, (1, 0)) if transposed else b
    alpha = context.float_attribute("alpha", 1.0)
    y = scaled(context, context.add("matmul", a, b), alpha)
    bias = context.optional(6)
    if bias is not None:
        factor = context.add("mul", reshape(context, context.operand(1), ()), scale)
        wide = context.add("mul", cast(context, bias, "f32"), scaled(context, factor, alpha))
        y = context.add("add", y, wide)
    return (y if context.optional(7) is None else quantized(context, y, 7),)


SIGNATURE = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point? -> C"


def _q_linear_add(context: OpContext) -> Sequence[int]:
    """Sum of two quantized tensors, quantized.

    In: a, b, each with scale and zero point; scale and zero point of the result. Out: 8-bit
    integers.
    """
    total = context.add("add", dequantized(context, 0), dequantized(context, 3))
    return (quantized(context, total, 6),)


_FIRST = 2


def _q_linear_concat(context: OpContext) -> Sequence[int]:
    """Quantized tensors one after the other, quantized.

    In: scale and zero point of the result; operands, each with scale and zero point. Out: 8-bit
    integers.
    """
    count, rest = divmod(len(context.operands) - _FIRST, 3)
    if rest or not count:
        raise OpTypeError("three operands for each tensor", len(context.operands) - _FIRST)
    parts = [dequantized(context, _FIRST + 3 * index) for index in range(count)]
    if context.rank_of(parts[0]) == 0:
        raise OpTypeError("operands of rank >= 1", context.type_of(parts[0]))
    axis = context.axis_attribute(0, context.rank_of(parts[0]))
    return (quantized(context, concat(context, parts, axis), 0),)


def _q_linear_conv(context: OpContext) -> Sequence[int]:
    """ONNX's, of images whose channels may come last.

    In: x[N, C, spatial..] or [N, spatial.., C] and weights with scales and zero points, those of
    the result, perhaps a bias. Out: an 8-bit image of the same form.
    """
    attributes = dict(context.attributes)
    attributes.pop("channels_last", None)
    x, *others = (context.optional(position) for position in range(9))
    if x is None or not context.bool_attribute("channels_last"):
        return results_of(context, "QLinearConv", [x, *others], attributes)
    (result,) = results_of(context, "QLinearConv", [to_first(context, x), *others], attributes)
    return (to_last(context, result),)


def pooled(context: OpContext, pool: Callable[[int], int]) -> int:
    """A pool of the image, whose channels may come last."""
    if not context.bool_attribute("channels_last"):
        return quantized(context, pool(dequantized(context, 0)), 3)
    rank = context.rank_of(context.operand(0))
    if rank < 3:
        raise OpTypeError("rank >= 3", context.type_of(context.operand(0)))
    image = transpose(context, dequantized(context, 0), (0, rank - 1, *range(1, rank - 1)))
    result = transpose(context, pool(image), (0, *range(2, rank), 1))
    return quantized(context, result, 3)


def _q_linear_global_average_pool(context: OpContext) -> Sequence[int]:
    """Mean of a quantized image per channel, quantized.

    In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers.
    """

    def mean(x: int) -> int:
        return GLOBAL_AVERAGE_POOL.translate(replace(context, operands=(x,)))[0]

    return (pooled(context, mean),)


def _q_linear_average_pool(context: OpContext) -> Sequence[int]:
    """Means of windows of a quantized image, quantized.

    In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers.
    """

    def windows(x: int) -> int:
        return AVERAGE_POOL.translate(replace(context, operands=(x,)))[0]

    return (pooled(context, windows),)


def _q_linear_leaky_relu(context: OpContext) -> Sequence[int]:
    """``x`` or ``alpha * x`` of a quantized tensor, quantized.

    In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers.
    """
    (y,) = LEAKY_RELU.translate(replace(context, operands=(dequantized(context, 0),)))
    return (quantized(context, y, 3),)


def _q_linear_mul(context: OpContext) -> Sequence[int]:
    """Product of two quantized tensors, element by element, quantized.

    In: a, b, each with scale and zero point; scale and zero point of the result. Out: 8-bit
    integers.
    """
    product = context.add("mul", dequantized(context, 0), dequantized(context, 3))
    return (quantized(context, product, 6),)


def _q_linear_sigmoid(context: OpContext) -> Sequence[int]:
    """Logistic function of a quantized tensor, quantized.

    In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers.
    """
    return (quantized(context, context.add("sigmoid", dequantized(context, 0)), 3),)


def _q_linear_softmax(context: OpContext) -> Sequence[int]:
    """Softmax of a quantized tensor, quantized.

    In: x with scale and zero point; scale and zero point of the result. Out: 8-bit integers.
    """
    opset = context.int_attribute("opset", 13)
    operands = (dequantized(context, 0),)
    (y,) = SOFTMAX.translate(replace(context, operands=operands, opset=opset))
    return (quantized(context, y, 3),)


def _q_linear_where(context: OpContext) -> Sequence[int]:
    """Elements of one of two quantized tensors, quantized.

    In: a condition; x, y, each with scale and zero point; scale and zero point of the result. Out:
    8-bit integers.
    """
    x, y = dequantized(context, 1), dequantized(context, 4)
    return (quantized(context, context.add("select", context.operand(0), x, y), 7),)


OPS = (
    OnnxOp(
        "QGemm",
        _q_gemm,
        signature="A a_scale a_zero_point B b_scale b_zero_point C? y_scale? y_zero_point? -> Y; "
        "alpha:float transA:int transB:int",
    ),
    OnnxOp("QLinearAdd", _q_linear_add, signature=SIGNATURE),
    OnnxOp(
        "QLinearConcat",
        _q_linear_concat,
        signature="Y_scale Y_zero_point inputs* -> Y; axis!:int",
    ),
    OnnxOp(
        "QLinearConv",
        _q_linear_conv,
        signature="x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B? -> y; "
        "auto_pad:string channels_last:int dilations:ints group:int kernel_shape:ints pads:ints "
        "strides:ints",
    ),
    OnnxOp(
        "QLinearGlobalAveragePool",
        _q_linear_global_average_pool,
        signature="X x_scale x_zero_point y_scale y_zero_point -> Y; channels_last:int",
    ),
    OnnxOp(
        "QLinearAveragePool",
        _q_linear_average_pool,
        signature="X x_scale x_zero_point? y_scale y_zero_point? -> Y; auto_pad:string ceil_mode:int "
        "channels_last:int count_include_pad:int kernel_shape!:ints pads:ints strides:ints",
    ),
    OnnxOp(
        "QLinearLeakyRelu",
        _q_linear_leaky_relu,
        signature="X X_scale X_zero_point? Y_scale Y_zero_point? -> Y; alpha:float",
    ),
    OnnxOp("QLinearMul", _q_linear_mul, signature=SIGNATURE),
    OnnxOp(
        "QLinearSigmoid",
        _q_linear_sigmoid,
        signature="X X_scale X_zero_point? Y_scale Y_zero_point? -> Y",
    ),
    OnnxOp(
        "QLinearSoftmax",
        _q_linear_softmax,
        signature="X X_scale x_zero_point? y_scale y_zero_point -> Y; axis:int opset!:int",
    ),
    OnnxOp(
        "QLinearWhere",
        _q_linear_where,
        signature="condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point -> Z",
    ),
)

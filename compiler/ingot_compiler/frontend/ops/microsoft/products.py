"""ONNX Runtime's products of matrices with what stands before and after.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.as_onnx import as_onnx, results_of
from ingot_compiler.frontend.build.compose import cast, scaled, transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.recurrent.activations import activated, by_name
from ingot_compiler.frontend.families.weights.quantization import along
from ingot_compiler.frontend.ops.mat_mul import product
from ingot_compiler.frontend.ops.microsoft.activations import fast_gelu
from ingot_compiler.frontend.ops.quantized import DYNAMIC_QUANTIZE_LINEAR
from ingot_compiler.frontend.ops.quantized import product as integer_product


def _dynamic_quantize_mat_mul(context: OpContext) -> Sequence[int]:
    """A product whose first operand is quantized by its own range.

    In: a of floats, quantized b with scale, perhaps zero point and bias. Out: f32.
    """
    node = replace(context, operands=(context.operand(0),))
    x, scale, zero = DYNAMIC_QUANTIZE_LINEAR.translate(node)
    b = (context.operand(1), context.operand(2), context.optional(3))
    return (product_of_integers(context, (x, scale, zero), b, context.optional(4)),)


def _fused_gemm(context: OpContext) -> Sequence[int]:
    """ONNX's Gemm and an activation.

    In: two matrices, perhaps C. Out: what Gemm gives, activated.
    """
    operands = [context.operand(0), context.operand(1), context.optional(2)]
    kept = ("alpha", "beta", "transA", "transB")
    own = {name: value for name, value in context.attributes.items() if name in kept}
    (result,) = results_of(context, "Gemm", operands, own)
    return (activated(context, result, *by_name(context)),)


def fused_product(context: OpContext) -> int:
    """``alpha * A' B'`` of the node's operands and attributes."""
    a = _turned(context, context.operand(0), "A")
    b = _turned(context, context.operand(1), "B")
    return scaled(context, product(context, a, b), context.float_attribute("alpha", 1.0))


def _turned(context: OpContext, x: int, name: str) -> int:
    """An operand with its batch in front and its rows and columns as the product takes them."""
    rank = context.rank_of(x)
    order = list(range(rank))
    if rank > 2 and context.bool_attribute(f"transBatch{name}"):
        order = [*order[1:-1], order[0], order[-1]]
    if rank > 1 and context.bool_attribute(f"trans{name}"):
        order = [*order[:-2], order[-1], order[-2]]
    return transpose(context, x, order)


def _fused_mat_mul(context: OpContext) -> Sequence[int]:
    """Alpha times the product of two tensors, each perhaps transposed.

    In: two tensors, vectors or more. Out: what ONNX's MatMul becomes, core ``transpose``, ``mul``.

    ``transBatchA`` says that the rows of A are its first axis, before those of the batch.
    """
    return (fused_product(context),)


def _fused_mat_mul_activation(context: OpContext) -> Sequence[int]:
    """FusedMatMul and an activation.

    In: two tensors. Out: what FusedMatMul gives, activated.
    """
    return (activated(context, fused_product(context), *by_name(context)),)


def _gemm_fast_gelu(context: OpContext) -> Sequence[int]:
    """The tanh approximation of Gelu of a product.

    In: a tensor, a matrix, perhaps a bias. Out: core ``matmul``, ``add``, ``gelu``.
    """
    x = product(context, context.operand(0), context.operand(1))
    return (fast_gelu(context, x, context.optional(2)),)


def _mat_mul_integer16(context: OpContext) -> Sequence[int]:
    """The product of matrices of 16-bit integers, in i32.

    In: a, b. Out: i32, modulo 2^32.
    """
    operands = (cast(context, context.operand(position), "i32") for position in (0, 1))
    return (as_onnx(context, "MatMul", *operands),)


def product_of_integers(
    context: OpContext, a: Sequence[int | None], b: Sequence[int | None], bias: int | None
) -> int:
    """The product of ``(integers, scale, zero point)`` twice: i32 times both scales."""
    (x, x_scale, x_zero), (w, w_scale, w_zero) = a, b
    assert x is not None
    assert w is not None
    assert x_scale is not None
    assert w_scale is not None
    total = integer_product(context, x, x_zero, w, w_zero)
    rank = context.rank_of(total)
    last = max(rank - 1, 0)
    rows = along(context, x_scale, total, max(rank - 2, 0))
    factor = context.add("mul", rows, along(context, w_scale, total, last))
    y = context.add("mul", cast(context, total, "f32"), factor)
    return y if bias is None else context.add("add", y, bias)


def _mat_mul_integer_to_float(context: OpContext) -> Sequence[int]:
    """Product of quantized matrices, as floats.

    In: a, b, their scales, perhaps their zero points and a bias. Out: f32.
    """
    a, b, a_scale, b_scale = (context.operand(position) for position in range(4))
    left, right = (a, a_scale, context.optional(4)), (b, b_scale, context.optional(5))
    return (product_of_integers(context, left, right, context.optional(6)),)


def _transpose_mat_mul(context: OpContext) -> Sequence[int]:
    """FusedMatMul under its older name.

    In: two tensors. Out: what FusedMatMul gives.
    """
    return (fused_product(context),)


OPS = (
    OnnxOp(
        "DynamicQuantizeMatMul",
        _dynamic_quantize_mat_mul,
        signature="A B b_scale b_zero_point? bias? -> Y",
    ),
    OnnxOp(
        "FusedGemm",
        _fused_gemm,
        signature="A B C? -> Y; activation:string activation_alpha:float activation_beta:float "
        "activation_gamma:float alpha:float beta:float transA:int transB:int",
    ),
    OnnxOp(
        "FusedMatMul",
        _fused_mat_mul,
        signature="A B -> Y; alpha:float transA:int transB:int transBatchA:int transBatchB:int",
    ),
    OnnxOp(
        "FusedMatMulActivation",
        _fused_mat_mul_activation,
        signature="A B -> Y; activation!:string activation_alpha:float activation_axis:int activation_beta:float "
        "activation_gamma:float alpha:float transA:int transB:int transBatchA:int transBatchB:int",
    ),
    OnnxOp("GemmFastGelu", _gemm_fast_gelu, signature="X W bias? -> Y"),
    OnnxOp("MatMulInteger16", _mat_mul_integer16, signature="A B -> Y"),
    OnnxOp(
        "MatMulIntegerToFloat",
        _mat_mul_integer_to_float,
        signature="A B a_scale b_scale a_zero_point? b_zero_point? bias? -> Y",
    ),
    OnnxOp(
        "TransposeMatMul",
        _transpose_mat_mul,
        signature="A B -> Y; alpha:float transA:int transB:int",
    ),
)

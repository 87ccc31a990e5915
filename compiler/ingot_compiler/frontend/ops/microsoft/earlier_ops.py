"""ONNX Runtime's own forms of ops that ONNX has today, or that are a few of ONNX's.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx, results_of
from ingot_compiler.frontend.build.compose import (
    as_vector,
    binary_scalar,
    cast,
    iota,
    reduce,
    reshape,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_from
from ingot_compiler.frontend.ops.quantized import DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.op_type_error import OpTypeError, require


def _c_dist(context: OpContext) -> Sequence[int]:
    """Distances between the rows of two matrices.

    In: A[M, N], B[K, N]. Out: [M, K] from core ``sub``, ``mul``, ``reduce``, ``sqrt``.
    """
    a, b = context.operand(0), context.operand(1)
    if context.rank_of(a) != 2 or context.rank_of(b) != 2:
        raise OpTypeError("matrices", context.type_of(a))
    allowed = ("euclidean", "sqeuclidean")
    metric = context.string_attribute("metric", "sqeuclidean", allowed)
    apart = context.add("sub", unsqueeze(context, a, (1,)), unsqueeze(context, b, (0,)))
    squares = reduce(context, context.add("mul", apart, apart), "sum", (2,))
    return (context.add("sqrt", squares) if metric == "euclidean" else squares,)


def _expand_dims(context: OpContext) -> Sequence[int]:
    """ONNX's Unsqueeze of one axis.

    In: a tensor, the axis. Out: what Unsqueeze gives.
    """
    axis = as_vector(context, cast(context, context.operand(1), "i64"))
    return (as_onnx(context, "Unsqueeze", context.operand(0), axis),)


def _gather_nd(context: OpContext) -> Sequence[int]:
    """ONNX's own op of opset 11.

    In: a tensor, indices. Out: what ONNX's GatherND gives.
    """
    return (as_onnx(context, "GatherND", context.operand(0), context.operand(1), opset=11),)


def _grid_sample(context: OpContext) -> Sequence[int]:
    """ONNX's own op of opset 16.

    In: an image, a grid. Out: what ONNX's GridSample gives.
    """
    operands = [context.operand(0), context.operand(1)]
    return results_of(context, "GridSample", operands, context.attributes, opset=16)


def _pad(context: OpContext) -> Sequence[int]:
    """ONNX's own op of opset 11.

    In: a tensor, pads in one row or as a vector, perhaps a value. Out: what ONNX's Pad gives.
    """
    pads = context.operand(1)
    if context.rank_of(pads) == 2:
        pads = reshape(context, pads, (context.type_of(pads).element_count,))
    mode = context.string_attribute("mode", "constant")
    return (
        as_onnx(context, "Pad", context.operand(0), pads, context.optional(2), opset=11, mode=mode),
    )


def _range(context: OpContext) -> Sequence[int]:
    """ONNX's own op, whose step may be absent.

    In: start, limit, perhaps a step, each one element. Out: what ONNX's Range gives.
    """
    start, delta = context.operand(0), context.optional(2)
    if delta is None:
        delta = context.scalar(context.dtype_of(start), 1)
    return (as_onnx(context, "Range", start, context.operand(1), delta),)


def _trilu(context: OpContext) -> Sequence[int]:
    """ONNX's own op.

    In: x[.., R, C], perhaps the diagonal k. Out: what ONNX's Trilu gives.
    """
    upper = context.int_attribute("upper", 1)
    return (as_onnx(context, "Trilu", context.operand(0), context.optional(1), upper=upper),)


def _unfold_tensor(context: OpContext) -> Sequence[int]:
    """All slices of one size along an axis, as a further last axis.

    In: x. Out: ``gather`` of the places of all slices.
    """
    x = context.operand(0)
    rank = len(sizes_from(context, x, 1))
    size, step = context.int_attribute("size", 0), context.int_attribute("step", 1)
    axis = context.int_attribute("dim", -1)
    require(size > 0 and step > 0, "a size and a step above 0", f"{size} and {step}")
    require(-rank <= axis < rank, f"a dim within {rank} dimensions", str(axis))
    axis %= rank
    count = dim_floordiv(context.shape_of(x)[axis] - size, step) + 1
    firsts = reshape(context, binary_scalar(context, "mul", iota(context, count), step), (count, 1))
    places = context.add("add", firsts, reshape(context, iota(context, size), (1, size)))
    found = as_onnx(context, "Gather", x, places, axis=axis)
    order = [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1]
    return (transpose(context, found, order),)


def _unique(context: OpContext) -> Sequence[int]:
    """ONNX's own op in the order of the input.

    In: a vector. Out: values, for each element the place of its value, counts.
    """
    wanted = (True, False, context.wants(1), context.wants(2))
    operands = [context.operand(0)]
    found = results_of(context, "Unique", operands, {"sorted": 0}, wanted=wanted)
    return found[0], *found[2:]


OPS = (
    OnnxOp("CDist", _c_dist, signature="A B -> C; metric:string"),
    # ONNX's, for element types that ONNX's had not yet.
    OnnxOp(
        "DequantizeLinear",
        DEQUANTIZE_LINEAR.translate,
        signature="x x_scale x_zero_point? -> y; axis:int",
    ),
    OnnxOp("ExpandDims", _expand_dims, signature="X axis -> Y"),
    OnnxOp("GatherND", _gather_nd, signature="data indices -> output"),
    OnnxOp(
        "GridSample",
        _grid_sample,
        signature="X Grid -> Y; align_corners:int mode:string padding_mode:string",
    ),
    OnnxOp("Pad", _pad, signature="data pads value? -> output; mode:string"),
    # ONNX's, for element types that ONNX's had not yet.
    OnnxOp(
        "QuantizeLinear",
        QUANTIZE_LINEAR.translate,
        signature="x y_scale y_zero_point? -> y; axis:int",
    ),
    OnnxOp("Range", _range, signature="start limit delta? -> Y"),
    OnnxOp("Trilu", _trilu, signature="X k? -> Y; upper:int"),
    OnnxOp("UnfoldTensor", _unfold_tensor, signature="input -> output; dim:int size!:int step:int"),
    OnnxOp("Unique", _unique, signature="x -> y idx counts"),
)

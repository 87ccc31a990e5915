"""ONNX Runtime MatMulNBits: a product with weights of a few bits, scaled in blocks along the depth.

In: A, bytes of numbers [N, blocks, bytes of a block], scales, perhaps zero points and a bias. Out:
core ``matmul_blocks``; where blocks do not divide the depth, numbers have other bits than 4 and 8,
or weights are no constants, ``matmul`` of the dequantized weights. An ``accuracy_level`` of 4
allows activations of 8 bits. Not done here: ``g_idx`` (refused).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reshape, slice_axis, transpose
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_from, with_size
from ingot_compiler.frontend.families.weights.block_weights import is_stored, multiply
from ingot_compiler.frontend.families.weights.nibbles import spread
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops.block_products import BITS, WORD_BITS
from ingot_runtime.lazy_dataclass import dataclass

_LEVEL_OF_BYTES = 4


@dataclass(frozen=True, slots=True)
class _Shape:
    """The matrix [depth, columns] in ``blocks`` blocks of ``block`` numbers along the depth."""

    depth: int
    columns: int
    bits: int
    block: int

    @property
    def blocks(self) -> int:
        """Blocks of a column, the last one perhaps not whole."""
        return -(-self.depth // self.block)


def _translate(context: OpContext) -> Sequence[int]:
    shape = _shape(context)
    if context.optional(4) is not None:
        raise Unsupported("g_idx, an order of the depth")
    a, numbers = context.operand(0), context.operand(1)
    sizes_from(context, a, 2)
    a = with_size(context, a, -1, shape.depth, f"A of depth K = {shape.depth}")
    bytes_count = shape.blocks * shape.block * shape.bits // 8
    numbers = _sized(context, numbers, (shape.columns, bytes_count), "B")
    scale = _sized(context, context.operand(2), (shape.columns, shape.blocks), "scales")
    result = _product(context, a, numbers, scale, shape)
    bias = context.optional(5)
    return (result if bias is None else context.add("add", result, bias),)


def _shape(context: OpContext) -> _Shape:
    depth, columns, bits, block = (
        context.int_attribute(name, default)
        for name, default in (("K", 0), ("N", 0), ("bits", 4), ("block_size", 0))
    )
    if bits not in (2, 4, 8):
        raise Unsupported(f"numbers of {bits} bits")
    if block < 16 or block & (block - 1):
        raise OpTypeError("block_size to be a power of 2, at least 16", block)
    if depth < 1 or columns < 1:
        raise OpTypeError("K and N to be at least 1", f"{depth} and {columns}")
    return _Shape(depth, columns, bits, block)


def _sized(context: OpContext, x: int, shape: tuple[int, int], name: str) -> int:
    """An operand of so many elements, in a shape of its own."""
    count, wanted = context.type_of(x).element_count, shape[0] * shape[1]
    if isinstance(count, int) and count != wanted:
        raise OpTypeError(f"{name} of {wanted} elements", context.type_of(x))
    return reshape(context, x, shape)


def _product(context: OpContext, a: int, numbers: int, scale: int, shape: _Shape) -> int:
    zero = context.optional(3)
    parts = [context.operand(1), context.operand(2), *(() if zero is None else (zero,))]
    is_whole = shape.depth % shape.block == 0 and shape.block * shape.bits % WORD_BITS == 0
    is_float_zero = zero is not None and context.dtype_of(zero) != "u8"
    if not all(is_stored(context, part) for part in parts) or shape.bits not in BITS:
        is_whole = False
    if not is_whole or is_float_zero:
        return context.add("matmul", a, _dequantized(context, numbers, scale, shape, a))
    operands = [numbers, scale]
    if zero is not None:
        operands.append(_zero_codes(context, zero, shape))
    rounded = context.int_attribute("accuracy_level", 0) == _LEVEL_OF_BYTES
    return multiply(context, a, operands, shape.bits, shape.block, signed=False, rounded=rounded)


def _zero_codes(context: OpContext, zero: int, shape: _Shape) -> int:
    """One zero point in each byte: [N, blocks]; the bytes of a column begin anew."""
    size = (shape.blocks * shape.bits + 7) // 8
    flat = _sized(context, zero, (shape.columns, size), "zero_points")
    return slice_axis(context, spread(context, flat, shape.bits), 1, 0, shape.blocks)


def _dequantized(context: OpContext, numbers: int, scale: int, shape: _Shape, a: int) -> int:
    """The weights [K, N] as floats."""
    whole = (shape.columns, shape.blocks, shape.block)
    codes = reshape(context, spread(context, numbers, shape.bits), whole)
    wide, each = cast(context, codes, "f32"), (shape.columns, shape.blocks, 1)
    zero = context.optional(3)
    if zero is None:
        offset = context.scalar("f32", 1 << (shape.bits - 1))
    elif context.dtype_of(zero) == "u8":
        offset = reshape(context, cast(context, _zero_codes(context, zero, shape), "f32"), each)
    else:
        sized = _sized(context, zero, (shape.columns, shape.blocks), "zero_points")
        offset = reshape(context, cast(context, sized, "f32"), each)
    factor = reshape(context, cast(context, scale, "f32"), each)
    weights = context.add("mul", context.add("sub", wide, offset), factor)
    flat = reshape(context, weights, (shape.columns, shape.blocks * shape.block))
    matrix = transpose(context, slice_axis(context, flat, 1, 0, shape.depth), (1, 0))
    return cast(context, matrix, context.dtype_of(a))


OPS = (
    OnnxOp(
        "MatMulNBits",
        _translate,
        signature="A B scales zero_points? g_idx? bias? -> Y; "
        "K!:int N!:int bits:int block_size!:int accuracy_level:int weight_prepacked:int",
    ),
)

"""ONNX Runtime QMoE: a mixture of experts whose weights are integers of 4 or 8 bits, scaled in
columns or in blocks along the depth.

In: tokens [T, H] or [B, S, H], scores [T, E], for each expert rows of two or three matrices as
bytes, scales, perhaps zero points and biases; perhaps other scores for the shares. Out: what
``experts.mixture`` gives. An ``accuracy_level`` of 4 allows activations of 8 bits.
``use_sparse_mixer`` changes nothing, as in ONNX Runtime on processors; without other scores,
shares are a softmax of those of the chosen experts, as there. Not done here: floats of 4 and 8
bits, numbers of 2 and 3 bits, packed layouts of GPUs (refused).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, cast, reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import known_sizes, with_size
from ingot_compiler.frontend.families.tensors.experts import (
    Gate,
    Product,
    activation_of,
    bias_of,
    in_halves,
    mixture,
    require_each,
    route,
    with_bias,
)
from ingot_compiler.frontend.families.weights.block_weights import is_stored
from ingot_compiler.frontend.families.weights.column_weights import block_of_column
from ingot_compiler.frontend.families.weights.nibbles import spread
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops.block_products import BITS, WORD_BITS
from ingot_runtime.lazy_dataclass import dataclass

_FIRST, _LAST, _SECOND, _ZEROS, _MIXING = 2, 5, 8, 11, 14
_OPERANDS_OF_EACH = 3
_LEVEL_OF_BYTES = 4


def _translate(context: OpContext) -> Sequence[int]:
    if context.string_attribute("quant_type", "int") != "int":
        raise Unsupported("weights that are floats of a few bits")
    if context.int_attribute("weights_prepacked", -1) == 1:
        raise Unsupported("weights that are packed for a GPU")
    activation = activation_of(context)
    require_each(context, context.operand(1), range(_FIRST, _MIXING))
    routing = route(context, context.operand(1), context.optional(_MIXING), of_chosen=True)
    second = None if context.optional(_SECOND) is None else _product(context, _SECOND)
    products = _product(context, _FIRST, activation), second, _product(context, _LAST)
    return (mixture(context, routing, activation, products),)


def _product(context: OpContext, position: int, activation: str | Gate = "identity") -> Product:
    """The product by the numbers at an operand, whose scales and biases follow them."""
    matrices = _matrices(context, position)
    operands = [in_halves(context, part, activation) for part in matrices.operands]
    bias = bias_of(context, position + 2, activation)
    depth, bits, block = matrices.depth, matrices.bits, matrices.block
    rounded = context.int_attribute("accuracy_level", 0) == _LEVEL_OF_BYTES

    def product(rows: int, experts: int) -> int:
        wide = cast(context, with_size(context, rows, 1, depth, f"depth {depth}"), "f32")
        table = {"bits": bits, "block": block, "signed": False, "rounded": rounded}
        results = context.add("grouped_matmul_blocks", wide, experts, *operands, **table)
        return with_bias(context, cast(context, results, context.dtype_of(rows)), bias, experts)

    return product


@dataclass(frozen=True, slots=True)
class _Matrices:
    """``operands``: numbers u8 [E, N, bytes], scales and perhaps zero points [E, N, blocks]."""

    operands: tuple[int, ...]
    depth: int
    bits: int
    block: int


def _matrices(context: OpContext, position: int) -> _Matrices:
    number = (position - _FIRST) // _OPERANDS_OF_EACH
    bits = context.int_attribute("expert_weight_bits", 4)
    bits = context.int_attribute(f"fc{number + 1}_expert_weight_bits", bits)
    if bits not in BITS:
        raise Unsupported(f"numbers of {bits} bits")
    numbers, scale = context.operand(position), context.operand(position + 1)
    zero = context.optional(_ZEROS + number)
    parts = (numbers, scale) if zero is None else (numbers, scale, zero)
    if not all(is_stored(context, part) for part in parts):
        raise Unsupported("weights that are no constants")
    count, columns, size = known_sizes(context, numbers, 3)
    depth = size * 8 // bits
    block = context.int_attribute("block_size", 0) or _block_of_column(depth, bits)
    if block < 1 or depth % block or block * bits % WORD_BITS:
        raise OpTypeError(f"a block_size that divides {depth} into whole words", block)
    shape = count, columns, depth // block
    operands = [numbers, _by_block(context, scale, shape)]
    if zero is not None:
        codes = spread(context, zero, bits)
        is_by_block = context.rank_of(zero) == len(shape)
        axis, kept = (2, shape[2]) if is_by_block else (1, columns)
        operands.append(_by_block(context, slice_axis(context, codes, axis, 0, kept), shape))
    return _Matrices(tuple(operands), depth, bits, block)


def _block_of_column(depth: int, bits: int) -> int:
    """Columns that have one scale are read in blocks, too."""
    block = block_of_column(depth)
    if block is None:
        raise Unsupported(f"columns of {depth} numbers of {bits} bits with one scale")
    return block


def _by_block(context: OpContext, part: int, shape: tuple[int, int, int]) -> int:
    """Parameters of blocks; those of columns are for each of their blocks."""
    if context.rank_of(part) == len(shape):
        return part
    return broadcast_to(context, reshape(context, part, (*shape[:2], 1)), shape)


OPS = (
    OnnxOp(
        "QMoE",
        _translate,
        signature="input router_probs fc1_experts_weights fc1_scales? fc1_experts_bias? "
        "fc2_experts_weights fc2_scales? fc2_experts_bias? fc3_experts_weights? fc3_scales? "
        "fc3_experts_bias? fc1_zero_points? fc2_zero_points? fc3_zero_points? router_weights? "
        "fc1_global_scale? fc2_global_scale? fc1_act_scale? fc2_act_scale? fc1_act_block_scale? "
        "fc2_act_block_scale? -> output; k:int activation_type:string activation_alpha:float "
        "activation_beta:float accuracy_level:int block_size:int expert_weight_bits:int "
        "fc1_expert_weight_bits:int fc2_expert_weight_bits:int fc3_expert_weight_bits:int "
        "normalize_routing_weights:int quant_type:string swiglu_fusion:int swiglu_limit:float "
        "swiglu_limit_after_activation:int use_sparse_mixer:int weights_prepacked:int",
    ),
)

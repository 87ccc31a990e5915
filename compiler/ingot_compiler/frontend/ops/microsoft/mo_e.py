"""ONNX Runtime MoE: a mixture of experts, each two products with an activation between them.

In: tokens [T, H] or [B, S, H], scores [T, E], for each expert rows of two or three matrices and
perhaps biases. Out: what ``experts.mixture`` gives. ``use_sparse_mixer`` changes nothing, as in
ONNX Runtime on processors. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import transpose
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
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

_FIRST, _LAST, _SECOND, _END = 2, 4, 6, 8


def _translate(context: OpContext) -> Sequence[int]:
    activation = activation_of(context)
    require_each(context, context.operand(1), range(_FIRST, _END))
    routing = route(context, context.operand(1), None, of_chosen=False)
    second = None if context.optional(_SECOND) is None else _product(context, _SECOND)
    products = _product(context, _FIRST, activation), second, _product(context, _LAST)
    return (mixture(context, routing, activation, products),)


def _product(context: OpContext, position: int, activation: str | Gate = "identity") -> Product:
    """The product by the matrices at an operand, whose biases follow them."""
    weights = context.operand(position)
    sizes_of(context, weights, 3)
    weights = in_halves(context, weights, activation)
    bias = bias_of(context, position + 1, activation)
    matrices = transpose(context, weights, (0, 2, 1))

    def product(rows: int, experts: int) -> int:
        results = context.add("grouped_matmul", rows, experts, matrices)
        return with_bias(context, results, bias, experts)

    return product


OPS = (
    OnnxOp(
        "MoE",
        _translate,
        signature="input router_probs fc1_experts_weights fc1_experts_bias? fc2_experts_weights "
        "fc2_experts_bias? fc3_experts_weights? fc3_experts_bias? -> output; k:int "
        "activation_type:string activation_alpha:float activation_beta:float "
        "normalize_routing_weights:int swiglu_fusion:int swiglu_limit:float "
        "swiglu_limit_after_activation:int use_sparse_mixer:int",
    ),
)

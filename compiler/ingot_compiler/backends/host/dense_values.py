"""Values of which few elements are zero, by the ops that make them.

In: a value, what is known of the graph. Out: whether it is dense. Not done here: what follows
(``choose_winograd``).

Products, normalisations and smooth activations give zeros by accident alone; ReLU and its kin on
purpose. An input of the model may be anything.
"""

from __future__ import annotations

from ingot_compiler.lowering.fusion.values import FusionValues

_MAKES_DENSE = frozenset(
    (
        "attention",
        "batch_norm",
        "conv",
        "conv_transpose",
        "exp",
        "gelu",
        "group_norm",
        "layer_norm",
        "matmul",
        "matmul_blocks",
        "rms_norm",
        "sigmoid",
        "silu",
        "softmax",
        "softplus",
        "tanh",
    )
)
_KEEPS_DENSE = frozenset(
    (
        "average_pool",
        "cast",
        "copy",
        "div",
        "max_pool",
        "neg",
        "reshape",
        "resize",
        "slice",
        "transpose",
    )
)
"""As the first operand."""
_STEPS_MAX = 16  # back to the ops that decide: further ones are unknown


def is_dense(values: FusionValues, value: int, steps: int = _STEPS_MAX) -> bool:
    """Whether the value is dense for all that is known of it."""
    node = values.maker(value)
    if node is None or steps == 0:
        return False
    if node.op in _MAKES_DENSE:
        return True
    if node.op in _KEEPS_DENSE:
        return is_dense(values, node.operands[0], steps - 1)
    computed = [operand for operand in node.operands if not values.is_constant(operand)]
    found = (is_dense(values, operand, steps - 1) for operand in computed)
    if node.op in ("add", "sub"):
        return any(found)
    return node.op in ("concat", "mul") and bool(computed) and all(found)

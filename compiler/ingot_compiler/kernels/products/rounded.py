"""Which products round their factors to bf16, and the rounded values.

In: facts of a product. Out: a method. Not done here: the rounded values (``anchors``), weights
(``packed_weights``), the products themselves (``conv``, ``matmul``).

With ``--precision bf16`` the products of f32 by constant weights do that, by matrices and in
convolutions. Those by Winograd's algorithm are of f32, where they are faster, and so are depthwise
ones, whose time goes elsewhere, and those of few channels that leave one without its pair: the
first one of ResNet-50, of 3 channels, takes half as long in f32 (Emerald Rapids).
"""

from __future__ import annotations

from ingot_compiler.ir.precision import BF16
from ingot_compiler.kernels.products.algorithm import PANELS, ProductFacts, Wishes
from ingot_compiler.kernels.products.winograd import offer_winograd
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kernel_target import KernelTarget

_ROUNDED = ("f32", "bf16")
_FEW_CHANNELS = 16

BF16_OF_CONV, BF16_OF_MATRIX = "conv_bf16", "matmul_bf16"
"""The kinds of kernels."""


def rounded_matrix(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """Products by a matrix that the compiler knows."""
    if not _may_round(facts, wishes, target) or facts.weights.rank != 2:
        return None
    return Method(BF16_OF_MATRIX, PANELS)


def rounded_convolution(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """Convolutions that are direct."""
    is_depthwise = facts.node.integer("groups") != 1 and facts.weights.shape[1] == 1
    channels = facts.weights.shape[1]
    is_uneven = isinstance(channels, int) and channels < _FEW_CHANNELS and channels % 2 == 1
    if not _may_round(facts, wishes, target) or is_depthwise or is_uneven:
        return None
    if offer_winograd(facts, wishes, target) is not None:
        return None
    return Method(BF16_OF_CONV, PANELS, facts.weights.shape)


def _may_round(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> bool:
    is_fit = facts.has_constant_weights and facts.x.dtype in _ROUNDED
    return wishes.precision == BF16 and is_fit and target.multiplies_bf16

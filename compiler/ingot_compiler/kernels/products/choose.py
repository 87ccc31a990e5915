"""Which algorithm computes a product: the first of a list that offers a method.

In: facts, wishes, a target. Out: a ``Method``. Not done here: what an algorithm serves (its own file).

To add one, write a file beside this one and a line in ``ALGORITHMS``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import dropwhile

from ingot_compiler.kernels.products.algorithm import Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.conv import CONV, CONV_BF16, CONV_PARTS, CONV_STRASSEN
from ingot_compiler.kernels.products.conv_few_channels import CONV_FEW_CHANNELS
from ingot_compiler.kernels.products.conv_rows import CONV_ROWS
from ingot_compiler.kernels.products.depthwise import DEPTHWISE
from ingot_compiler.kernels.products.depthwise_plane import DEPTHWISE_PLANE
from ingot_compiler.kernels.products.grouped_matmul import GROUPED_MATMUL
from ingot_compiler.kernels.products.grouped_matmul_blocks import GROUPED_MATMUL_BLOCKS
from ingot_compiler.kernels.products.matmul import (
    MATMUL,
    MATMUL_BF16,
    MATMUL_PARTS,
    MATMUL_STRASSEN,
)
from ingot_compiler.kernels.products.matmul_blocks import MATMUL_BLOCKS
from ingot_compiler.kernels.products.tuned import METHODS_OF, no_method_error
from ingot_compiler.kernels.products.winograd import BY_WINOGRAD
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kernel_target import KernelTarget

ALGORITHMS: Mapping[str, tuple[Algorithm, ...]] = {
    "conv": (
        CONV_BF16,
        CONV_ROWS,
        BY_WINOGRAD,
        DEPTHWISE_PLANE,
        DEPTHWISE,
        CONV_FEW_CHANNELS,
        CONV_PARTS,
        CONV_STRASSEN,
        CONV,
    ),
    "grouped_matmul": (GROUPED_MATMUL,),
    "grouped_matmul_blocks": (GROUPED_MATMUL_BLOCKS,),
    "matmul": (MATMUL_BF16, MATMUL_PARTS, MATMUL_STRASSEN, MATMUL),
    "matmul_blocks": (MATMUL_BLOCKS,),
    "matmul_integer": (MATMUL,),
}
"""By op, the most wanted first; the last one serves always."""
PRODUCT_KINDS = {
    kind.name: kind
    for each in ALGORITHMS.values()
    for algorithm in each
    for kind in algorithm.kinds
}


def choose_product(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """The method of a product; None: it depends on how the first factor lies, which the caller lays
    out as ``facts.image``, and asks again, with facts that are else the same: those that have
    declined without it are not asked twice.

    Raises:
        UserError: somebody names a method for it that it cannot run by.
    """
    op, is_laid_out, wanted = facts.node.op, facts.image is not None, wishes.of_layer
    own, others = _by_wish(op, wanted or wishes.of_all)
    for algorithm in dropwhile(lambda each: is_laid_out and not each.reads_layout, (*own, *others)):
        if algorithm.reads_layout and not is_laid_out:
            return None
        method = algorithm.offer(facts, wishes, target)
        if wanted and algorithm in own and (method is None or method.kind != wanted):
            raise no_method_error(facts.node, wanted, METHODS_OF[op][:1])
        if method is not None:
            return method
    raise AssertionError(op)


def _by_wish(op: str, wanted: str | None) -> tuple[Sequence[Algorithm], Sequence[Algorithm]]:
    """The algorithm of a method that somebody names, which is asked before all others, and these:
    where the direct one is named, none that can be named."""
    algorithms, names = ALGORITHMS[op], METHODS_OF.get(op, ())
    if wanted not in names:
        return (), algorithms
    named = [each for each in algorithms[:-1] if any(name in each for name in names)]
    own = [each for each in named if wanted in each]
    return own, [each for each in algorithms if each not in (own or named)]

"""The hook ``product_share`` of the host's back end: which share of an op's products its kernels
really compute, for the predictions of ``--place auto``.

In: a node and its setting. Out: a share of 1. Not done here: what the products take
(``Backend.costs``), the choice between algorithms (``products``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.precision import F32, SPEED
from ingot_compiler.kernels.machines import VECTOR_MACHINE
from ingot_compiler.kernels.products.algorithm import ProductFacts, Wishes
from ingot_compiler.kernels.products.dense_values import is_dense
from ingot_compiler.kernels.products.winograd_cost import cycle_share
from ingot_compiler.placement.op_work import Setting
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _PlacedValues:
    """Values as they are known before fusion."""

    setting: Setting

    def maker(self, value: int) -> Node | None:
        return self.setting.makers.get(value)

    def is_constant(self, value: int) -> bool:
        return value in self.setting.constants


def product_share(node: Node, setting: Setting) -> float:
    """Less than 1 where a convolution runs by Winograd's algorithm on the level of the processor
    for which there are rates, without ``--precision fast``."""
    if node.op != "conv" or node.operands[1] not in setting.constants:
        return 1.0
    x, weights, result = (
        setting.graph.types[value] for value in (*node.operands[:2], *node.results)
    )
    dense = is_dense(_PlacedValues(setting), node.operands[0])
    facts = ProductFacts(node, x, weights, result, has_constant_weights=True, is_dense=dense)
    return cycle_share(facts, Wishes(F32, SPEED), VECTOR_MACHINE)

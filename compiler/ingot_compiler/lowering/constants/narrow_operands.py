"""Operands of elementwise ops that are dequantized integers of 8 bits: kernels compute them from the
integers, so that no bundle stores them in f32.

In: a graph, the values that could be constants. Out: those that are left to the kernels. Not done
here: what could be a constant (``constant_expression``), factors of products
(``widened_factors``).

A table of positions or a mask that a tool quantized has a scale of its own in each layer: one for
all of f32 would have four times its bytes, and those of a layer as many times as there are layers.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.traits import Trait
from ingot_runtime.lazy_dataclass import dataclass

_LEAST_BYTES = 1 << 15  # below it a bundle is as large, but for its pages
_SHARE = 8  # of a value's elements: what has no more is read
_OPS_MAX = 4  # a cast, a zero point, a scale, that of the next integers
_SIMPLE = Trait.ELEMENTWISE | Trait.EXACT


def narrow_operands(graph: Graph, folded: AbstractSet[int]) -> frozenset[int]:
    """Values of 32 KiB and more that only elementwise ops of a run read, and what is computed for
    them from integers; nothing that another constant needs."""
    if all(graph.types[value].dtype not in BYTES for value in folded):
        return frozenset()
    values = _Values(graph, folded, graph.users(), graph.producers())
    found = set[int]()
    for value in folded:
        if values.is_operand(value):
            found |= values.computed(value, _OPS_MAX)
    while needed := {value for value in found if values.is_needed(value, found)}:
        found -= needed
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Values:
    graph: Graph
    folded: AbstractSet[int]
    users: dict[int, list[int]]
    makers: dict[int, int]

    def is_operand(self, value: int) -> bool:
        """Whether a large value that could be a constant is read by elementwise ops alone."""
        size_bytes = self.graph.types[value].size_bytes
        is_large = isinstance(size_bytes, int) and size_bytes >= _LEAST_BYTES
        return is_large and not self.is_needed(value, frozenset())

    def is_needed(self, value: int, left: AbstractSet[int]) -> bool:
        """Whether somebody wants a constant: an output, an op with loops of its own, or another
        constant than those that are ``left``."""
        readers = [self.graph.nodes[user] for user in self.users.get(value, ())]
        return value in self.graph.outputs or not all(
            Trait.ELEMENTWISE in OPS_BY_NAME[node.op].traits
            and (node.results[0] in left or node.results[0] not in self.folded)
            for node in readers
        )

    def computed(self, value: int, ops_max: int) -> frozenset[int]:
        """A value, and what it is computed from back to integers of 8 bits; nothing where that takes
        more than a few simple ops."""
        node = self.graph.nodes[self.makers[value]]
        if not ops_max or _SIMPLE not in OPS_BY_NAME[node.op].traits:
            return frozenset()
        large = [each for each in {*node.operands} if self._is_as_large(each, value)]
        if len(large) != 1:
            return frozenset()
        if self.graph.types[large[0]].dtype in BYTES:
            return frozenset((value,))
        own = self.computed(large[0], ops_max - 1)
        return own | {value} if own else own

    def _is_as_large(self, operand: int, value: int) -> bool:
        own, result = (self.graph.types[each].element_count for each in (operand, value))
        assert isinstance(own, int)
        assert isinstance(result, int)
        return own * _SHARE > result

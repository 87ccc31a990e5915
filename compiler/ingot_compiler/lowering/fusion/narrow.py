"""Where a tree is narrow: at a value of 8- or 16-bit integers from which few operations lead to the
result of the tree.

In: a deferred tree. Out: ``NarrowTail``. Not done here: when a narrow value is stored in place of
the result (``fuser``).

A dequantized value has four bytes for one of its integers, and is computed from them by less than
it costs to store and load: whoever reads it may compute it again.
"""

from __future__ import annotations

from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import SIGNED, UNSIGNED, dtype_size_bits
from ingot_compiler.lowering.fusion.deferred import Deferred
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_runtime.lazy_dataclass import dataclass

_SIMPLE = Trait.ELEMENTWISE | Trait.EXACT  # arithmetic, no series
_NODES_MAX = 4  # beside literals: a cast, a zero point, a scale, a cast to f16
_BITS_MAX = 16


@dataclass(frozen=True, slots=True)
class NarrowTail:
    """``source``: the integers; ``nodes``: those that compute the result from it and from
    ``others``, which are smaller tensors."""

    source: int
    nodes: tuple[int, ...]
    others: tuple[int, ...]


def narrow_tail(values: FusionValues, tree: Deferred, value: int) -> NarrowTail | None:
    """The tail of ``value``'s tree; None where there is no narrow value in it."""
    makers = {result: index for index in tree.nodes for result in values.node(index).results}
    sources, nodes, others = set[int](), set[int](), set[int]()
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if _is_narrow(values, current, value):
            sources.add(current)
        elif current in makers:
            node = values.node(makers[current])
            traits = OPS_BY_NAME[node.op].traits
            if node.op != "literal" and _SIMPLE not in traits:
                return None
            nodes.add(makers[current])
            waiting += node.operands
        elif values.type_of(current).shape == values.type_of(value).shape:
            return None
        else:
            others.add(current)
    count = sum(values.node(index).op != "literal" for index in nodes)
    if len(sources) != 1 or count > _NODES_MAX:
        return None
    return NarrowTail(sources.pop(), tuple(sorted(nodes)), tuple(sorted(others)))


def _is_narrow(values: FusionValues, current: int, value: int) -> bool:
    tensor_type, wanted = values.type_of(current), values.type_of(value)
    bits = dtype_size_bits(tensor_type.dtype)
    is_integer = tensor_type.dtype in SIGNED | UNSIGNED
    narrower = bits <= _BITS_MAX and bits < dtype_size_bits(wanted.dtype)
    return is_integer and narrower and tensor_type.shape == wanted.shape

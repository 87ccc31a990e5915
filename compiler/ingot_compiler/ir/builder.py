"""Builds graphs node by node, with types inferred by the op registry.

In: operations in order. Out: a ``Graph`` with dense value ids. Not done here: simplification
(``passes``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, Symbol
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import require_whole_bytes


class GraphBuilder:
    """Accumulates nodes; every added value gets the next id."""

    def __init__(self, inputs: Sequence[TensorType]) -> None:
        self.types: list[TensorType] = list(inputs)
        self.inputs = tuple(range(len(inputs)))
        self.nodes: list[Node] = []

    def add(
        self,
        op: OpName,
        operands: Sequence[int],
        attributes: Mapping[str, Attribute] | None = None,
        source: tuple[int, ...] = (),
        mark: str = "",
    ) -> int:
        """Append an op with one result (or none: returns -1); OpTypeError when its rule refuses the
        operands."""
        return next(iter(self.add_many(op, operands, attributes, source, mark)), -1)

    def add_many(
        self,
        op: OpName,
        operands: Sequence[int],
        attributes: Mapping[str, Attribute] | None = None,
        source: tuple[int, ...] = (),
        mark: str = "",
    ) -> tuple[int, ...]:
        """Append an op; returns all its result ids."""
        table = dict(attributes or {})
        if Trait.ELEMENTWISE in OPS_BY_NAME[op].traits:
            operands = self._harmonised(operands, source, mark)
        require_whole_bytes([self.types[operand] for operand in operands])
        types = OPS_BY_NAME[op].infer([self.types[operand] for operand in operands], table).results
        results = tuple(range(len(self.types), len(self.types) + len(types)))
        self.types += types
        self.nodes.append(
            Node(op, tuple(operands), results, make_attributes(table), (), source, mark)
        )
        return results

    def region(self, inputs: Sequence[TensorType]) -> GraphBuilder:
        """A builder of a region at this place: it sees all values so far, its own ids continue
        after them."""
        inner = GraphBuilder((*self.types, *inputs))
        inner.inputs = inner.inputs[len(self.types) :]
        return inner

    def add_regions(
        self,
        op: OpName,
        operands: Sequence[int],
        regions: Sequence[Graph],
        attributes: Mapping[str, Attribute],
        source: tuple[int, ...] = (),
        mark: str = "",
    ) -> tuple[int, ...]:
        """Append an op of control flow; returns all its result ids; OpTypeError when its rule
        refuses."""
        rule = OPS_BY_NAME[op].infer_regions
        assert rule is not None
        require_whole_bytes([self.types[operand] for operand in operands])
        types = rule([self.types[operand] for operand in operands], attributes, regions)
        results = tuple(range(len(self.types), len(self.types) + len(types)))
        self.types += types
        node = Node(
            op, tuple(operands), results, make_attributes(attributes), tuple(regions), source, mark
        )
        self.nodes.append(node)
        return results

    def _harmonised(self, operands: Sequence[int], source: tuple[int, ...], mark: str) -> list[int]:
        """Where sizes that broadcast together are written differently, take the simplest spelling.

        ``min(512, s1)`` against ``s1`` must be equal for the model to mean anything: the operand is
        reshaped, which checks that at run time. Two plain symbols may also broadcast, and stay as
        they are.
        """
        if len({self.types[operand].shape for operand in operands}) <= 1:
            return list(operands)
        rank = max(self.types[operand].rank for operand in operands)
        shapes = {operand: self.types[operand].shape for operand in operands}
        wanted = {operand: list(shape) for operand, shape in shapes.items()}
        for axis in range(1, rank + 1):
            sizes = [
                shape[-axis]
                for shape in shapes.values()
                if len(shape) >= axis and shape[-axis] != 1
            ]
            simplest = min(sizes, key=_complexity, default=1)
            for operand, shape in shapes.items():
                if (
                    len(shape) >= axis
                    and shape[-axis] not in (1, simplest)
                    and _complexity(shape[-axis]) > 1
                ):
                    wanted[operand][-axis] = simplest
        renamed = {
            operand: operand
            if tuple(wanted[operand]) == shape
            else self.add("reshape", [operand], {"shape": tuple(wanted[operand])}, source, mark)
            for operand, shape in shapes.items()
        }
        return [renamed[operand] for operand in operands]

    def finish(self, outputs: Sequence[int]) -> Graph:
        """The graph built so far."""
        return Graph(self.inputs, tuple(self.nodes), tuple(outputs), tuple(self.types))


def _complexity(dim: Dim) -> int:
    """0 for an integer, 1 for a plain symbol, more for an expression."""
    if isinstance(dim, int):
        return 0
    ((monomial, factor), *more) = dim.terms
    plain = not more and factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Symbol)
    return 1 if plain else 1 + len(str(dim))

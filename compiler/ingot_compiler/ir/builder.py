"""Builds graphs node by node, with types inferred by the op registry.

In: operations in order. Out: a ``Graph`` with dense value ids. Not done here: simplification
(``passes``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.typing_rules import require_computable
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType


class GraphBuilder:
    """Accumulates nodes; every added value gets the next id."""

    def __init__(self, inputs: Sequence[TensorType]) -> None:
        self.types: list[TensorType] = list(inputs)
        self.inputs = tuple(range(len(inputs)))
        self.nodes: list[Node] = []
        self._scalars: dict[tuple[DType, str, str], int] = {}
        self._further_sources: dict[int, set[int]] = {}  # of shared nodes, by their index

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
        given = [self.types[operand] for operand in operands]
        require_computable(given, OPS_BY_NAME[op].traits, table)
        types = OPS_BY_NAME[op].infer(given, table).results
        results = self._new_values(types)
        node = Node(op, tuple(operands), results, make_attributes(table), (), source, mark)
        self.nodes.append(node)
        return results

    def add_typed(
        self,
        op: OpName,
        operands: Sequence[int],
        attributes: Mapping[str, Attribute],
        result: TensorType,
        source: tuple[int, ...] = (),
        mark: str = "",
    ) -> int:
        """Append an op whose rule gives ``result``, its only one, for these operands."""
        given, traits = [self.types[operand] for operand in operands], OPS_BY_NAME[op].traits
        is_spelled_once = all(_is_plain(tensor_type.shape) for tensor_type in given)
        if not is_spelled_once and Trait.ELEMENTWISE in traits:
            harmonised = self._harmonised(operands, source, mark)
            if harmonised != list(operands):
                return self.add(op, harmonised, attributes, source, mark)
        require_computable(given, traits, attributes)
        value = len(self.types)
        self.types.append(result)
        table = make_attributes(attributes) if attributes else ()
        self.nodes.append(Node(op, tuple(operands), (value,), table, (), source, mark))
        return value

    def scalar(
        self,
        dtype: DType,
        value: float,
        source: tuple[int, ...] = (),
        mark: str = "",
    ) -> int:
        """A literal of rank 0; equal ones of one mark are one node, which stands for the sources of
        all: quantized models repeat each number hundreds of times."""
        key = dtype, repr(value), mark  # 0.0, -0.0, 0 and False are equal in Python
        index = self._scalars.get(key)
        if index is None:
            self._scalars[key] = len(self.nodes)
            attributes: dict[str, Attribute] = {"dtype": dtype, "shape": (), "value": (value,)}
            return self.add("literal", (), attributes, source, mark)
        self._further_sources.setdefault(index, set()).update(source)
        return self.nodes[index].results[0]

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
        types = rule([self.types[operand] for operand in operands], attributes, regions)
        results = self._new_values(types)
        table = make_attributes(attributes)
        self.nodes.append(Node(op, tuple(operands), results, table, tuple(regions), source, mark))
        return results

    def _new_values(self, types: Sequence[TensorType]) -> tuple[int, ...]:
        results = tuple(range(len(self.types), len(self.types) + len(types)))
        self.types += types
        return results

    def _harmonised(self, operands: Sequence[int], source: tuple[int, ...], mark: str) -> list[int]:
        """Where sizes that broadcast together are written differently, take the simplest spelling.

        ``min(512, s1)`` against ``s1`` must be equal for the model to mean anything: the operand is
        reshaped, which checks that at run time. Two plain symbols may also broadcast, and stay as
        they are.
        """
        shapes = {operand: self.types[operand].shape for operand in operands}
        if len(set(shapes.values())) <= 1 or all(map(_is_plain, shapes.values())):
            return list(operands)
        simplest = _simplest_sizes(tuple(shapes.values()))
        renamed: dict[int, int] = {}
        for operand, shape in shapes.items():
            wanted = tuple(
                simple if _complexity(size) > 1 else size
                for size, simple in zip(shape, simplest[len(simplest) - len(shape) :], strict=True)
            )
            renamed[operand] = (
                operand
                if wanted == shape
                else self.add("reshape", [operand], {"shape": wanted}, source, mark)
            )
        return [renamed[operand] for operand in operands]

    def finish(self, outputs: Sequence[int]) -> Graph:
        """The graph built so far."""
        nodes = list(self.nodes)
        for index, further in self._further_sources.items():
            source = tuple(sorted(further.union(nodes[index].source)))
            nodes[index] = replace(nodes[index], source=source)
        return Graph(self.inputs, tuple(nodes), tuple(outputs), tuple(self.types))


def _simplest_sizes(shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    """For each axis, counted from the last one, the simplest size but 1 of all shapes that have
    it; 1 where there is no other."""
    rank = max(map(len, shapes))
    sizes = ([shape[axis] for shape in shapes if len(shape) >= -axis] for axis in range(-rank, 0))
    return tuple(
        min((size for size in along if size != 1), key=_complexity, default=1) for along in sizes
    )


def _is_plain(shape: tuple[Dim, ...]) -> bool:
    """Whether all sizes are numbers, which are spelled in one way."""
    return all(isinstance(size, int) for size in shape)


def _complexity(dim: Dim) -> int:
    """0 for an integer, 1 for a plain symbol, more for an expression."""
    if isinstance(dim, int):
        return 0
    return 1 if bare_symbol(dim) is not None else 1 + len(str(dim))

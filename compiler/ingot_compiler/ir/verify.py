"""Checks that a graph is well formed: what every pass may rely on, and must leave behind.

In: a ``Graph``. Out: nothing, or ``InternalError`` naming the node. Not done here: meaning
(``interpret``), devices.

Inputs come first and ids are dense; operands are defined before their use; types equal those that
the op's rule gives; attributes and source ordinals are sorted; every symbol is a dimension of an
input, or bound by an earlier node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Sum, is_symbol_name, symbol, symbols_of
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.problem import Path, Problem, require_none
from ingot_compiler.ir.region_rules import bound_symbols
from ingot_compiler.ir.types import DTYPES, TensorType
from ingot_compiler.ir.typing_rules import require_whole_bytes


def verify(graph: Graph) -> None:
    """Raise InternalError for the first problem."""
    require_none(find_problems(graph), "node", "graph", "graph")


def find_problems(graph: Graph) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    yield from _Scope((), (), set(), ()).check(graph)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a region sees: the types of the enclosing values, the bound symbols, and the path of its
    node."""

    visible: tuple[TensorType, ...]
    defined: tuple[int, ...]
    symbols: set[str]
    path: Path

    def check(self, graph: Graph) -> Iterator[Problem]:
        first = len(self.visible)
        yield from self._check_ids(graph, first)
        symbols = self.symbols | set(_bare_symbols(graph, graph.inputs))
        for value in graph.inputs:
            yield from self._check_symbols((), "", graph.types[value].shape, symbols)
        known = set(self.defined) | set(graph.inputs)
        for index, node in enumerate(graph.nodes):
            path = (*self.path, index)
            yield from _check_node(graph, node, path, known)
            inner = set(symbols)
            if node.regions:
                yield from _bind(node, path, symbols)
            yield from self._check_symbols(path, node.op, _dims_of(graph, node), symbols)
            if not node.regions:
                yield from _bind(node, path, symbols)
            for number, region in enumerate(node.regions):
                visible = graph.types[: len(known)]
                yield from _Scope(visible, tuple(sorted(known)), set(inner), (*path, number)).check(
                    region
                )
            known |= set(node.results)
        for output in graph.outputs:
            if output not in known:
                yield Problem(self.path, "return", "outputs that are defined", f"%{output}")

    def _check_ids(self, graph: Graph, first: int) -> Iterator[Problem]:
        ids = [*graph.inputs, *(result for node in graph.nodes for result in node.results)]
        dense = list(range(first, first + len(ids)))
        if ids != dense:
            at = next(
                (i for i, pair in enumerate(zip(ids, dense, strict=True)) if pair[0] != pair[1]), 0
            )
            yield Problem(
                self.path, "graph", f"value %{dense[at]} next (ids are dense)", f"%{ids[at]}"
            )
        if len(graph.types) != first + len(ids):
            yield Problem(self.path, "graph", f"{first + len(ids)} types", str(len(graph.types)))
        if graph.types[:first] != self.visible:
            yield Problem(self.path, "graph", "the types of the enclosing values first", "others")
        for value in graph.inputs:
            if value < len(graph.types) and graph.types[value].dtype not in DTYPES:
                yield Problem(
                    self.path,
                    "graph",
                    f"an element type out of {' '.join(DTYPES)}",
                    graph.types[value].dtype,
                )

    def _check_symbols(
        self, path: Path, op: str, dims: Iterable[Attribute], symbols: set[str]
    ) -> Iterator[Problem]:
        names = {name for dim in dims for name in _names(dim)}
        for name in sorted(names - symbols):
            yield Problem(
                path or self.path, op or "graph", "a symbol that an input or read_dim binds", name
            )
        for name in sorted(name for name in names if not is_symbol_name(name)):
            yield Problem(
                path or self.path,
                op or "graph",
                "symbols that are identifiers of the text form",
                repr(name),
            )


def _names(value: Attribute) -> Iterator[str]:
    if isinstance(value, tuple):
        for item in value:
            yield from _names(item)
    elif isinstance(value, Sum):
        yield from symbols_of(value)


def _bare_symbols(graph: Graph, values: Sequence[int]) -> Iterator[str]:
    """Symbols that are themselves a dimension of one of ``values``: those that a call can bind."""
    for value in values:
        for dim in graph.types[value].shape:
            for name in () if isinstance(dim, int) else symbols_of(dim):
                if dim == symbol(name):
                    yield name


def _dims_of(graph: Graph, node: Node) -> Iterator[Attribute]:
    for _, value in node.attributes:
        yield value
    for result in node.results:
        if result < len(graph.types):
            yield from graph.types[result].shape


def _bind(node: Node, path: Path, symbols: set[str]) -> Iterator[Problem]:
    for name in bound_symbols(node):
        if name in symbols or not is_symbol_name(name):
            yield Problem(
                path, node.op, "a fresh symbol that is an identifier of the text form", repr(name)
            )
        symbols.add(name)


def _check_node(graph: Graph, node: Node, path: Path, known: set[int]) -> Iterator[Problem]:
    names = [name for name, _ in node.attributes]
    if any(a >= b for a, b in pairwise(names)):
        yield Problem(path, node.op, "attributes sorted by name, each once", ", ".join(names))
    if any(a >= b for a, b in pairwise(node.source)) or any(ordinal < 0 for ordinal in node.source):
        yield Problem(path, node.op, "ascending source ordinals", str(node.source))
    undefined = [operand for operand in node.operands if operand not in known]
    for operand in undefined:
        yield Problem(path, node.op, "operands that are defined before", f"%{operand}")
    if node.op not in OPS_BY_NAME:
        yield Problem(path, node.op, "a core op", node.op)
    elif not undefined and all(result < len(graph.types) for result in node.results):
        yield from _check_types(graph, node, path)


def _check_types(graph: Graph, node: Node, path: Path) -> Iterator[Problem]:
    declared = tuple(graph.types[result] for result in node.results)
    op, operands, attributes = (
        OPS_BY_NAME[node.op],
        [graph.types[item] for item in node.operands],
        dict(node.attributes),
    )
    if bool(node.regions) != (op.infer_regions is not None):
        yield Problem(
            path, node.op, "regions" if op.infer_regions else "no regions", str(len(node.regions))
        )
        return
    try:
        require_whole_bytes(operands)
        inferred = (
            op.infer_regions(operands, attributes, node.regions)
            if op.infer_regions
            else op.infer(operands, attributes).results
        )
    except OpTypeError as error:
        yield Problem(path, node.op, str(error.expected), str(error.got))
        return
    if inferred != declared:
        yield Problem(path, node.op, f"results {_types(inferred)}", _types(declared))


def _types(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types)) or "none"

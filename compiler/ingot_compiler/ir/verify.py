"""Checks that a graph is well formed: what every pass may rely on, and must leave behind.

In: a ``Graph``. Out: nothing, or ``InternalError`` naming the node. Not done here: meaning
(``interpret``), devices.

Inputs come first and ids are dense; operands are defined before their use; types equal those that
the op's rule gives; attributes and source ordinals are sorted; every symbol is a dimension of an
input, or bound by an earlier node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import is_symbol_name
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.problem import Part, Path, Problem, require_none
from ingot_compiler.ir.rules.region_rules import bound_symbols
from ingot_compiler.ir.rules.typing_rules import require_computable
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.types import DTYPES, TensorType
from ingot_compiler.ir.used_symbols import symbols_in
from ingot_runtime.lazy_dataclass import dataclass


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
        yield from self._check_ids(graph, len(self.visible))
        symbols = self.symbols | set(_bare_symbols(graph, graph.inputs))
        for value in graph.inputs:
            yield from _unbound(Part(self.path, "graph"), graph.types[value].shape, symbols)
        known = set(self.defined) | set(graph.inputs)
        for index, node in enumerate(graph.nodes):
            part = Part((*self.path, index), node.op)
            yield from _check_node(graph, node, part, known)
            outside = set(symbols)
            if node.regions:  # the sizes of its results are among those that it binds
                yield from _bind(node, part, symbols)
            yield from _unbound(part, _dims_of(graph, node), symbols)
            if not node.regions:
                yield from _bind(node, part, symbols)
            for number, region in enumerate(node.regions):
                yield from self._inside(graph, known, outside, (*part.path, number)).check(region)
            known |= set(node.results)
        for output in graph.outputs:
            if output not in known:
                yield Problem(self.path, "return", "outputs that are defined", f"%{output}")

    def _inside(self, graph: Graph, known: set[int], symbols: set[str], path: Path) -> _Scope:
        """What a region of ``graph`` sees when these values and symbols are known there."""
        return _Scope(graph.types[: len(known)], tuple(sorted(known)), set(symbols), path)

    def _check_ids(self, graph: Graph, first: int) -> Iterator[Problem]:
        """That the ids of inputs and results count on from ``first``, each with a type."""
        part = Part(self.path, "graph")
        ids = [*graph.inputs, *(result for node in graph.nodes for result in node.results)]
        wrong = [(want, got) for want, got in enumerate(ids, first) if want != got]
        for want, got in wrong[:1]:
            yield part.problem(f"value %{want} next (ids are dense)", f"%{got}")
        if len(graph.types) != first + len(ids):
            yield part.problem(f"{first + len(ids)} types", str(len(graph.types)))
        if graph.types[:first] != self.visible:
            yield part.problem("the types of the enclosing values first", "others")
        for value in graph.inputs:
            if value < len(graph.types) and graph.types[value].dtype not in DTYPES:
                expected = f"an element type out of {' '.join(DTYPES)}"
                yield part.problem(expected, graph.types[value].dtype)


def _unbound(part: Part, dims: Iterable[Attribute], symbols: set[str]) -> Iterator[Problem]:
    """Names in sizes that nothing binds, or that the text form cannot hold."""
    names = {name for dim in dims for name in symbols_in(dim)}
    for name in sorted(names - symbols):
        yield part.problem("a symbol that an input or read_dim binds", name)
    for name in sorted(name for name in names if not is_symbol_name(name)):
        yield part.problem("symbols that are identifiers of the text form", repr(name))


def _bare_symbols(graph: Graph, values: Sequence[int]) -> Iterator[str]:
    """Symbols that are themselves a dimension of one of ``values``: those that a call can bind."""
    names = (bare_symbol(dim) for value in values for dim in graph.types[value].shape)
    return (name for name in names if name is not None)


def _dims_of(graph: Graph, node: Node) -> Iterator[Attribute]:
    for _, value in node.attributes:
        yield value
    for result in node.results:
        if result < len(graph.types):
            yield from graph.types[result].shape


def _bind(node: Node, part: Part, symbols: set[str]) -> Iterator[Problem]:
    for name in bound_symbols(node):
        if name in symbols or not is_symbol_name(name):
            expected = "a fresh symbol that is an identifier of the text form"
            yield part.problem(expected, repr(name))
        symbols.add(name)


def _check_node(graph: Graph, node: Node, part: Part, known: set[int]) -> Iterator[Problem]:
    names = [name for name, _ in node.attributes]
    if any(a >= b for a, b in pairwise(names)):
        yield part.problem("attributes sorted by name, each once", ", ".join(names))
    if any(a >= b for a, b in pairwise(node.source)) or any(ordinal < 0 for ordinal in node.source):
        yield part.problem("ascending source ordinals", str(node.source))
    undefined = [operand for operand in node.operands if operand not in known]
    for operand in undefined:
        yield part.problem("operands that are defined before", f"%{operand}")
    if node.op not in OPS_BY_NAME:
        yield part.problem("a core op", node.op)
    elif not undefined and all(result < len(graph.types) for result in node.results):
        yield from _check_types(graph, node, part)


def _check_types(graph: Graph, node: Node, part: Part) -> Iterator[Problem]:
    """That the types of a node's results are those that the rule of its op gives."""
    op, attributes = OPS_BY_NAME[node.op], dict(node.attributes)
    operands = [graph.types[item] for item in node.operands]
    if bool(node.regions) != (op.infer_regions is not None):
        expected = "regions" if op.infer_regions else "no regions"
        yield part.problem(expected, str(len(node.regions)))
        return
    try:
        if op.infer_regions:
            inferred = op.infer_regions(operands, attributes, node.regions)
        else:
            require_computable(operands, op.traits, attributes)
            inferred = op.infer(operands, attributes).results
    except OpTypeError as error:
        yield part.problem(str(error.expected), str(error.got))
        return
    declared = tuple(graph.types[result] for result in node.results)
    if inferred != declared:
        yield part.problem(f"results {_types(inferred)}", _types(declared))


def _types(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types)) or "none"

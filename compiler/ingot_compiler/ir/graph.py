"""The graph: functional SSA over typed tensors, with regions for control flow and ordinals that
lead to the source.

In: nodes in an order where every operand is defined before its use. Out: ``Graph`` and the stage
types around it. Not done here: checking (``verify``), text (``print_graph``, ``parse_graph``),
execution (``interpret``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ingot_compiler.ir.attributes import (
    Attribute,
    attribute_bool,
    attribute_bools,
    attribute_dim,
    attribute_dims,
    attribute_float,
    attribute_floats,
    attribute_int,
    attribute_ints,
    attribute_numbers,
    attribute_str,
    attribute_strs,
)
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.refusal import Refusal
from ingot_compiler.ir.types import DType, TensorType
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:  # a new op changes no code that only moves nodes about
    from ingot_compiler.ir.op_names import OpName


AUTO = "auto"
"""The mark of nodes whose device the cost model chooses; no device has this name."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operation.

    ``results`` are value ids, ascending and unused before. ``source`` are ordinals of the imported
    nodes it came
    from (sorted; join with the ``names`` artifact for the user's names). ``regions`` are sub-graphs
    of control-flow ops; they see the values of the enclosing graph. ``mark`` is the user's
    placement mark (a virtual device's name, or ``AUTO``) or "".
    """

    op: OpName
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()  # sorted by name
    regions: tuple[Graph, ...] = ()
    source: tuple[int, ...] = ()
    mark: str = ""

    @property
    def table(self) -> dict[str, Attribute]:
        """The attributes by name."""
        return dict(self.attributes)

    # Attributes as what they are; ``OpTypeError`` when absent or of another type, which the op's
    # rule excludes.

    def dim(self, name: str) -> Dim:
        """An integer expression."""
        return attribute_dim(self.table, name)

    def dims(self, name: str) -> tuple[Dim, ...]:
        """A tuple of integer expressions."""
        return attribute_dims(self.table, name)

    def integer(self, name: str) -> int:
        """An integer."""
        return attribute_int(self.table, name)

    def ints(self, name: str) -> tuple[int, ...]:
        """A tuple of integers."""
        return attribute_ints(self.table, name)

    def real(self, name: str) -> float:
        """A float."""
        return attribute_float(self.table, name)

    def reals(self, name: str) -> tuple[float, ...]:
        """A tuple of floats."""
        return attribute_floats(self.table, name)

    def numbers(self, name: str) -> tuple[float, ...]:
        """A tuple of floats, integers or bools."""
        return attribute_numbers(self.table, name)

    def flag(self, name: str) -> bool:
        """A bool."""
        return attribute_bool(self.table, name)

    def flags(self, name: str) -> tuple[bool, ...]:
        """A tuple of bools."""
        return attribute_bools(self.table, name)

    def text(self, name: str) -> str:
        """A string."""
        return attribute_str(self.table, name)

    def texts(self, name: str) -> tuple[str, ...]:
        """A tuple of strings."""
        return attribute_strs(self.table, name)


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph (or region): value ids are dense, ``types[i]`` is the type of value ``i``.

    Inputs come first (0 .. len(inputs)-1 in the outermost graph); a region's ids continue after
    those of the values it can see, and its ``types`` repeat the visible ones. ``outputs`` may
    repeat a value or name an input. ``symbols`` are the free symbols that input shapes bind, in
    order of first appearance.
    """

    inputs: tuple[int, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    types: tuple[TensorType, ...]

    def users(self) -> dict[int, list[int]]:
        """Value id -> indices of the nodes that read it (regions included), ascending; graph
        outputs are not users."""
        table: dict[int, list[int]] = {}
        for index, node in enumerate(self.nodes):
            read = {*node.operands, *captured(node)} if node.regions else {*node.operands}
            for operand in sorted(read):
                table.setdefault(operand, []).append(index)
        return table

    def producers(self) -> dict[int, int]:
        """Value id -> index of the node that makes it; inputs are absent."""
        return {result: index for index, node in enumerate(self.nodes) for result in node.results}

    def makers(self) -> dict[int, Node]:
        """Value id -> the node that makes it; inputs are absent."""
        return {result: node for node in self.nodes for result in node.results}


def captured(node: Node) -> set[int]:
    """Values of the enclosing graph that the node's regions read."""
    found: set[int] = set()
    for region in node.regions:
        own = set(region.inputs) | {result for inner in region.nodes for result in inner.results}
        reads = {
            operand for inner in region.nodes for operand in (*inner.operands, *captured(inner))
        }
        found |= (reads | set(region.outputs)) - own
    return found


def make_attributes(attributes: Mapping[str, Attribute]) -> tuple[tuple[str, Attribute], ...]:
    """Sort attributes into the canonical order."""
    return tuple(sorted(attributes.items()))


@dataclass(frozen=True, slots=True)
class Names:
    """What the user called things; beside the graph, never inside it.

    ``nodes``: ordinal of an imported node -> (name, op type); ``inputs``/``outputs``: tensor names
    by position; ``symbols``: canonical symbol (s0, s1, ...) -> the user's dimension name;
    ``model``: the graph's name; ``weights``: tensor names by number; ``ignored``: what the file has
    and the graph has not, for warnings; ``plans``: of a program, by ordinal of a node, the steps by
    which its planner came to the node's device.
    """

    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[tuple[str, str], ...]
    symbols: tuple[tuple[str, str], ...]
    weights: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    plans: tuple[tuple[str, ...], ...] = ()

    def describe(self, source: Sequence[int]) -> str:
        """The user's node names of some ordinals, for errors and reports."""
        return ", ".join(
            f"{self.nodes[ordinal][0]} ({self.nodes[ordinal][1]})" for ordinal in source
        )


@dataclass(frozen=True, slots=True)
class OptimizedGraph:
    """A graph that the whole pipeline has seen: canonical, folded, patterns recognised; no device,
    no layout.

    ``refusals``: patterns that were nearly there.
    """

    graph: Graph
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstantSource:
    """Where a constant's bytes come from: the number of a weight; bytes are dense little-endian
    row-major, in 16 bits where ``stored`` is a type: their numbers are those of ``type``."""

    weight: str
    type: TensorType
    stored: DType | None = None

"""The facts of every value while operations are grouped: type, device, users, sources, the
requirements of its users.

In: a flat graph, the device of each value, what each op asks of its operands. Out: answers about
values; values that the graph does not name are added. Not done here: where values lie
(``storage``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import symbols_of
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.constants.constant_expression import constant_values, extract
from ingot_compiler.lowering.fusion.layout import Halo, ImageDemands


class FusionValues:
    """The graph's values and nodes, and those that lowering adds."""

    def __init__(
        self, graph: Graph, device_of: Sequence[int], returned: Sequence[int], demands: ImageDemands
    ) -> None:
        """``device_of[value]``: values beyond it, those of regions, live on the host; ``returned``:
        the outputs of all regions."""
        self._graph = graph
        self._nodes = list(graph.nodes)
        self._types = list(graph.types)
        self._devices = [*device_of, *[0] * (len(graph.types) - len(device_of))]
        self._constants = constant_values(graph)
        self._use_counts = _use_counts(graph, self._constants, returned)
        self._makers = graph.makers()
        self._users = {
            value: [graph.nodes[index] for index in users] for value, users in graph.users().items()
        }
        self._sources = {result: node.source for node in graph.nodes for result in node.results}
        self._images, self._halos = set(demands.channels_last), dict(demands.halos)
        self._converted: dict[tuple[int, DType], int] = {}

    def type_of(self, value: int) -> TensorType:
        """The tensor type."""
        return self._types[value]

    def device_of(self, value: int) -> int:
        """Which device has it."""
        return self._devices[value]

    def source_of(self, value: int) -> tuple[int, ...]:
        """The imported nodes that make it; none of what lowering added."""
        return self._sources.get(value, ())

    def use_count(self, value: int) -> int:
        """How many nodes and regions read it, or return it."""
        return self._use_counts.get(value, 0)

    def maker(self, value: int) -> Node | None:
        """The graph's node that makes it; None of an input and of what lowering added."""
        return self._makers.get(value)

    def users(self, value: int) -> list[Node]:
        """The graph's nodes that read it."""
        return self._users.get(value, [])

    def is_constant(self, value: int) -> bool:
        """Whether the build folds it."""
        return value in self._constants

    def expression(self, value: int) -> Graph:
        """How a constant is computed."""
        return extract(self._graph, value, self._makers)

    def literal(self, value: int) -> int | None:
        """The number that a value is known to be."""
        maker = next(
            (node for node in self._nodes if value in node.results and node.op == "literal"), None
        )
        first = next(iter(maker.numbers("value")), None) if maker else None
        return int(first) if isinstance(first, int) else None

    def halo_of(self, value: int) -> Halo | None:
        """What convolutions read around it."""
        return self._halos.get(value)

    def is_image(self, value: int) -> bool:
        """Whether a user reads it as an image."""
        return value in self._images

    def size_names(self) -> frozenset[str]:
        """The symbols in all shapes."""
        return frozenset(
            name
            for tensor_type in self._types
            for dim in tensor_type.shape
            for name in symbols_of(dim)
        )

    def add(self, tensor_type: TensorType, device: int) -> int:
        """A value that the graph does not name (a packed weight)."""
        self._types.append(tensor_type)
        self._devices.append(device)
        return len(self._types) - 1

    def add_converted(self, value: int, dtype: DType, users: int = 1) -> int:
        """Add a value with the elements of another one in another type: as many of the other's
        users read it in its place, with the same requirements."""
        result = self.add(TensorType(dtype, self._types[value].shape), self._devices[value])
        self._use_counts[result] = users
        self._use_counts[value] -= users - 1
        self._converted[value, dtype] = result
        if value in self._halos:
            self._halos[result] = self._halos[value]
        if value in self._images:
            self._images.add(result)
        return result

    def converted(self, value: int, dtype: DType) -> int | None:
        """The last value that was added with the elements of another one in a type."""
        return self._converted.get((value, dtype))

    def node(self, index: int) -> Node:
        """The node at an index."""
        return self._nodes[index]

    def nodes(self, first: int, last: int) -> Sequence[Node]:
        """The graph's nodes from an index to another (exclusive)."""
        return self._graph.nodes[first:last]

    def add_node(self, node: Node) -> int:
        """The index of a node that the graph does not hold."""
        self._nodes.append(node)
        return len(self._nodes) - 1

    def replace_node(self, index: int, node: Node) -> None:
        """Put the form of a node that its kernel computes in its place."""
        self._nodes[index] = node


def _use_counts(graph: Graph, constants: frozenset[int], returned: Sequence[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for node in graph.nodes:
        if any(result in constants for result in node.results):
            continue
        for operand in set(node.operands):
            counts[operand] = counts.get(operand, 0) + 1
    for output in (*graph.outputs, *returned):
        counts[output] = counts.get(output, 0) + 1
    return counts

"""Pass: a state of one size that each call replaces as a whole is written like a cache of fixed
length, all of whose rows are new.

In: a graph, before it is specialised. Out: the same graph, in which such an output is
``write_rows`` of its input. Not done here: which of them a session may keep (``hold_rows``).

Three ops replace a state: ``linear_attention`` the matrices of its heads, a ``concat`` behind an
input whose last elements are returned, as a convolution along a sequence keeps them, and a
``concat`` before an input, some of whose rows may be cleared by a ``select`` on the way, from which
rows are picked, as a cache of the size of a window keeps them. Names are not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import dim_add
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.renumber import first_free_id
from ingot_compiler.ir.types import TensorType

_READERS = ("concat", "linear_attention")


def hold_whole(graph: Graph) -> Graph:
    """Write each state that is replaced into what it was."""
    found = dict(_replaced(graph))
    if not found:
        return graph
    types = list(graph.types)
    types += [TensorType("bool", ())] * (first_free_id(graph) - len(graph.types))
    written = {value: _write(types, past, value, maker) for past, (value, maker) in found.items()}
    outputs = {value: node.results[0] for value, (_, node) in written.items()}
    returned = tuple(outputs.get(value, value) for value in graph.outputs)
    places, writes = zip(*written.values(), strict=True)
    nodes = (*places, *graph.nodes, *writes)  # places first: what makes a value may check them
    return replace(graph, nodes=nodes, outputs=returned, types=tuple(types))


def replaces_all(
    graph: Graph, node: Node, maker: Node | None, reader: Node, users: Mapping[int, Sequence[int]]
) -> bool:
    """Whether a ``write_rows``, whose places are made by ``maker``, writes all of what it writes
    into, which ``reader`` has read by then: kernels of other ops may read it later."""
    past, _, rows = node.operands
    count = graph.types[past].shape[node.integer("axis")]
    is_whole = graph.types[past] == graph.types[rows] and isinstance(count, int)
    if maker is None or maker.op != "literal" or not is_whole:
        return False
    assert isinstance(count, int)
    if reader.op == "select" and len(users[reader.results[0]]) == 1:  # which clears rows
        reader = graph.nodes[users[reader.results[0]][0]]
    return reader.op in _READERS and maker.table["value"] == tuple(range(count))


def _replaced(graph: Graph) -> Iterator[tuple[int, tuple[int, Node]]]:
    """Inputs that one node alone reads, and what they are replaced by: outputs of the same type that
    nothing else is."""
    makers, users, outputs = graph.makers(), graph.users(), Counter(graph.outputs)
    taken = set[int]()
    for value, count in outputs.items():
        past = _past(graph, makers, value)
        if past is None or count != 1 or past in taken or past in outputs:
            continue
        alike = graph.types[past] == graph.types[value]
        if alike and past in graph.inputs and len(users[past]) == 1 and _axis(graph.types[past]):
            taken.add(past)
            yield past, (value, makers[value])


def _past(graph: Graph, makers: Mapping[int, Node], value: int) -> int | None:
    """The input whose place a value takes."""
    node = makers.get(value)
    if node is not None and node.op == "linear_attention" and value == node.results[1]:
        return node.operands[-1]
    picked = makers.get(node.operands[1]) if node is not None and node.op == "select" else None
    if picked is not None and picked.op == "gather_elements":
        joined = makers.get(picked.operands[0])
        if joined is None or joined.op != "concat":
            return None
        cleared = makers.get(joined.operands[-1])
        if cleared is not None and cleared.op == "select":
            return cleared.operands[1]
        return joined.operands[-1]
    joined = makers.get(node.operands[0]) if node is not None and node.op == "slice" else None
    if node is None or joined is None or joined.op != "concat":
        return None
    axis, shape = joined.integer("axis"), graph.types[joined.results[0]].shape
    sizes, kept = node.dims("sizes"), graph.types[value].shape[axis]
    starts = [dim_add(shape[axis], -kept) if at == axis else 0 for at in range(len(shape))]
    is_tail = list(node.dims("starts")) == starts and set(node.ints("steps")) == {1}
    return joined.operands[0] if is_tail and sizes == graph.types[value].shape else None


def _axis(tensor_type: TensorType) -> int:
    """The axis that counts rows: the shortest one behind the batch; 0 if none has a size."""
    sizes = [
        (size, axis)
        for axis, size in enumerate(tensor_type.shape)
        if axis and isinstance(size, int)
    ]
    return min(sizes)[1] if sizes and min(sizes)[0] else 0


def _write(types: list[TensorType], past: int, value: int, maker: Node) -> tuple[Node, Node]:
    """All places, and the node that writes ``value`` there into ``past``."""
    axis = _axis(types[past])
    rows = types[past].shape[axis]
    assert isinstance(rows, int)
    numbers: dict[str, Attribute] = {
        "dtype": "i64", "shape": (1, rows), "value": tuple(range(rows)),
    }  # fmt: skip
    places = Node("literal", (), (len(types),), make_attributes(numbers), (), maker.source)
    types += OPS_BY_NAME["literal"].infer((), numbers).results
    table: dict[str, Attribute] = {"axis": axis, "held": False}
    operands = (past, places.results[0], value)
    written = Node(
        "write_rows", operands, (len(types),), make_attributes(table), (), maker.source, maker.mark
    )
    types += OPS_BY_NAME["write_rows"].infer([types[each] for each in operands], table).results
    return places, written

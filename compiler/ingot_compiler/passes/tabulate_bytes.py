"""Pass: what takes many operations from integers of 8 bits to such integers, element by element, is
looked up in a table of all 256 results.

In: a graph behind the passes over integers. Out: ``gather(table, x)``, where the table is the same
ops on all numbers, folded when the model is compiled. Not done here: how a kernel looks bytes up
(``emit.byte_tables``), functions of several tensors.

Between two layers a quantized network has a sigmoid, a GELU or a hard swish, dequantized and
quantized on the way, perhaps several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_compiler.passes.rewrite import Rewriter, in_shape, rewrite
from ingot_runtime.lazy_dataclass import dataclass

_SERIES_COST = 8  # a function that no processor has, in operations that it has
_COST_MIN = 16  # a table takes as long as some ten operations where it is looked up one by one
_COUNT_MIN = 1024  # elements: below it the launch decides
_NODES_MAX = 64
_NUMBERS = {"i8": (*range(128), *range(-128, 0)), "u8": tuple(range(256))}


@dataclass(frozen=True, slots=True)
class _Origin:
    """The integers that alone decide a value, element by element, and at what cost."""

    value: int
    cost: int


def tabulate_bytes(graph: Graph) -> Graph:
    """Look up what is worth it."""
    if all(tensor_type.dtype not in BYTES for tensor_type in graph.types):
        return graph
    makers = graph.makers()
    origins = _origins(graph, makers)
    found = {
        value: nodes
        for value, origin in origins.items()
        if _is_worth_it(graph.types[value], origin)
        and len(nodes := tuple(_nodes_between(makers, origins, value, origin.value))) <= _NODES_MAX
    }
    return rewrite(graph, partial(_rule, origins, found), ("cast",)) if found else graph


def _is_worth_it(tensor_type: TensorType, origin: _Origin) -> bool:
    is_large = typical(tensor_type.element_count) >= _COUNT_MIN
    return tensor_type.dtype in BYTES and origin.cost >= _COST_MIN and is_large


def _origins(graph: Graph, makers: Mapping[int, Node]) -> dict[int, _Origin]:
    """The origins of all values that have one; an integer that is no function of another value is
    its own origin."""
    found: dict[int, _Origin] = {}
    constants = set[int]()
    for node in graph.nodes:
        traits = OPS_BY_NAME[node.op].traits
        if not node.regions and constants.issuperset(node.operands):
            is_fixed = all(graph.types[each].element_count == 1 for each in node.results)
            constants.update(node.results if is_fixed and node.op != "read_dim" else ())
        elif Trait.ELEMENTWISE in traits and node.op != "require":  # of what a run has alone
            moving = [operand for operand in node.operands if operand not in constants]
            origins = [_own(graph, makers, found, node, operand) for operand in moving]
            own = 1 if Trait.EXACT in traits else _SERIES_COST
            first = origins[0]
            if first is not None and {each and each.value for each in origins} == {first.value}:
                cost = own + sum(each.cost for each in origins if each)
                found[node.results[0]] = _Origin(first.value, min(cost, _COST_MIN))
    return found


def _own(
    graph: Graph,
    makers: Mapping[int, Node],
    origins: Mapping[int, _Origin],
    node: Node,
    operand: int,
) -> _Origin | None:
    """The origin of an operand that has the shape of the result."""
    if graph.types[operand].shape != graph.types[node.results[0]].shape:
        return None
    maker, origin = makers.get(operand), origins.get(operand)
    if origin and maker and maker.mark == node.mark:
        return origin
    return _Origin(operand, 0) if graph.types[operand].dtype in BYTES else None


def _nodes_between(
    makers: Mapping[int, Node], origins: Mapping[int, _Origin], value: int, origin: int
) -> Iterator[Node]:
    """The nodes that compute a value from its origin, each behind those that it needs."""
    seen, waiting = set[int](), [value]
    while waiting:
        current = waiting.pop()
        if current in seen or current == origin or current not in origins:
            continue
        seen.add(current)
        waiting += makers[current].operands
        if len(seen) > _NODES_MAX:
            break
    order = sorted(seen)  # ids ascend in the order of the nodes
    yield from (makers[each] for each in order)


def _rule(
    origins: Mapping[int, _Origin],
    readers: Mapping[int, Sequence[Node]],
    state: Rewriter,
    node: Node,
) -> Sequence[int] | None:
    """What stands for the last of some nodes."""
    (result,) = node.results
    if result not in readers:
        return None
    x = origins[result].value
    dtype = state.type_of(x).dtype
    numbers = {"dtype": dtype, "shape": (256,), "value": _NUMBERS[dtype]}
    values = {x: state.emit("literal", (), numbers, node.source)}
    for each in readers[result]:
        operands = [
            values[operand] if operand in values else in_shape(state, operand, (), each.source)
            for operand in each.operands
        ]
        values[each.results[0]] = state.emit(each.op, operands, each.table, each.source)
    place = x if dtype == "u8" else state.emit("bit_cast", (x,), {"dtype": "u8"}, node.source)
    return (state.emit("gather", (values[result], place), {"axis": 0}, node.source),)

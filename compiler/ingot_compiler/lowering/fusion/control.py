"""Control flow: ``if`` and ``loop`` become steps that hold steps; their results lie in common
buffers.

In: a node of control flow, the fuser, a function that fuses a range of nodes. Out: ``IfStep``,
``LoopStep`` and the steps around. Not done here: branches and jumps (``main_program``).

What a region reads is stored before it; what it stores is forgotten behind it. A carried value has
one buffer, its state: the new value is copied into it at the end of an iteration, or computed there
if nobody needs the old one any more. Sizes that only the run decides are symbols that steps set;
their buffers are blocks that grow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ingot_compiler.ir.dims import Dim, symbol, symbols_of
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.ops.loop import CONTROL, counted_before
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fusion.control_symbols import (
    Sizes,
    is_true,
    named_sizes,
    new_symbol,
    read_number,
    set_symbols,
    store_dense,
)
from ingot_compiler.lowering.fusion.flatten import FlatRegion
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.loop_scans import new_scan, store_row
from ingot_compiler.lowering.fusion.loop_states import new_state, store_states
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.fused import BufferSpec, IfStep, LoopStep, Step
from ingot_compiler.lowering.groups.views import dense_view

Run = Callable[[int, int], None]
"""Fuses the nodes from an index to another (exclusive)."""


def if_(fuser: Fuser, node: Node, regions: Sequence[FlatRegion], run: Run) -> None:
    """Both branches store into the buffers of the results."""
    _store_captured(fuser, regions)
    condition = read_number(fuser, node.operands[0])
    names = _names(node)
    types = [fuser.values.type_of(result) for result in node.results]
    buffers = [_buffer_of_branches(fuser, tensor_type, names) for tensor_type in types]
    branches: list[tuple[Step, ...]] = []
    for region in regions:
        inside = fuser.enter()
        run(region.first, region.last)
        for tensor_type, buffer, output in zip(types, buffers, region.outputs, strict=True):
            own = fuser.values.type_of(output).shape
            set_symbols(fuser, named_sizes(tensor_type.shape, own, names))
            store_dense(fuser, output, buffer)
        branches.append(fuser.leave(inside))
    fuser.append(IfStep(condition, *branches))
    _place_results(fuser, node, buffers)


def loop(fuser: Fuser, node: Node, regions: Sequence[FlatRegion], run: Run) -> None:
    """State buffers before, the body, the results behind."""
    (region,) = regions
    _store_captured(fuser, regions)
    counter, names = new_symbol(fuser), _names(node)
    count, condition = _limits(fuser, node, region)
    is_tested = condition != "" and not is_true(fuser, region.outputs[0])
    carried = list(zip(node.operands[CONTROL:], region.inputs[CONTROL:], strict=True))
    states = [new_state(fuser, *pair) for pair in carried]
    collected = [fuser.values.type_of(result) for result in node.results[len(states) :]]
    known = counted_before(dict(node.attributes))
    scans = [new_scan(fuser, kind, names, known=known) for kind in collected]
    inside = fuser.enter()
    _enter_body(fuser, region, counter, states)
    run(region.first, region.last)
    for scan, output in zip(scans, region.outputs[1 + len(states) :], strict=True):
        store_row(fuser, output, scan, symbol(counter), names)
    if is_tested:
        read_number(fuser, region.outputs[0], condition)
    store_states(fuser, region, states)
    buffers = [*states, *(scan.buffer for scan in scans)]
    body = fuser.leave(inside)
    fuser.append(LoopStep(counter, count, condition, body, tuple(sorted(set(buffers)))))
    set_symbols(fuser, _final_sizes(fuser, node, region, counter))
    _place_results(fuser, node, buffers)


CONTROL_RULES: Mapping[str, Callable[[Fuser, Node, Sequence[FlatRegion], Run], None]] = {
    "if": if_,
    "loop": loop,
}


def _names(node: Node) -> frozenset[str]:
    return frozenset(node.texts("symbols"))


def _store_captured(fuser: Fuser, regions: Sequence[FlatRegion]) -> None:
    """Compute now what a region reads of the values outside that still wait."""
    for region in regions:
        nodes = fuser.values.nodes(region.first, region.last)
        read = {operand for node in nodes for operand in node.operands}
        for value in sorted(read | set(region.outputs)):
            deferred = fuser.deferred(value)
            if deferred is not None and not fuser.is_cheap(deferred):
                fuser.compute(value)


def _buffer_of_branches(fuser: Fuser, tensor_type: TensorType, names: frozenset[str]) -> int:
    """A dense buffer, which grows where the branches decide its size."""
    fuser.symbols.bind(names)
    count = tensor_type.element_count
    spec = BufferSpec("workspace", tensor_type.dtype, count)
    return fuser.storage.add(spec, grows=not names.isdisjoint(symbols_of(count)))


def _place_results(fuser: Fuser, node: Node, buffers: Sequence[int]) -> None:
    """Say that the results of a node fill some buffers."""
    for result, buffer in zip(node.results, buffers, strict=True):
        view = dense_view(fuser.values.type_of(result).shape)
        fuser.storage.put(result, Stored(buffer, view))


# ---- loops ---------------------------------------------------------------------------------------


def _limits(fuser: Fuser, node: Node, region: FlatRegion) -> tuple[Dim, str]:
    """How often a body runs at most, and the symbol of the condition under which it goes on, "" for
    always."""
    if counted_before(dict(node.attributes)):
        return node.dim("iterations"), ""
    count = symbol(read_number(fuser, node.operands[0]))
    always = is_true(fuser, region.outputs[0]) and is_true(fuser, node.operands[1])
    return count, "" if always else read_number(fuser, node.operands[1])


def _final_sizes(fuser: Fuser, node: Node, region: FlatRegion, counter: str) -> Sizes:
    """What the loop's results say of its iterations and of the states it leaves."""
    known = counted_before(dict(node.attributes))
    sizes: list[tuple[Dim, Dim]] = [] if known else [(node.dim("iterations"), symbol(counter))]
    for result, value in zip(node.results, region.inputs[CONTROL:], strict=False):
        shapes = fuser.values.type_of(result).shape, fuser.values.type_of(value).shape
        sizes += named_sizes(*shapes, _names(node))
    return sizes


def _enter_body(fuser: Fuser, region: FlatRegion, counter: str, states: Sequence[int]) -> None:
    """What the body's inputs are: the counter, a true condition, the states."""
    iteration, condition, *carried = region.inputs
    fuser.symbols.bind((counter,))
    fuser.symbols.bind_counter(iteration, symbol(counter))
    fuser.defer_added(
        Node("dim_values", (), (iteration,), make_attributes({"values": (symbol(counter),)}))
    )
    truth = make_attributes({"dtype": "bool", "shape": (), "value": (True,)})
    fuser.defer_added(Node("literal", (), (condition,), truth))
    for value, buffer in zip(carried, states, strict=True):
        fuser.storage.put(value, Stored(buffer, dense_view(fuser.values.type_of(value).shape)))

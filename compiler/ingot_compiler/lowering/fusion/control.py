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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingot_compiler.ir.dims import Dim, dim_min, dim_mul, symbol, symbols_of
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.ops.loop import CONTROL, counted_before
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fused import (
    BufferSpec,
    Grow,
    IfStep,
    LoopStep,
    Requirement,
    Step,
    SymbolRead,
    SymbolSet,
    View,
)
from ingot_compiler.lowering.fusion.deferred import Deferred
from ingot_compiler.lowering.fusion.flatten import FlatRegion
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.relayout import dense, relaid
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.views import dense_view

Run = Callable[[int, int], None]
"""Fuses the nodes from an index to another (exclusive)."""


def if_(fuser: Fuser, node: Node, regions: Sequence[FlatRegion], run: Run) -> None:
    """Both branches store into the buffers of the results."""
    _store_captured(fuser, regions)
    condition = _read(fuser, node.operands[0])
    kinds = [fuser.values.type_of(result) for result in node.results]
    names = _names(node)
    buffers = [_new_buffer(fuser, kind, names) for kind in kinds]
    branches: list[tuple[Step, ...]] = []
    for region in regions:
        inside = fuser.enter()
        run(region.first, region.last)
        for kind, buffer, output in zip(kinds, buffers, region.outputs, strict=True):
            shape = fuser.values.type_of(output).shape
            _set(
                fuser,
                [
                    (dim, size)
                    for dim, size in zip(kind.shape, shape, strict=True)
                    if _is_name(dim, names)
                ],
            )
            _make_room(fuser, buffer, fuser.values.type_of(output).element_count)
            fuser.store(output, Stored(buffer, dense_view(shape)))
        branches.append(fuser.leave(inside))
    fuser.append(IfStep(condition, *branches))
    for result, kind, buffer in zip(node.results, kinds, buffers, strict=True):
        fuser.storage.put(result, Stored(buffer, dense_view(kind.shape)))


@dataclass(frozen=True, slots=True)
class _Scan:
    """A collected output: its buffer, whether rows are added to a block that grows, the block to
    move it by."""

    buffer: int
    grows: bool
    spare: int


def loop(fuser: Fuser, node: Node, regions: Sequence[FlatRegion], run: Run) -> None:
    """State buffers before, the body, the results behind."""
    (region,) = regions
    _store_captured(fuser, regions)
    known = counted_before(dict(node.attributes))
    iterations = node.dim("iterations")
    counter, names = _new_symbol(fuser), _names(node)
    count: Dim = iterations if known else symbol(_read(fuser, node.operands[0]))
    goes_on = known or _is_true(fuser, region.outputs[0])
    condition = (
        ""
        if known or (goes_on and _is_true(fuser, node.operands[1]))
        else _read(fuser, node.operands[1])
    )
    carried = len(node.operands) - CONTROL
    states = [
        _state(fuser, *pair)
        for pair in zip(node.operands[CONTROL:], region.inputs[CONTROL:], strict=True)
    ]
    results = [fuser.values.type_of(result) for result in node.results]
    scans = [_scan(fuser, kind, names, known=known) for kind in results[carried:]]
    inside = fuser.enter()
    _enter_body(fuser, region, counter, states)
    run(region.first, region.last)
    for kind, scan, output in zip(
        results[carried:], scans, region.outputs[1 + carried :], strict=True
    ):
        _store_row(fuser, output, kind, scan, symbol(counter), names)
    if not goes_on:
        _read(fuser, region.outputs[0], condition)
    _store_states(fuser, region, states)
    body = fuser.leave(inside)
    held = tuple(sorted({*states, *(scan.buffer for scan in scans)}))
    fuser.append(LoopStep(counter, count, condition, body, held))
    sizes: list[tuple[Dim, Dim]] = [] if known else [(iterations, symbol(counter))]
    for kind, value in zip(results[:carried], region.inputs[CONTROL:], strict=True):
        pairs = zip(kind.shape, fuser.values.type_of(value).shape, strict=True)
        sizes += [(dim, size) for dim, size in pairs if _is_name(dim, names)]
    _set(fuser, sizes)
    buffers = [*states, *(scan.buffer for scan in scans)]
    for result, kind, buffer in zip(node.results, results, buffers, strict=True):
        fuser.storage.put(result, Stored(buffer, dense_view(kind.shape)))


CONTROL_RULES: dict[str, Callable[[Fuser, Node, Sequence[FlatRegion], Run], None]] = {
    "if": if_,
    "loop": loop,
}


def _names(node: Node) -> frozenset[str]:
    return frozenset(node.texts("symbols"))


def _is_name(dim: Dim, names: frozenset[str]) -> bool:
    return any(
        dim == symbol(name)
        for name in (() if isinstance(dim, int) else symbols_of(dim))
        if name in names
    )


def _new_symbol(fuser: Fuser) -> str:
    return fuser.symbols.new(fuser.values.size_names())


def _is_true(fuser: Fuser, value: int) -> bool:
    """Whether a condition is the literal."""
    return fuser.values.literal(value) == 1


def _store_captured(fuser: Fuser, regions: Sequence[FlatRegion]) -> None:
    """Compute now what a region reads of the values outside that still wait."""
    for region in regions:
        nodes = fuser.values.nodes(region.first, region.last)
        for value in sorted(
            {operand for node in nodes for operand in node.operands} | set(region.outputs)
        ):
            deferred = fuser.deferred(value)
            if deferred is not None and not fuser.is_cheap(deferred):
                fuser.compute(value)


def _read(fuser: Fuser, value: int, name: str = "") -> str:
    """Bind a symbol, a new one unless given, to the one element of a value that is no size."""
    name = name or _new_symbol(fuser)
    known = fuser.values.literal(value)
    if known is not None:
        _set(fuser, [(symbol(name), known)])
        return name
    stored = dense(fuser, value)
    fuser.append(
        SymbolRead(
            name,
            stored.buffer,
            stored.view.offset,
            fuser.values.type_of(value).dtype,
            is_size=False,
        )
    )
    fuser.symbols.bind((name,))
    return name


def _set(fuser: Fuser, sizes: Sequence[tuple[Dim, Dim]]) -> None:
    """Set symbols, all at once; those that are equal already are left out."""
    changed = [(next(iter(symbols_of(dim))), size) for dim, size in sizes if dim != size]
    if changed:
        fuser.append(
            SymbolSet(tuple(name for name, _ in changed), tuple(size for _, size in changed))
        )
        fuser.symbols.bind(name for name, _ in changed)


def _new_buffer(
    fuser: Fuser, kind: TensorType, names: frozenset[str] = frozenset(), *, grows: bool = False
) -> int:
    """A dense buffer; a block that grows when its size is not known when ``main`` begins."""
    fuser.symbols.bind(names)
    spec = BufferSpec("workspace", kind.dtype, kind.element_count)
    return fuser.storage.add(spec, grows=grows or fuser.symbols.are_in(kind.element_count))


def _make_room(fuser: Fuser, buffer: int, element_count: Dim) -> None:
    if fuser.storage.grows(buffer):
        fuser.append(Grow(buffer, element_count))


def _state(fuser: Fuser, initial: int, inside: int) -> int:
    """The buffer of a carried value, holding the first one."""
    outer, kind = fuser.values.type_of(initial), fuser.values.type_of(inside)
    _set(fuser, list(zip(kind.shape, outer.shape, strict=True)))
    buffer = _new_buffer(fuser, kind)
    _make_room(fuser, buffer, outer.element_count)
    fuser.store(initial, Stored(buffer, dense_view(outer.shape)))
    return buffer


def _scan(fuser: Fuser, kind: TensorType, names: frozenset[str], *, known: bool) -> _Scan:
    """The buffer of a collected output."""
    unknown = [dim for dim in kind.shape if _is_name(dim, names)]
    _set(fuser, [(dim, 0) for dim in unknown])
    grows = bool(unknown) or not known
    buffer = _new_buffer(fuser, kind, names, grows=grows)
    if grows:
        spare = fuser.storage.add(fuser.storage.spec(buffer), grows=True)
        fuser.append(Grow(buffer, 0))
        return _Scan(buffer, True, spare)
    _make_room(fuser, buffer, kind.element_count)
    return _Scan(buffer, False, -1)


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


def _store_row(
    fuser: Fuser, value: int, kind: TensorType, scan: _Scan, counter: Dim, names: frozenset[str]
) -> None:
    """One element of a collected output, at its row."""
    own = fuser.values.type_of(value)
    sizes = [
        (dim, size)
        for dim, size in zip(kind.shape[1:], own.shape, strict=True)
        if _is_name(dim, names)
    ]
    for dim, size in sizes:
        difference = dim_mul(dim - size, dim_min(counter, 1))
        what = "the iterations of a loop give results of different sizes"
        fuser.append(Requirement(difference, what))
    _set(fuser, sizes)
    start = dim_mul(counter, own.element_count)
    if scan.grows:
        fuser.append(Grow(scan.buffer, start + own.element_count, start, scan.spare))
    view = dense_view(own.shape)
    fuser.store(value, Stored(scan.buffer, View(view.strides, start)))


def _store_states(fuser: Fuser, region: FlatRegion, states: Sequence[int]) -> None:
    """The new carried values into their buffers, then their sizes; what is still read is not
    overwritten."""
    waiting = [
        (value, buffer)
        for before, value, buffer in zip(
            region.inputs[CONTROL:], region.outputs[1:], states, strict=False
        )
        if value != before
    ]
    pairs = zip(region.inputs[CONTROL:], region.outputs[1 : 1 + len(states)], strict=True)
    sizes = [
        (dim, size)
        for before, after in pairs
        for dim, size in zip(
            fuser.values.type_of(before).shape, fuser.values.type_of(after).shape, strict=True
        )
    ]
    progress = True
    while progress:
        free = next((pair for pair in waiting if _may_overwrite(fuser, *pair, waiting)), None)
        progress = free is not None
        if free is not None:
            waiting.remove(free)
            _overwrite(fuser, *free)
    for value, _ in waiting:
        if fuser.where(value).buffer in states:
            fuser.storage.put(value, relaid(fuser, value, range(fuser.values.type_of(value).rank)))
    for pair in waiting:
        _overwrite(fuser, *pair)
    _set(fuser, sizes)


def _overwrite(fuser: Fuser, value: int, buffer: int) -> None:
    kind = fuser.values.type_of(value)
    _make_room(fuser, buffer, kind.element_count)
    fuser.store(value, Stored(buffer, dense_view(kind.shape)))


def _may_overwrite(
    fuser: Fuser, value: int, buffer: int, waiting: Sequence[tuple[int, int]]
) -> bool:
    """Whether a value can go into a state at once: no other waiting value reads it, nor itself but
    element by element."""
    others = (other for other, _ in waiting if other != value)
    if any(buffer in _reads(fuser, other) for other in others):
        return False
    if buffer not in _reads(fuser, value):
        return True
    deferred = fuser.deferred(value)
    if deferred is None or fuser.values.use_count(value) != 1 or fuser.storage.grows(buffer):
        return False
    return _is_pointwise(fuser, deferred) and all(
        stored.buffer != buffer or stored.view == dense_view(fuser.values.type_of(value).shape)
        for _, stored in deferred.leaves
    )


def _is_pointwise(fuser: Fuser, deferred: Deferred) -> bool:
    ops = fuser.ops_of(deferred)
    return not deferred.anchored and all(
        Trait.ELEMENTWISE in OPS_BY_NAME[op].traits for op in ops if op != "literal"
    )


def _reads(fuser: Fuser, value: int) -> set[int]:
    """Buffers that storing a value reads."""
    deferred = fuser.deferred(value)
    if deferred is not None:
        return {stored.buffer for _, stored in deferred.leaves}
    return {fuser.where(value).buffer}

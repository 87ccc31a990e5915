"""Loads of lanes that lie near each other, which only a run can tell: the span is loaded whole, and
each lane is chosen by its number, since a gather takes some cycles for every lane.

In: an index whose only part that differs between lanes is clamped and has a known reach. Out: the
lanes. Not done here: lanes whose places are known (``spread_loads``), gathers (``memory``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lane_index import emit_lanes, lane_stride, lone_mover
from ingot_compiler.codegen.emit.lanes import lane_numbers
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import (
    Call,
    Dim,
    lone_atom,
    symbol,
    symbols_of,
)
from ingot_compiler.targets.target import Target
from ingot_runtime.lazy_dataclass import dataclass

_LANES = 16
_WINDOWS_MAX = 4  # vectors that are loaded for one
_ONE, _TWO = "llvm.x86.avx512.permvar.sf.512", "llvm.x86.avx512.vpermi2var.ps.512"


@dataclass(frozen=True, slots=True)
class NearLanes:
    """``shared``: what all lanes have of an index; ``own``: what each adds, from 0 to ``last``;
    ``reach``: how far behind the first one that may be."""

    shared: Dim
    own: Dim
    last: Dim
    reach: int


def near_lanes(context: EmitContext, index: Dim) -> NearLanes | None:
    """Read an index; None where it has another form."""
    mover = lone_mover(context, index)
    if mover is None:
        return None
    shared, own = mover
    outer = lone_atom(own)
    if not isinstance(outer, Call) or (outer.function, outer.left) != ("max", 0):
        return None
    inner = lone_atom(outer.right)
    if not isinstance(inner, Call) or inner.function != "min":
        return None
    for place, last in ((inner.right, inner.left), (inner.left, inner.right)):
        reach = _reach(context, place)
        if reach and lane_stride(context, last) == 0:
            return NearLanes(shared, own, last, reach)
    return None


def _reach(context: EmitContext, place: Dim) -> int:
    """That of a symbol to which a number is added, else 0."""
    names = set(symbols_of(place))
    if len(names) != 1 or not isinstance(place - symbol(min(names)), int):
        return 0
    return context.symbols[min(names)].reach


def has_windows(target: Target, element: str, lanes: int, reach: int) -> bool:
    """Whether the machine chooses lanes by number from as many vectors as these lie in."""
    fits = "avx512f" in target.features and element == "float" and lanes == _LANES
    return fits and reach < _LANES * _WINDOWS_MAX


def load_near(context: EmitContext, pointer: LlvmValue, near: NearLanes) -> LlvmValue:
    """The lanes, from the address of what they share; nothing behind ``last`` is read."""
    w = context.writer
    places = emit_lanes(context, near.own)
    first = w.extract(places, 0)
    left = w.convert("trunc", w.sub(emit_index(context, near.last), first), "i32")
    start = w.offset(pointer, first, "float")
    lane = w.convert("trunc", w.binary("sub", places, w.splat(first, _LANES)), "i32")
    windows: list[LlvmValue] = []
    for at in range(0, near.reach + 1, _LANES):
        numbers = w.binary("add", lane_numbers(_LANES, "i32"), constant(at, "i32", _LANES))
        mask = w.compare("sle", numbers, w.splat(left, _LANES))
        windows.append(w.masked_load(w.offset(start, i64(at), "float"), mask, "float"))
    found = _chosen(context, windows[:2], lane)
    if len(windows) > 2:
        is_low = w.compare("slt", lane, constant(2 * _LANES, "i32", _LANES))
        found = w.select(is_low, found, _chosen(context, windows[2:], lane))
    return found


def _chosen(context: EmitContext, windows: list[LlvmValue], lane: LlvmValue) -> LlvmValue:
    """Lanes of one or two vectors, by the last bits of their numbers."""
    name = _ONE if len(windows) == 1 else _TWO
    operands = (windows[0], lane, *windows[1:])
    return context.writer.call(name, operands, "float", _LANES)

"""Looks up bytes in a table of 256 bytes, for all lanes by two instructions.

In: an index whose only part that differs between lanes is a u8. Out: the lanes. Not done here:
tables of fewer entries, machines without such instructions (``memory``: one by one).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.lane_index import lone_mover
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import Dim, Symbol, lone_atom
from ingot_compiler.targets.target import Target
from ingot_runtime.lazy_dataclass import dataclass

_LANES = 64
_LOOK_UP = "llvm.x86.avx512.vpermi2var.qi.512"


@dataclass(frozen=True, slots=True)
class TablePlaces:
    """``shared``: where the table begins; ``own``: which entry each lane has."""

    shared: Dim
    own: LlvmValue


def has_byte_tables(target: Target) -> bool:
    """Whether the machine looks up 64 bytes among 128 by one instruction."""
    return "avx512vbmi" in target.features


def table_places(context: EmitContext, index: Dim) -> TablePlaces | None:
    """Read an index; None where it has another form."""
    mover = lone_mover(context, index)
    atom = lone_atom(mover[1]) if mover else None
    byte = context.symbols[atom.name].byte if isinstance(atom, Symbol) else None
    return TablePlaces(mover[0], byte) if mover and byte else None


def look_up_bytes(context: EmitContext, table: LlvmValue, places: LlvmValue) -> LlvmValue:
    """The bytes at ``places`` (u8) of the 256 that ``table`` points to."""
    w, lanes = context.writer, places.lanes
    wide = places
    if lanes < _LANES:
        wide = w.shuffle(places, [lane % lanes for lane in range(_LANES)])
    parts = [w.load(w.offset(table, i64(at), "i8"), "i8", _LANES) for at in range(0, 256, _LANES)]
    low, high = (
        w.call(_LOOK_UP, (left, wide, right), "i8", _LANES)
        for left, right in (parts[:2], parts[2:])
    )
    is_high = w.compare("slt", wide, constant(0, "i8", _LANES))
    found = w.select(is_high, high, low)
    return found if lanes == _LANES else w.shuffle(found, range(lanes))

"""How the states of a call lie: in one memory, input and output, or apart.

In: a ``HoldState`` step. Out: the instructions that bind its symbols. Not done here: what reads them
(kernels, by their views), the memory (the loader).
"""

from __future__ import annotations

from ingot_compiler.host_program.main_assembler import Assembler
from ingot_compiler.lowering.groups.fused import HeldPair, HoldState

_APART = (
    "the states of a call lie in one memory each, with room for as many rows, or none of them does"
)


def hold_state(out: Assembler, step: HoldState) -> None:
    """Ask the caller's struct for each pair: all must lie alike."""
    first, *others = step.pairs
    capacity, moved = _lies(out, step, first)
    for pair in others:
        other_capacity, other_moved = _lies(out, step, pair)
        alike = out.binary(
            "mul", out.binary("eq", capacity, other_capacity), out.binary("eq", moved, other_moved)
        )
        out.require(alike, _APART)
    past = out.dim(step.past)
    apart = out.binary("mul", moved, past)
    together = out.binary("mul", out.binary("sub", out.dim(1), moved), capacity)
    values = (capacity, out.binary("add", apart, together), moved)
    zero = out.dim(0)
    for name, value in zip(step.symbols, values, strict=True):
        register = out.changing(name)
        out.emit("add", register, value, zero)
        out.bind(name, register)


def _lies(out: Assembler, step: HoldState, pair: HeldPair) -> tuple[int, int]:
    """Registers with the rows that there is memory for, and 1 where the two lie apart. The caller's
    memory holds all rows: ``begin`` has checked that."""
    held = out.register()
    out.emit("held_bytes", held, pair.input, pair.output)
    own = out.binary("floordiv", held, out.dim(pair.row_bytes))
    return out.binary("max", own, out.dim(step.rows)), out.binary("le", held, out.dim(0))

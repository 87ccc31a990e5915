"""Tables of 16 numbers in a register, from which AVX-512 looks up all lanes in one instruction.

In: ``Number``. Out: ``Number``. Not done here: what the tables hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.number import Number
from ingot_compiler.codegen.llvm_value import constants

TABLE_SIZE = 16


def has_table(x: Number) -> bool:
    """Whether the machine looks up all lanes of ``x`` in a register: f32 and AVX-512."""
    fits = x.operand.lanes == TABLE_SIZE and not x.is_double
    return fits and "avx512f" in x.writer.target.features


def look_up(table: Sequence[float], index: Number) -> Number:
    """``table[index % 16]``; ``table`` has 16 numbers that f32 holds, ``index`` is an i32."""
    w, operands = index.writer, (constants(table, "float"), index.operand)
    return Number(w, w.call("llvm.x86.avx512.permvar.sf.512", operands, "float", TABLE_SIZE))

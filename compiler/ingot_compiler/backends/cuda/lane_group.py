"""Eight threads that run one function of vectors: which lanes each has, and by which values it
knows.

In: nothing. Out: ``LANES``, the values that every thread has. Not done here:
instructions (``thread_function``), the start of a kernel, which gives these values (``kernel_ir``).

A vector of 8 * P lanes is P neighbouring elements in each thread, so that eight threads read 8 * P
elements that lie beside each other. A vector of fewer lanes than threads is in every thread whose
number is the lane's modulo the lanes: the same numbers several times. Scalars are the same in all
threads of a group.
"""

from __future__ import annotations

from ingot_compiler.codegen.llvm_value import LlvmValue, constant

LANES = 8
LANE = LlvmValue("%g.lane", "i32")
"""0 to 7."""
LANE64 = LlvmValue("%g.lane64", "i64")
MASK = LlvmValue("%g.mask", "i32")
"""The bits of the group's threads within their warp."""
SEGMENT = constant(32 - LANES << 8 | 31, "i32")
"""The operand of ``shfl`` by which lanes are counted within a group."""


def pieces_of(lanes: int) -> int:
    """How many elements of a vector each thread has."""
    return max(1, lanes // LANES)


def element_of(thread: int, piece: int, lanes: int) -> int:
    """Which lane of a vector a thread has as its piece of this number."""
    return thread * pieces_of(lanes) + piece if lanes >= LANES else thread % lanes


def thread_of(element: int, lanes: int) -> tuple[int, int]:
    """Which thread has a lane of a vector, and as which piece: the first one, if several."""
    return divmod(element, pieces_of(lanes)) if lanes >= LANES else (element, 0)

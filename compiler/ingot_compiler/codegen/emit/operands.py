"""Operands that need no instruction: integers of addresses, zeros, and the names of their types.

In: numbers. Out: ``LlvmValue`` constants. Not done here: lanes (``lanes``), instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ingot_compiler.codegen.llvm_value import LlvmValue, constant

Operands = tuple[LlvmValue, ...]
Round = Callable[[LlvmValue, Operands], Operands]  # a loop's body: index, carried -> carried


@cache  # a kernel names few numbers, and names them often
def i64(number: int) -> LlvmValue:
    """An integer of the type of indices and extents."""
    return constant(number, "i64")


ZERO = i64(0)


def zeros(element: str, lanes: int) -> LlvmValue:
    """0 in every lane."""
    return constant(0, element, lanes)

"""How a reduction combines: its identity, one step, and the final order of partial results.

In: partial results. Out: their combination. Not done here: the loops (``reduce``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.codegen.emit.convert import REGISTER, compute_dtype
from ingot_compiler.codegen.emit.math import FUNCTIONS
from ingot_compiler.codegen.llvm_value import LlvmValue, constant, element_bits
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType
from ingot_runtime.lazy_dataclass import dataclass

_COMBINERS = {"sum": "add", "product": "mul", "max": "max", "min": "min"}
_INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Combiner:
    """Combines values of ``dtype`` in register form by ``function``, one of ``Reduce``."""

    writer: Writer
    function: str
    dtype: DType

    def identity(self, lanes: int) -> LlvmValue:
        """The value that changes nothing: 0, 1, the least or the greatest value."""
        return constant(_identity(self.function, self.dtype), REGISTER[self.dtype], lanes)

    def pair(self, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """One step of the reduction."""
        w = self.writer
        if self.dtype == "bool":
            return w.binary("or" if self.function in ("sum", "max") else "and", left, right)
        if self.function == "max_number":
            return w.select(w.compare("ogt", right, left), right, left)
        return FUNCTIONS[_COMBINERS[self.function]](w, compute_dtype(self.dtype), (left, right))

    def extreme(self, values: Sequence[LlvmValue]) -> LlvmValue:
        """The greatest or the least of floats, NaN if one is: two are looked at by one comparison,
        and the first one, where it is NaN, is never replaced."""
        w, predicate = self.writer, "ogt" if self.function == "max" else "olt"
        found, rest = values[0], values[1:]
        for value in rest:
            found = w.select(w.compare(predicate, value, found), value, found)
        pairs = zip(rest[::2], [*rest[1::2], *rest[:1]], strict=False)
        tests = [w.compare("uno", *pair) for pair in pairs]
        some = tests[0]
        for test in tests[1:]:
            some = w.binary("or", some, test)
        return w.select(some, w.splat(constant(math.nan, REGISTER[self.dtype]), found.lanes), found)

    def partials(self, values: Sequence[LlvmValue]) -> LlvmValue:
        """A balanced tree over neighbours; their number is a power of two."""
        while len(values) > 1:
            values = [self.pair(*two) for two in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    def lanes(self, total: LlvmValue) -> LlvmValue:
        """Lane j with lane j + half, until one is left: a scalar."""
        w, half = self.writer, total.lanes // 2
        while half:
            low, high = w.shuffle(total, range(half)), w.shuffle(total, range(half, 2 * half))
            total = self.pair(low, high)
            half //= 2
        return w.extract(total, 0)


def _identity(function: str, dtype: DType) -> float:
    if function in ("sum", "product"):
        return 0 if function == "sum" else 1
    largest = function in ("max", "max_number")
    if dtype in FLOATS:
        return -_INFINITY if largest else _INFINITY
    bits = element_bits(REGISTER[dtype])
    if dtype in UNSIGNED or dtype == "bool":
        return 0 if largest else (1 << bits) - 1
    return -(1 << bits - 1) if largest else (1 << bits - 1) - 1

"""The part of the range of some keys in which a key lies.

In: keys. Out: statements and values. Not done here: what is done with the parts (``radix_sort``,
``suppress_overlaps``).

The range from the least to the greatest key is cut into parts of a power of two, so that keys which
differ in low bits alone, as scores do, fall into many of them.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.types import DType, dtype_size_bits
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Local, Value
from ingot_compiler.lowering.loops.program import Let, Reduce, Statement
from ingot_runtime.lazy_dataclass import dataclass

PARTS = 256
_PART_BITS = 8
_FLOATS: dict[int, tuple[DType, DType, int, int]] = {
    32: ("u32", "f32", 23, 127),
    64: ("u64", "f64", 52, 1023),
}
"""Bits -> the integer, the float that tells its highest bit: bits of the fraction, bias."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The range of unsigned keys of ``dtype``, once ``statements`` have run."""

    dtype: DType

    @property
    def wide(self) -> DType:
        """The integer that parts are computed in."""
        return self._float[0]

    @property
    def _float(self) -> tuple[DType, DType, int, int]:
        return _FLOATS[max(32, dtype_size_bits(self.dtype))]

    def statements(self, key_at: Callable[[Dim], Value], length: Dim) -> tuple[Statement, ...]:
        """Name the least key, and how far keys are shifted to give parts."""
        wide, real, fraction_bits, bias = self._float
        key = self._wide(key_at(symbol("k")))
        least = Reduce("low", "min", "k", length, wide, (), key, lanes=True)
        most = Reduce("high", "max", "k", length, wide, (), key, lanes=True)
        spread = Apply("sub", (Local("high", wide), Local("low", wide)), wide)
        bits = Apply("bit_cast", (Apply("cast", (spread,), real),), wide)
        exponent = Apply("shift_right", (bits, Constant(fraction_bits, wide)), wide)
        fitting = Constant(bias + _PART_BITS - 1, wide)
        shift = Apply("sub", (Apply("max", (exponent, fitting), wide), fitting), wide)
        return (least, most, Let("shift", shift))

    def part(self, key: Value) -> Value:
        """The part of a key, from 0 to ``PARTS - 1``."""
        above = Apply("sub", (self._wide(key), Local("low", self.wide)), self.wide)
        return Apply("shift_right", (above, Local("shift", self.wide)), self.wide)

    def _wide(self, key: Value) -> Value:
        return key if self.dtype == self.wide else Apply("cast", (key,), self.wide)

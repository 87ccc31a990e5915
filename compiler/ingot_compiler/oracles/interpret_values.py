"""Evaluates the values of a loop program on flat arrays, one element at a time.

In: a value, the buffers, what its symbols and names are. Out: a number. Not done here: statements
(``interpret_loops``), functions of scalars (``interpret_scalars``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from ingot_compiler.ir.dims import evaluate
from ingot_compiler.ir.types import FLOATS, DType
from ingot_compiler.lowering.loops.interpret_scalars import (
    Number,
    apply_function,
    bf16_bits,
    bf16_number,
    bit_cast,
    cast,
    quantize,
    round_to,
)
from ingot_compiler.lowering.loops.loop_values import (
    Apply,
    Compare,
    Constant,
    FromIndex,
    Load,
    Local,
    Value,
)
from ingot_runtime.lazy_dataclass import dataclass

Array = npt.NDArray[Any]
Symbols = Mapping[str, int]
"""What index expressions name: scalars, the variables of loops, indices."""
Names = Mapping[str, Number]
"""What ``Local`` values name."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The kernel's buffers; each array has the dtype of its buffer (bf16 as uint16)."""

    arrays: Sequence[Array]
    dtypes: Sequence[DType]

    def load(self, buffer: int, index: int) -> Number:
        """An element as a number."""
        if index < 0:
            raise IndexError(f"element {index} of buffer {buffer}")
        number: Number = self.arrays[buffer][index].item()
        return bf16_number(int(number)) if self.dtypes[buffer] == "bf16" else number

    def store(self, buffer: int, index: int, number: Number) -> None:
        """Write a number, converted to the buffer's dtype."""
        if index < 0:
            raise IndexError(f"element {index} of buffer {buffer}")
        number = cast(number, self.dtypes[buffer])
        is_bits = self.dtypes[buffer] == "bf16"
        self.arrays[buffer][index] = bf16_bits(number) if is_bits else number

    def value(self, value: Value, symbols: Symbols, names: Names) -> Number:
        """Evaluate; only the chosen arm of a ``select`` is evaluated, so it may guard a load."""
        match value:
            case Load(buffer, index):
                return self.load(buffer, evaluate(index, symbols))
            case Constant(number, dtype):
                return round_to(number, dtype) if dtype in FLOATS else cast(number, dtype)
            case FromIndex(index, dtype):
                return cast(evaluate(index, symbols), dtype)
            case Compare(function, left, right):
                operands = evaluate(left, symbols), evaluate(right, symbols)
                return apply_function(function, "i64", operands)
            case Local(name, _):
                return names[name]
            case Apply("select", (condition, left, right), _):
                chosen = left if self.value(condition, symbols, names) else right
                return self.value(chosen, symbols, names)
            case Apply(_, arguments, _):
                return self._apply(value, [self.value(item, symbols, names) for item in arguments])

    def _apply(self, value: Apply, numbers: Sequence[Number]) -> Number:
        if value.function == "cast":
            return cast(numbers[0], value.dtype)
        if value.function == "quantize":
            return quantize(numbers, value.dtype)
        dtype = self._dtype(value.arguments[0])
        if value.function == "bit_cast":
            return bit_cast(numbers[0], dtype, value.dtype)
        return round_to(apply_function(value.function, dtype, numbers), value.dtype)

    def _dtype(self, value: Value) -> DType:
        match value:
            case Load():
                return self.dtypes[value.buffer]
            case Compare():
                return "bool"
            case _:
                return value.dtype

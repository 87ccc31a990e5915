"""Rows that a kernel quantizes for its own product: where their integers lie, and the arithmetic.

In: sizes; a row's values, the least and the greatest of them and 0. Out: types of the workspace,
values. Not done here: the loops (``kinds.recurrent``). Source: ONNX DynamicQuantizeLinear-11.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.fused import Operand
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Value
from ingot_runtime.lazy_dataclass import dataclass

_STEPS = 255


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """The workspace: [.., columns] and, for each row, what its integers stand for."""

    integers: Operand
    scale: Operand
    zero: Operand


def quantized_rows(rows: tuple[Dim, ...], columns: Dim) -> tuple[TensorType, ...]:
    """The types of ``QuantizedRows``."""
    parts: tuple[tuple[DType, tuple[Dim, ...]], ...] = (
        ("u8", (*rows, columns)),
        ("f32", rows),
        ("i32", rows),
    )
    return tuple(TensorType(dtype, shape) for dtype, shape in parts)


def scale_of(low: Value, high: Value) -> Value:
    """The step between two integers; ``low`` <= 0 <= ``high``."""
    return _float("div", _float("sub", high, low), _number(_STEPS))


def divisor_of(scale: Value) -> Value:
    """The scale; 1 for a row of zeros, of which 0 / 0 would make NaN."""
    is_zero = Apply("equal", (scale, _number(0)), "bool")
    return Apply("select", (is_zero, _number(1), scale), "f32")


def zero_of(low: Value, divisor: Value) -> Value:
    """The integer that stands for 0, in f32."""
    return _limited(_float("round", _float("div", _float("neg", low), divisor)))


def integer_of(x: Value, divisor: Value, zero: Value) -> Value:
    """What stands for ``x``."""
    rounded = _float("round", _float("div", x, divisor))
    return Apply("cast", (_limited(_float("add", rounded, zero)),), "u8")


def _limited(x: Value) -> Value:
    return _float("min", _float("max", x, _number(0)), _number(_STEPS))


def _float(function: str, *arguments: Value) -> Value:
    return Apply(function, arguments, "f32")


def _number(value: float) -> Value:
    return Constant(float(value), "f32")

"""The element rule of a cast: where what it converts is rounded, moved by a zero point and limited,
all of it is one function.

In: a cast, the nodes of its group. Out: ``quantize(x, scale, zero, low, high)``, which is
``cast(min(max(round(x / scale) + zero, low), high))``; or the cast alone. Not done here: the
arithmetic (``codegen/emit/quantize``).

Zero point and limits are whole numbers of at most 16 bits, which a zero point's type says: sums of
them are exact in f32, and the limits may be moved before the rounding.
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.loop_values import NARROW, Apply, Constant, Value
from ingot_compiler.lowering.ops.element import ElementScope, apply_rule
from ingot_runtime.lazy_dataclass import dataclass

_RANGES: tuple[tuple[DType, range], ...] = (
    ("i16", range(-(1 << 15), 1 << 15)),
    ("u16", range(1 << 16)),
)


@dataclass(frozen=True, slots=True)
class _Limited:
    """A value between two whole numbers."""

    value: int
    low: int
    high: int


def whole_dtype(number: float) -> DType | None:
    """A type of 16 bits that a number is one of; None for any other."""
    if not float(number).is_integer():
        return None
    return next((dtype for dtype, numbers in _RANGES if int(number) in numbers), None)


def cast(elements: ElementScope, node: Node, space: Space) -> Value:
    """``quantize`` where the cast ends one, else ``cast``."""
    dtype = elements.dtype(node.results[0])
    is_real = elements.dtype(node.operands[0]) == "f32"
    found = _limited(elements, node.operands[0]) if is_real and dtype in NARROW else None
    if found is None:
        return apply_rule("cast")(elements, node, space)
    moved = _made_by(elements, found.value, "add")
    for value, offset in (moved.operands, moved.operands[::-1]) if moved else ((found.value, -1),):
        rounded = _made_by(elements, value, "round")
        zero = _whole(elements, offset, space) if rounded and moved else Constant(0, "i16")
        if rounded and zero is not None:
            return Apply(
                "quantize",
                (
                    *_quotient(elements, rounded.operands[0], space),
                    zero,
                    Constant(float(found.low), "f32"),
                    Constant(float(found.high), "f32"),
                ),
                dtype,
            )
    return apply_rule("cast")(elements, node, space)


def _limited(elements: ElementScope, value: int) -> _Limited | None:
    """What ``min(max(x, low), high)`` limits, also where ``relu`` says the first."""
    above = _with_number(elements, value, "min")
    if above is None:
        return None
    rectified = _made_by(elements, above[0], "relu")
    below = (rectified.operands[0], 0) if rectified else _with_number(elements, above[0], "max")
    return _Limited(*below, above[1]) if below and below[1] <= above[1] else None


def _with_number(elements: ElementScope, value: int, op: OpName) -> tuple[int, int] | None:
    """The other operand of an op, and the literal that is one: a whole number of 16 bits."""
    node = _made_by(elements, value, op)
    for other, limit in (node.operands, node.operands[::-1]) if node else ():
        literal = _made_by(elements, limit, "literal")
        number = literal.numbers("value")[0] if literal else None
        if number is not None and whole_dtype(number):
            return other, int(number)
    return None


def _whole(elements: ElementScope, value: int, space: Space) -> Value | None:
    """A zero point as the integer that it is; None where that is not seen."""
    widened = _made_by(elements, value, "cast")
    if widened and elements.dtype(widened.operands[0]) in NARROW:
        return elements.value(widened.operands[0], space)
    literal = _made_by(elements, value, "literal")
    number = literal.numbers("value")[0] if literal else None
    dtype = None if number is None else whole_dtype(number)
    return None if number is None or dtype is None else Constant(int(number), dtype)


def _quotient(elements: ElementScope, value: int, space: Space) -> tuple[Value, Value]:
    """What is rounded, as a number and its divisor."""
    quotient = _made_by(elements, value, "div")
    if quotient is None:
        return elements.value(value, space), Constant(1.0, "f32")
    x, scale = quotient.operands
    return elements.value(x, space), elements.value(scale, space)


def _made_by(elements: ElementScope, value: int, op: OpName) -> Node | None:
    """The node of the group that computes a value here, if it is of that op."""
    maker = elements.maker(value)
    return maker if maker and maker.op == op else None

"""Canonical forms of elementwise ops: neutral elements and exact respellings.

In: a rewriter and a node. Out: the value that stands for its result, or None. Not done here:
movement ops, the order of operands (``operands``).

Every rule is exact: same bits for every float, NaN, infinity and zero of either sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import FLOATS, SIGNED, UNSIGNED, DType, dtype_size_bits
from ingot_compiler.passes.match import scalar
from ingot_compiler.passes.rewrite import Rewriter

ElementwiseRule = Callable[[Rewriter, Node], int | None]

# bf16 has the exponents of f32, f16 has not.
_WIDER_FLOATS = {"f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64",), "f64": ()}
_EXACT_BITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_SMALLEST_NORMAL = 2.0**-126


def _is_same(found: float | None, number: float) -> bool:
    """Whether a number was found and is ``number``, with its sign."""
    if found is None or found != number:
        return False
    return math.copysign(1, found) == math.copysign(1, number)


def _neutral(number: float) -> ElementwiseRule:
    """``x op number`` is ``x``; the sign of a zero counts."""

    def rule(state: Rewriter, node: Node) -> int | None:
        return node.operands[0] if _is_same(scalar(state, node.operands[1]), number) else None

    return rule


def _add_zero(state: Rewriter, node: Node) -> int | None:
    # x + 0.0 turns -0.0 into 0.0; only -0.0 is neutral for floats.
    number = -0.0 if state.type_of(node.operands[0]).dtype in FLOATS else 0
    return _neutral(number)(state, node)


def _sub_number(state: Rewriter, node: Node) -> int | None:
    """``x - c`` becomes ``x + (-c)``, the same number for floats and signed integers."""
    dtype = state.type_of(node.operands[0]).dtype
    number = scalar(state, node.operands[1])
    if number is None or not (dtype in FLOATS or (dtype in SIGNED and number > _smallest(dtype))):
        return None
    if dtype in FLOATS and math.isnan(number):
        return None
    negated = state.literal(-number, dtype, node.source)
    return state.emit("add", (node.operands[0], negated), {}, node.source)


def _smallest(dtype: DType) -> int:
    return -(1 << (dtype_size_bits(dtype) - 1))


def _div_power_of_two(state: Rewriter, node: Node) -> int | None:
    """``x / c`` becomes ``x * (1 / c)`` when ``c`` is a power of two with a normal reciprocal:
    exact."""
    dtype, number = state.type_of(node.operands[0]).dtype, scalar(state, node.operands[1])
    if dtype not in ("f32", "f64") or number is None or not math.isfinite(number):
        return None
    is_power = abs(math.frexp(number)[0]) == 0.5
    if not is_power or not _SMALLEST_NORMAL <= abs(number) <= 1 / _SMALLEST_NORMAL:
        return None
    inverse = state.literal(1 / number, dtype, node.source)
    return state.emit("mul", (node.operands[0], inverse), {}, node.source)


def _one_over(state: Rewriter, node: Node) -> int | None:
    """``1 / x`` is ``reciprocal``."""
    if state.type_of(node.operands[1]).dtype not in FLOATS or scalar(state, node.operands[0]) != 1:
        return None
    return state.emit("reciprocal", node.operands[1:], {}, node.source)


def _power(state: Rewriter, node: Node) -> int | None:
    """``x ** 1``, ``x ** 2`` and ``x ** -1`` without ``pow``."""
    base, exponent = node.operands
    number = scalar(state, exponent)
    if number == 1:
        return base
    if number == 2:
        return state.emit("mul", (base, base), {}, node.source)
    if number == -1 and state.type_of(base).dtype in FLOATS:
        return state.emit("reciprocal", (base,), {}, node.source)
    return None


def _max_zero(state: Rewriter, node: Node) -> int | None:
    """``max(x, 0)`` is ``relu``."""
    number = scalar(state, node.operands[1])
    if state.type_of(node.operands[0]).dtype not in FLOATS or not _is_same(number, 0):
        return None
    return state.emit("relu", node.operands[:1], {}, node.source)


def _cast(state: Rewriter, node: Node) -> int | None:
    """A cast to the same type, and the second of two casts when the first loses nothing."""
    (operand,) = node.operands
    target = node.text("dtype")
    if state.type_of(operand).dtype == target:
        return operand
    inner = state.made_by(operand, "cast")
    if inner is None:
        return None
    first, middle = state.type_of(inner.operands[0]).dtype, state.type_of(operand).dtype
    through_floats = first not in FLOATS and middle in FLOATS and target not in FLOATS
    if not _holds_all(middle, first) or (through_floats and target != first):
        return None
    return state.emit("cast", inner.operands, {"dtype": target}, node.source)


def _holds_all(wide: DType, narrow: DType) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``."""
    if narrow in ("bool", wide):
        return True
    if narrow in FLOATS:
        return wide in _WIDER_FLOATS[narrow]
    bits = dtype_size_bits(narrow) - (narrow in SIGNED)
    if wide in FLOATS:
        # f16 ends at 65504; no integer type with 11 bits or fewer reaches that.
        return bits <= _EXACT_BITS[wide]
    wide_bits = dtype_size_bits(wide) - (wide in SIGNED)
    return wide != "bool" and bits <= wide_bits and not (narrow in SIGNED and wide in UNSIGNED)


def _undo(op: OpName) -> ElementwiseRule:
    """The op applied twice is nothing."""

    def rule(state: Rewriter, node: Node) -> int | None:
        inner = state.made_by(node.operands[0], op)
        return inner.operands[0] if inner else None

    return rule


def _once(op: OpName) -> ElementwiseRule:
    """The op applied twice is the op applied once."""

    def rule(state: Rewriter, node: Node) -> int | None:
        return node.operands[0] if state.made_by(node.operands[0], op) else None

    return rule


def _select(state: Rewriter, node: Node) -> int | None:
    """A choice between equal values, or by a literal."""
    condition, chosen, other = node.operands
    if chosen == other:
        return chosen
    known = scalar(state, condition)
    return None if known is None else chosen if known else other


def _required(state: Rewriter, node: Node) -> int | None:
    """A condition that is true asks for nothing."""
    return node.operands[0] if scalar(state, node.operands[1]) is True else None


def _same_operands(_state: Rewriter, node: Node) -> int | None:
    return node.operands[0] if node.operands[0] == node.operands[1] else None


RULES: Mapping[str, tuple[ElementwiseRule, ...]] = {
    "add": (_add_zero,),
    "sub": (_neutral(0), _sub_number),
    "mul": (_neutral(1),),
    "div": (_neutral(1), _one_over, _div_power_of_two),
    "pow": (_power,),
    "max": (_same_operands, _max_zero),
    "min": (_same_operands,),
    "cast": (_cast,),
    "neg": (_undo("neg"),),
    "logical_not": (_undo("logical_not"),),
    "bitwise_not": (_undo("bitwise_not"),),
    "relu": (_once("relu"),),
    "abs": (_once("abs"),),
    "ceil": (_once("ceil"),),
    "floor": (_once("floor"),),
    "require": (_required,),
    "select": (_select,),
    "logical_and": (_neutral(True), _same_operands),
    "logical_or": (_neutral(False), _same_operands),
    "bitwise_or": (_neutral(0), _same_operands),
    "bitwise_xor": (_neutral(0),),
    "bitwise_and": (_same_operands,),
}

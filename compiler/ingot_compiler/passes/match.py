"""What patterns ask of a value: which number it is, which factor it carries, whether it is
something plus a number.

In: a rewriter and a value. Out: numbers and the values beneath them. Not done here: any rewrite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.passes.rewrite import Rewriter

_RELATIVE_TOLERANCE = 1e-6
"""A few units in the last place of f32: the same number, written by another exporter."""
_FACTORS_MAX = 16


def scalar(state: Rewriter, value: int) -> float | None:
    """The number that all elements of a literal are, through reshapes and broadcasts; None for
    anything else."""
    node = state.producer(value)
    while node and node.op in ("reshape", "broadcast_to"):
        node = state.producer(node.operands[0])
    if node is None or node.op != "literal":
        return None
    literal = node.results[0]
    if literal not in state.numbers:
        numbers = node.numbers("value")
        same = bool(numbers) and numbers.count(numbers[0]) == len(numbers)
        state.numbers[literal] = numbers[0] if same and not math.isnan(numbers[0]) else None
    return state.numbers[literal]


def near(found: float, number: float) -> bool:
    """Whether two numbers are the same up to the rounding of f32."""
    return found == number or (
        math.isfinite(number) and abs(found - number) <= _RELATIVE_TOLERANCE * abs(number)
    )


def is_number(state: Rewriter, value: int, number: float) -> bool:
    """Whether ``value`` is the literal ``number``, up to the rounding of f32."""
    found = scalar(state, value)
    return found is not None and near(found, number)


def orders(node: Node) -> Iterator[tuple[int, int]]:
    """Both orders of a binary node's operands."""
    left, right = node.operands
    yield left, right
    yield right, left


def with_number(state: Rewriter, node: Node | None) -> tuple[int, float] | None:
    """``(x, c)`` of ``x op c`` or ``c op x`` for a commutative node and a literal ``c``."""
    if node:
        for other, number in orders(node):
            found = scalar(state, number)
            if found is not None:
                return other, found
    return None


def plus_number(state: Rewriter, value: int, number: float) -> int | None:
    """``x`` when ``value`` is ``x + number``."""
    found = with_number(state, state.made_by(value, "add"))
    return found[0] if found and near(found[1], number) else None


def without_factor(state: Rewriter, value: int, until: int | None = None) -> tuple[int, float]:
    """``(x, c)`` when ``value`` is ``x * c`` or ``x / c`` (then 1/c) for literals, repeatedly;
    ``(value, 1)`` otherwise.

    The walk ends at ``until``, which may itself be a product.
    """
    factor = 1.0
    while value != until:
        product = with_number(state, state.made_by(value, "mul"))
        if product:
            value, factor = product[0], factor * product[1]
            continue
        quotient = state.made_by(value, "div") if state.type_of(value).dtype in FLOATS else None
        divisor = scalar(state, quotient.operands[1]) if quotient else None
        if quotient is None or not divisor:
            break
        value, factor = quotient.operands[0], factor / divisor
    return value, factor


def square_of(state: Rewriter, value: int) -> int | None:
    """``x`` when ``value`` is ``x * x`` or ``pow(x, 2)``."""
    product = state.made_by(value, "mul")
    if product and product.operands[0] == product.operands[1]:
        return product.operands[0]
    power = state.made_by(value, "pow")
    return power.operands[0] if power and is_number(state, power.operands[1], 2.0) else None


def root_of(state: Rewriter, value: int) -> int | None:
    """``x`` when ``value`` is ``sqrt(x)`` or ``pow(x, 0.5)``."""
    root = state.made_by(value, "sqrt")
    if root:
        return root.operands[0]
    power = state.made_by(value, "pow")
    return power.operands[0] if power and is_number(state, power.operands[1], 0.5) else None


def reciprocal_of(state: Rewriter, value: int) -> int | None:
    """``x`` when ``value`` is ``1 / x``."""
    node = state.made_by(value, "reciprocal")
    if node:
        return node.operands[0]
    quotient = state.made_by(value, "div")
    return (
        quotient.operands[1] if quotient and is_number(state, quotient.operands[0], 1.0) else None
    )


def quotient_by_root(state: Rewriter, root: Node) -> tuple[int, int] | None:
    """``(x, y)`` when the node is ``x / sqrt(y)``, ``x * (1 / sqrt(y))`` or
    ``x * pow(y, -0.5)``."""
    if root.op == "div":
        inner = root_of(state, root.operands[1])
        return None if inner is None else (root.operands[0], inner)
    if root.op != "mul":
        return None
    for other, inverse in orders(root):
        inner = _inverse_root_of(state, inverse)
        if inner is not None:
            return other, inner
    return None


def _inverse_root_of(state: Rewriter, value: int) -> int | None:
    inverted = reciprocal_of(state, value)
    if inverted is not None:
        return root_of(state, inverted)
    root = root_of(state, value)
    if root is not None:
        return reciprocal_of(state, root)
    power = state.made_by(value, "pow")
    return power.operands[0] if power and is_number(state, power.operands[1], -0.5) else None


def trailing_mean(state: Rewriter, value: int) -> tuple[int, int] | None:
    """``(x, axis)`` when ``value`` is the mean of ``x`` over all axes from ``axis`` on, dimensions
    kept."""
    node = state.made_by(value, "reduce")
    if node is None or node.text("function") != "mean" or not node.flag("keepdims"):
        return None
    axes, rank = node.ints("axes"), state.type_of(node.operands[0]).rank
    first = rank - len(axes)
    return (node.operands[0], first) if axes and axes == tuple(range(first, rank)) else None


def factors(state: Rewriter, node: Node) -> list[int]:
    """The values that a tree of multiplications multiplies, from left to right.

    Shared products are not opened, nor those of a tree with more factors than any pattern has.
    """
    found: list[int] = []
    waiting = list(reversed(node.operands))
    while waiting:
        operand = waiting.pop()
        few = len(found) + len(waiting) < _FACTORS_MAX
        inner = state.made_by(operand, "mul") if few and state.is_used_once(operand) else None
        if inner:
            waiting += reversed(inner.operands)
        else:
            found.append(operand)
    return found

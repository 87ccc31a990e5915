"""Pass: the Gaussian error linear unit, in the spellings that exporters decompose it into.

In: a graph. Out: a graph with ``gelu`` nodes. Not done here: ``x * sigmoid(1.702 * x)``, another
function.

``x * 0.5 * (1 + erf(x / sqrt 2))`` and
``x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))``, with the products in any order, or
``x * (0.5 * erf(x / sqrt 2) + 0.5)``. Source: ONNX Gelu-20.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.passes.match import (
    factors,
    is_number,
    near,
    orders,
    plus_number,
    scalar,
    square_of,
    with_number,
    without_factor,
)
from ingot_compiler.passes.rewrite import Rewriter, RootOps, rewrite

ROOTS: RootOps = ("mul",)
_CUBE_FACTOR = 0.044715


def fuse_gelu(graph: Graph) -> Graph:
    """Recognise GELU where its inner values have no other use."""
    return rewrite(graph, rule, ROOTS)


def rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    """What stands for a product that is GELU."""
    if node.op != "mul":
        return None
    parts = factors(state, node)
    numbers = [scalar(state, part) for part in parts]
    values = [part for part, number in zip(parts, numbers, strict=True) if number is None]
    scale = math.prod(number for number in numbers if number is not None)
    if len(values) != 2:
        return None
    for x, curve in (values, values[::-1]):
        approximate = _curve(state, curve, x, scale)
        region = state.interior(node, (x,)) if approximate else None
        if approximate and region:
            return (state.emit("gelu", (x,), {"approximate": approximate}, region.source),)
    return None


def _curve(state: Rewriter, value: int, x: int, scale: float) -> str | None:
    """Which function of ``x`` ``scale * value`` is: twice the normal distribution's, exact or by
    tanh."""
    step = plus_number(state, value, 0.5 / scale) if scale else None
    if step is None:
        return None
    height = 1.0
    if near(scale, 1.0):
        found = with_number(state, state.made_by(step, "mul"))
        if found is None:
            return None
        step, height = found
    if not near(height * scale, 0.5):
        return None
    erf, tanh = state.made_by(step, "erf"), state.made_by(step, "tanh")
    if erf and _is_scaled(state, erf.operands[0], x, math.sqrt(0.5)):
        return "none"
    return "tanh" if tanh and _is_tanh_argument(state, tanh.operands[0], x) else None


def _is_scaled(state: Rewriter, value: int, x: int, factor: float) -> bool:
    inner, found = without_factor(state, value, x)
    return inner == x and near(found, factor)


def _is_tanh_argument(state: Rewriter, value: int, x: int) -> bool:
    inner, factor = without_factor(state, value)
    if not near(factor, math.sqrt(2 / math.pi)):
        return False
    total = state.made_by(inner, "add")
    if total and any(
        left == x and _is_cube(state, right, x, _CUBE_FACTOR) for left, right in orders(total)
    ):
        return True
    # x * (1 + 0.044715 * x^2)
    product = state.made_by(inner, "mul")
    return product is not None and any(
        left == x and _is_square(state, plus_number(state, right, 1.0), x)
        for left, right in orders(product)
    )


def _is_square(state: Rewriter, value: int | None, x: int) -> bool:
    if value is None:
        return False
    square, factor = without_factor(state, value)
    return square_of(state, square) == x and near(factor, _CUBE_FACTOR)


def _is_cube(state: Rewriter, value: int, x: int, factor: float) -> bool:
    """Whether ``value`` is ``factor * x * x * x`` in any order, or with ``pow(x, 3)``."""
    node = state.made_by(value, "mul")
    if node is None:
        return False
    product, degree = 1.0, 0
    for part in factors(state, node):
        number = scalar(state, part)
        power = state.made_by(part, "pow")
        if number is not None:
            product *= number
        elif power and power.operands[0] == x and is_number(state, power.operands[1], 3.0):
            degree += 3
        elif part == x:
            degree += 1
        else:
            return False
    return degree == 3 and near(product, factor)

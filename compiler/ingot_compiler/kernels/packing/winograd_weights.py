"""Weights of convolutions in the form that Winograd's algorithm multiplies, as an expression that
the build folds.

In: the expression of weights ``[O, C, rows, columns]``, or ``[O, C, columns]``. Out: that of
``[ceil(O / 16), frequency, block of taps * C, 16]``. Not done here: evaluating it, the transforms
of images (``winograd.winograd_transforms``), the points (``winograd_points``).

Everything is computed in f64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import TensorType
from ingot_compiler.kernels.packing.packing import extend
from ingot_compiler.kernels.packing.winograd_points import points_of_frequencies
from ingot_compiler.kernels.tiles import panel_columns
from ingot_compiler.kernels.winograd_tiles import TAPS, WinogradShape

Row = tuple[tuple[int, int, int], int]
"""The factors of three taps, and what their sum is divided by."""


def winograd_weights(weights: Graph, shape: WinogradShape) -> Graph:
    """Transform both axes, each frequency on its own, and lay panels of output channels beside each
    other.

    No value in f64 is as large as the weights of all frequencies: the build has memory for the
    result and its parts, both in f32, and for the weights themselves in f64.
    """
    expression = extend(_panels(weights), "cast", {"dtype": "f64"})
    builder = GraphBuilder(())
    for node in expression.nodes:
        builder.add(node.op, node.operands, node.table)
    (value,) = expression.outputs
    blocks = [_block(builder, value, place, shape) for place in np.ndindex(shape.blocks)]
    frequencies = [_joined(builder, parts) for parts in zip(*blocks, strict=True)]
    return builder.finish((builder.add("concat", frequencies, {"axis": 1}),))


def _block(
    builder: GraphBuilder, value: int, place: tuple[int, ...], shape: WinogradShape
) -> list[int]:
    """The frequencies of a block of taps, [panel, 1, C, 16] each."""
    first = [block * TAPS for block in place]
    return [
        _stored(builder, part)
        for rows in _along(builder, value, 0, first[0], shape)
        for part in _along(builder, rows, 1, first[1], shape)
    ]


def _joined(builder: GraphBuilder, parts: Sequence[int]) -> int:
    """A frequency of all blocks, whose channels follow each other."""
    return parts[0] if len(parts) == 1 else builder.add("concat", parts, {"axis": 2})


def _stored(builder: GraphBuilder, value: int) -> int:
    """A frequency, [1, 1, panel, C, 16] -> [panel, 1, C, 16], rounded once."""
    _, _, panels, channels, width = _sizes(builder.types[value])
    rounded = builder.add("cast", [value], {"dtype": "f32"})
    return builder.add("reshape", [rounded], {"shape": (panels, 1, channels, width)})


def _panels(weights: Graph) -> Graph:
    """[O, C, rows, columns] -> [rows, columns, panel, C, 16], zeros behind O."""
    width = panel_columns("f32")
    columns, channels, *taps = _sizes(weights.types[weights.outputs[0]])
    plane = (columns, channels, *(1, *taps)[-2:])
    weights = extend(weights, "reshape", {"shape": plane})
    expression = extend(weights, "transpose", {"permutation": (2, 3, 1, 0)})
    outer = (*plane[2:], channels)
    panels = -(-columns // width)
    if panels * width > columns:
        after = (0, 0, 0, panels * width - columns)
        pads: dict[str, Attribute] = {"before": (0,) * 4, "after": after, "mode": "constant"}
        expression = extend(expression, "pad", pads, [0.0])
    expression = extend(expression, "reshape", {"shape": (*outer, panels, width)})
    return extend(expression, "transpose", {"permutation": (0, 1, 3, 2, 4)})


def _along(
    builder: GraphBuilder, value: int, axis: int, first: int, shape: WinogradShape
) -> list[int]:
    """Each row in the place of the taps of an axis from ``first`` on; an axis of one tap stays."""
    count = shape.kernel[axis]
    if count == 1:
        return [value]
    taps = [_tap(builder, value, axis, tap) for tap in range(first, min(first + TAPS, count))]
    return [_row(builder, taps, row) for row in _rows(shape.patch[axis])]


def _rows(count: int) -> list[Row]:
    """The taps' polynomial at each point, divided by what the point's frequency of pixels is there;
    at infinity it is the last tap."""
    finite = points_of_frequencies(count).finite
    rows: list[Row] = []
    for point in finite:
        scale = math.prod((point - other for other in finite if other != point), start=Fraction(1))
        factors = [point**power / scale for power in range(3)]
        divisor = math.lcm(*(factor.denominator for factor in factors))
        a, b, c = (int(factor * divisor) for factor in factors)
        rows.append(((a, b, c), divisor))
    return [*rows, ((0, 0, 1), 1)]


def _tap(builder: GraphBuilder, weights: int, axis: int, tap: int) -> int:
    """The weights of one tap of an axis."""
    shape = _sizes(builder.types[weights])
    starts = tuple(tap if each == axis else 0 for each in range(len(shape)))
    sizes = tuple(1 if each == axis else size for each, size in enumerate(shape))
    steps = (1,) * len(shape)
    return builder.add("slice", [weights], {"starts": starts, "steps": steps, "sizes": sizes})


def _row(builder: GraphBuilder, taps: Sequence[int], row: Row) -> int:
    """The sum of the taps that there are by their factors, from the first on, divided at last."""
    factors, divisor = row
    products = [
        tap if factor == 1 else _by(builder, "mul", tap, factor)
        for tap, factor in zip(taps, factors, strict=False)
        if factor
    ]
    if not products:
        return _by(builder, "mul", taps[0], 0)
    total = products[0]
    for product in products[1:]:
        total = builder.add("add", [total, product])
    return total if divisor == 1 else _by(builder, "div", total, divisor)


def _by(builder: GraphBuilder, op: OpName, value: int, number: int) -> int:
    """A value and a number."""
    literal: dict[str, Attribute] = {"dtype": "f64", "shape": (), "value": (float(number),)}
    return builder.add(op, [value, builder.add("literal", [], literal)])


def _sizes(tensor_type: TensorType) -> tuple[int, ...]:
    assert all(isinstance(size, int) for size in tensor_type.shape)
    return tuple(size for size in tensor_type.shape if isinstance(size, int))

"""Instructions after which lanes have other places: shuffles, single lanes, bits seen as another
type.

In: an instruction's operands. Out: texts of the pieces of the result. Not done here: arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingot_compiler.backends.opencl.c_values import (
    LANES_MAX,
    CValue,
    piece_count,
    scalar_name,
    size_bytes,
    type_name,
)
from ingot_compiler.ir.errors import InternalError


def from_lanes(element: str, texts: Sequence[str]) -> list[str]:
    """A vector of scalars."""
    if len(texts) == 1:
        return list(texts)
    lanes = min(len(texts), LANES_MAX)
    starts = range(0, len(texts), LANES_MAX)
    kind = type_name(element, lanes)
    return [f"({kind})({', '.join(texts[at : at + LANES_MAX])})" for at in starts]


def shuffle(left: CValue, right: CValue, mask: str) -> list[str]:
    """``shufflevector``; ``mask`` is the constant of lane numbers, without its type."""
    numbers = [int(number) for number in re.findall(r"i32 (\d+)", mask)]
    if mask == "zeroinitializer":
        numbers = [0] * left.lanes
    lanes = [
        left.lane(number) if number < left.lanes else right.lane(number - left.lanes)
        for number in numbers
    ]
    if len(set(lanes)) == 1 < len(lanes):
        return splat(left.element, len(lanes), lanes[0])
    return from_lanes(left.element, lanes)


def splat(element: str, lanes: int, text: str) -> list[str]:
    """A scalar in every lane."""
    kind = type_name(element, min(lanes, LANES_MAX))
    return [f"({kind})({text})"] * piece_count(lanes)


def any_lane(mask: CValue) -> str:
    """Whether a lane holds: what the bits of a mask are asked for."""
    lanes = (mask.lane(number) for number in range(mask.lanes))
    return f"-({' | '.join(lanes)})"


def seen_as(value: CValue, element: str, lanes: int) -> list[str]:
    """The same bits as another type; pieces may join or part."""
    if value.element == "i1":
        return [any_lane(value)]
    count = piece_count(lanes)
    if count == len(value.pieces):
        kind = type_name(element, min(lanes, LANES_MAX))
        return [f"as_{kind}({piece})" for piece in value.pieces]
    if count == 2 * len(value.pieces):
        wide = f"{scalar_name(element)}{2 * LANES_MAX}"
        return [f"as_{wide}({piece}).{half}" for piece in value.pieces for half in ("lo", "hi")]
    if 2 * count == len(value.pieces):
        wide = f"{scalar_name(value.element)}{2 * LANES_MAX}"
        pairs = zip(value.pieces[::2], value.pieces[1::2], strict=True)
        kind = type_name(element, min(lanes, LANES_MAX))
        return [f"as_{kind}(({wide})({low}, {high}))" for low, high in pairs]
    raise InternalError(f"{value.lanes} x {value.element} seen as {lanes} x {element}")


def multiply_pairs(left: CValue, right: CValue) -> list[str]:
    """Sums of the products of pairs of i16 that lie beside each other, as i32."""
    halves = [
        f"(TO(int4, {a}.even) * TO(int4, {b}.even) + TO(int4, {a}.odd) * TO(int4, {b}.odd))"
        for a, b in zip(left.pieces, right.pieces, strict=True)
    ]
    assert size_bytes(left.element) * 2 == size_bytes("i32")
    if len(halves) == 1:
        return halves
    pairs = zip(halves[::2], halves[1::2], strict=True)
    return [f"(int8)({low}, {high})" for low, high in pairs]

"""Instructions after which lanes have other places: shuffles, masks.

In: an instruction's operands, a dialect. Out: texts of the pieces of the result. Not done here:
arithmetic; bits seen as another type (``dialect``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.values import CValue


def from_lanes(dialect: CDialect, element: str, texts: Sequence[str]) -> list[str]:
    """A vector of scalars."""
    if len(texts) == 1 or dialect.lanes_max == 1:
        return list(texts)
    most = dialect.lanes_max
    starts = range(0, len(texts), most)
    return [dialect.vector(element, texts[at : at + most]) for at in starts]


def shuffle(
    dialect: CDialect, left: CValue, right: CValue, numbers: Sequence[int]
) -> tuple[list[str], list[list[str]]]:
    """``shufflevector``: the pieces of the result, and those that each is made of."""
    places = [
        (left, number) if number < left.lanes else (right, number - left.lanes)
        for number in numbers
    ]
    lanes = [dialect.lane(*place) for place in places]
    most = dialect.piece_lanes(len(lanes))
    reads = [
        [dialect.piece_of(*place) for place in places[at : at + most]]
        for at in range(0, len(lanes), most)
    ]
    if len(set(lanes)) == 1 < len(lanes):
        return splat(dialect, left.element, len(lanes), lanes[0]), reads
    return from_lanes(dialect, left.element, lanes), reads


def splat(dialect: CDialect, element: str, lanes: int, text: str) -> list[str]:
    """A scalar in every lane."""
    piece = dialect.splat(element, dialect.piece_lanes(lanes), text)
    return [piece] * dialect.piece_count(lanes)


def any_lane(dialect: CDialect, mask: CValue) -> str:
    """Whether a lane holds: what the bits of a mask are asked for."""
    lanes = (dialect.lane(mask, number) for number in range(mask.lanes))
    return f"-({' | '.join(lanes)})"


def seen_as(dialect: CDialect, value: CValue, element: str, lanes: int) -> list[str]:
    """The bits of a value as another type; the count of pieces may change."""
    if value.element == "i1":
        return [any_lane(dialect, value)]
    return dialect.seen_as(value, element, lanes)

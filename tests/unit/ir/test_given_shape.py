"""Shapes as a user writes them: texts, and Python values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_compiler.ir.sizes.given_shape import (
    GivenShape,
    format_shape,
    read_shape,
    shape_text,
)

_RANGES = st.tuples(st.integers(0, 99), st.integers(0, 99)).map(lambda pair: (min(pair), max(pair)))
_SHAPES = st.lists(st.none() | _RANGES, max_size=4).map(tuple)


@given(_SHAPES)
def test_a_shape_is_read_as_it_is_written(shape: GivenShape) -> None:
    """The text of a shape reads back as it; so does the shape given as Python values."""
    assert read_shape(format_shape(shape)) == shape
    assert shape_text(list(shape)) == format_shape(shape)


@pytest.mark.parametrize(
    ("given_as", "text"),
    [
        ("1,3,224", "1x3x224"), ("2..2x3", "2x3"), ([1, None, "?", (2, 8), "4..5"], "1x?x?x2..8x4..5"),
        ((), "scalar"), ("scalar", "scalar"), ((3, 16), "3x16"),
    ],
)  # fmt: skip
def test_every_spelling_has_one_text(given_as: object, text: str) -> None:
    """What is recorded does not depend on how it was written."""
    assert shape_text(given_as) == text


@pytest.mark.parametrize(
    ("given_as", "words"),
    [
        ("2xfour", "2xfour"), ("", "expected sizes"), ("8..1x3", "from its smallest size"), ("1..x3", "1..x3"),
        ("-1x3", "-1x3"), ([-1, 3], "-1"), ([True], "True"), ([1.5], "1.5"), (7, "a list of sizes"), ("9" * 5000, "expected sizes"),
    ],
)  # fmt: skip
def test_what_is_no_shape_is_refused(given_as: object, words: str) -> None:
    """The message has what was given."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the class of all such functions
        shape_text(given_as)
    assert words in str(caught.value)

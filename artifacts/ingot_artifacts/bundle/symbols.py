"""Symbols of a bundle's inputs and outputs by number.

In: shapes with names. Out: the names in order, dimensions as the plan has them. Not done here: the
plan (``encode_plan``).
"""

Shape = tuple[int | str, ...]
"""Sizes, and names of symbols."""


def symbols_of(shapes: "tuple[Shape, ...]") -> tuple[str, ...]:
    """Return the symbols in the order of first appearance: that is their index everywhere.

    `shapes` are those of the inputs, then those of the outputs.
    """
    return tuple(dict.fromkeys(dim for shape in shapes for dim in shape if isinstance(dim, str)))


def dims_of(shape: Shape, symbols: tuple[str, ...]) -> tuple[int, ...]:
    """Return sizes as they are and symbols as ``-(index + 1)``.

    >>> dims_of((2, "batch"), ("batch",))
    (2, -1)
    """
    return tuple(dim if isinstance(dim, int) else -(symbols.index(dim) + 1) for dim in shape)

"""Ops that move elements: slices, pads, transposes, copies, gathers and scatters.

In: nothing. Out: families of cases. Not done here: their list (``registry``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from tests.benchmarks.single_node import Array
from tests.benchmarks.sweep.making import (
    OPENINGS,
    Drawn,
    Named,
    below,
    exactly,
    graph,
    named,
    node,
    numbers,
    scalar,
    single,
    sizes,
)

_DTYPES = ("f32", "f16", "f64", "i8", "i64")


def slices() -> Iterator[Named]:
    """Bounds that are known, or that a run gives, along each axis."""
    for what, starts, ends, axes, steps in (
        ("first", (1,), (7,), (0,), (1,)), ("middle", (3,), (100,), (1,), (1,)),
        ("last", (3,), (200,), (2,), (1,)), ("two", (3, 5), (100, 200), (1, 2), (1, 1)),
        ("second", (0,), (256,), (2,), (2,)), ("backwards", (-1,), (-250,), (2,), (-1,)),
    ):  # fmt: skip
        given = {
            "x": numbers(8, 128, 256), "s": exactly(*starts), "e": exactly(*ends),
            "a": exactly(*axes), "t": exactly(*steps),
        }  # fmt: skip
        for known, opening in (("s e a t", ""), ("s e a t", "open"), ("a t", ""), ("", "")):
            words = {"s e a t": "", "a t": "ends of a run", "": "all of a run"}[known]
            yield named("slice", what, words, opening), single("Slice", given, known, opening)
    for dtype in _DTYPES[1:]:
        given = {
            "x": numbers(8, 128, 256, dtype=dtype), "s": exactly(3), "e": exactly(200),
            "a": exactly(2),
        }  # fmt: skip
        for known in ("s e a", ""):
            name = named("slice last", dtype, "" if known else "of a run")
            yield name, single("Slice", given, known)


def pads() -> Iterator[Named]:
    """Widths that are known, or that a run gives."""
    for what, shape, widths in (
        ("image", (1, 3, 56, 56), (0, 0, 1, 1)), ("image", (1, 64, 28, 28), (0, 0, 1, 1)),
        ("last", (1, 128, 256), (0, 0, 3)), ("middle", (8, 64, 64), (0, 2, 0)),
        ("first", (8, 64, 64), (1, 0, 0)), ("channels", (1, 64, 64, 3), (0, 0, 0, 1)),
    ):  # fmt: skip
        given = {"x": numbers(*shape), "p": exactly(*widths, *widths)}
        for mode in ("constant", "edge", "reflect"):
            for known, opening in (("p", ""), ("p", "open"), ("", "")):
                words = (opening, "" if known else "of a run")
                yield (
                    named("pad", mode, what, sizes(shape), *words),
                    single("Pad", given, known, opening, mode=mode),
                )


def shapes() -> Iterator[Named]:
    """Shapes, repeats and axes that a run gives."""
    for what, op, x, other in (
        ("flat", "Reshape", (200, 250), (-1,)), ("split", "Reshape", (200, 250), (10, 20, -1)),
        ("columns", "Expand", (200, 1), (200, 250)), ("rows", "Expand", (1, 250), (200, 250)),
        ("both", "Expand", (1, 64, 1, 64), (8, 64, 32, 64)), ("20x25", "Tile", (20, 25), (10, 10)),
        ("64x3", "Tile", (64, 3), (1, 50)), ("rows 250", "Tile", (1, 250), (200, 1)),
    ):  # fmt: skip
        for known, opening in (("s", ""), ("s", "open"), ("", "")):
            given = {"x": numbers(*x), "s": exactly(*other)}
            words = (opening, "" if known else "of a run")
            yield named(op.lower(), what, *words), single(op, given, known, opening)


def copies() -> Iterator[Named]:
    """What is joined and divided, of 0.2 to 2 MB."""
    for rows in (50, 250, 500):
        x = {"x": numbers(rows, 1000), "z": numbers(rows, 1000)}
        for axis in (0, 1):
            for opening in OPENINGS:
                yield (
                    named(f"concat {rows}x1000 axis {axis}", opening),
                    single("Concat", x, opening=opening, axis=axis),
                )
                yield (
                    named(f"split {rows}x1000 axis {axis}", opening),
                    single(
                        "Split", {"x": x["x"]}, opening=opening, outputs="y y1", axis=axis,
                        num_outputs=2,
                    ),
                )  # fmt: skip
        yield f"identity {rows}x1000", single("Identity", {"x": x["x"]})
    narrow = {"x": numbers(8400, 4), "z": numbers(8400, 1), "c": numbers(8400, 3)}
    for opening in OPENINGS:
        yield named("concat 8400 of 4 1 3", opening), single("Concat", narrow, "", opening, axis=1)
    for dtype in _DTYPES[1:]:
        both = {"x": numbers(250, 500, dtype=dtype), "z": numbers(250, 500, dtype=dtype)}
        yield f"concat 250x500 axis 1 {dtype}", single("Concat", both, axis=1)


def transposes() -> Iterator[Named]:
    """Pixels to planes and back, matrices whose pitch is a power of two or beside one, heads."""
    for channels in (1, 2, 3, 4, 8, 16, 32, 64, 65):
        for opening in ("", "apart"):
            yield (
                named(f"nhwc {channels}@64", opening),
                single("Transpose", {"x": numbers(1, 64, 64, channels)}, "", opening, perm=[0, 3, 1, 2]),
            )  # fmt: skip
            yield (
                named(f"nchw {channels}@64", opening),
                single("Transpose", {"x": numbers(1, channels, 64, 64)}, "", opening, perm=[0, 2, 3, 1]),
            )  # fmt: skip
    for shape in ((1024, 64), (1024, 1024), (1000, 1024), (1025, 65), (64, 1024), (2048, 512)):
        for opening in OPENINGS:
            x = {"x": numbers(*shape)}
            name = named("transpose", sizes(shape), opening)
            yield name, single("Transpose", x, opening=opening, perm=[1, 0])
    for dtype in (*_DTYPES[1:], "i32", "u8"):
        for shape in ((1024, 64), (250, 333)):
            x = {"x": numbers(*shape, dtype=dtype)}
            yield f"transpose {sizes(shape)} {dtype}", single("Transpose", x, perm=[1, 0])
    for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 2, 1), (3, 2, 1, 0), (1, 0, 2, 3)):
        for opening in OPENINGS:
            x = {"x": numbers(8, 32, 8, 64)}
            name = named("transpose 8x32x8x64 to", "".join(map(str, perm)), opening)
            yield name, single("Transpose", x, opening=opening, perm=perm)


def gathers() -> Iterator[Named]:
    """Rows, columns, points and elements."""
    for width in (1, 3, 32, 64, 300):
        for opening in OPENINGS:
            given = {"x": numbers(1000, width), "i": below(1000, 8, 50)}
            yield named(f"gather rows of {width}", opening), single("Gather", given, "x", opening)
    for dtype in _DTYPES[1:]:
        given = {"x": numbers(1000, 32, dtype=dtype), "i": below(1000, 400, dtype="i32")}
        yield f"gather rows of 32 {dtype}", single("Gather", given)
    for opening in OPENINGS:
        given = {"x": numbers(200, 500), "i": below(500, 300)}
        yield named("gather columns", opening), single("Gather", given, "", opening, axis=1)
        for axis, shape in ((0, (100, 250)), (1, (200, 100))):
            given = {"x": numbers(200, 250), "i": below(200, *shape)}
            name = named(f"gather elements axis {axis}", opening)
            yield name, single("GatherElements", given, opening=opening, axis=axis)
        for depth, width in ((1, 16), (2, 16), (2, 1), (3, 8)):
            at = below(20, 2000, depth)
            given = {"x": numbers(*[20] * depth, width), "i": at}
            yield (
                named(f"gather points {depth}d of {width}", opening),
                single("GatherND", given, opening=opening),
            )


def _different(count: int, most: int) -> Drawn:
    """Rows in any order, none twice."""

    def draw(generator: np.random.Generator) -> Array:
        return generator.permutation(most)[:count].reshape(count, 1)

    return draw


def scatters() -> Iterator[Named]:
    """Rows and elements that are replaced, added or compared."""
    for opening in OPENINGS:
        for width in (1, 16, 64):
            given = {
                "x": numbers(1000, width), "i": _different(200, 1000), "u": numbers(200, width)
            }  # fmt: skip
            name = named(f"scatter rows of {width}", opening)
            yield name, single("ScatterND", given, opening=opening)
        for reduction in ("add", "max"):
            given = {"x": numbers(1000, 32), "i": below(1000, 400, 1), "u": numbers(400, 32)}
            name = named("scatter rows", reduction, opening)
            yield name, single("ScatterND", given, opening=opening, reduction=reduction)
            elements = {"x": numbers(500, 64), "i": below(64, 200, 64), "u": numbers(200, 64)}
            for axis in (0, 1):
                name = named(f"scatter elements axis {axis}", reduction, opening)
                yield (
                    name,
                    single(
                        "ScatterElements", elements, "", opening, axis=axis, reduction=reduction
                    ),
                )


def reversed_sequences() -> Iterator[Named]:
    """Batches of sequences, along the first axis and the second, with lengths known or not."""
    for shape, batch in (
        ((50, 8, 64), 1), ((8, 50, 64), 0), ((50, 8), 1), ((8, 500), 0), ((50, 8, 3), 1),
        ((50, 32, 65), 1), ((8, 500, 4), 0), ((50, 1, 64), 1),
    ):  # fmt: skip
        for known, opening in (("n", ""), ("", ""), ("", "open")):
            most = shape[1 - batch]
            lengths: Drawn = partial(_lengths, shape[batch], most)
            given = {"x": numbers(*shape), "n": lengths}
            words = (opening, "" if known else "of a run")
            axes: dict[str, Any] = {"batch_axis": batch, "time_axis": 1 - batch}
            yield (
                named("reverse", sizes(shape), f"batch {batch}", *words),
                single("ReverseSequence", given, known, opening, **axes),
            )


def _lengths(count: int, most: int, generator: np.random.Generator) -> Array:
    return generator.integers(1, most + 1, count)


def transposed_producers() -> Iterator[Named]:
    """A transposed value that is summed along, or of which rows are taken."""
    for shape in ((64, 500), (65, 500), (1, 500), (3, 500), (16, 500), (256, 1024)):
        for opening in OPENINGS:
            transposed = node("Transpose", "x", "t", perm=[1, 0])
            for axis in (0, 1):
                yield (
                    named("cumsum of transposed", sizes(shape), f"axis {axis}", opening),
                    graph(
                        [transposed, node("CumSum", "t a", "y")],
                        {"x": numbers(*shape), "a": scalar(axis)}, "y", "a", opening,
                    ),
                )  # fmt: skip
            yield (
                named("gather of transposed", sizes(shape), opening),
                graph(
                    [transposed, node("Gather", "t i", "y")],
                    {"x": numbers(*shape), "i": below(shape[1], 300)}, "y", "", opening,
                ),
            )  # fmt: skip

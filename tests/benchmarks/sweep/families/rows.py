"""Ops along axes and ops of single elements.

In: nothing. Out: families of cases. Not done here: their list (``registry``).
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.sweep.making import (
    OPENINGS,
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


def reductions() -> Iterator[Named]:
    """Sums, means, maxima and norms over each axis, which a run gives or not."""
    for op in ("Sum", "Mean", "Max", "L2"):
        for shape, axes in (
            ((200, 250), (0,)), ((200, 250), (1,)), ((8, 64, 64), (1,)), ((8, 64, 64), (1, 2)),
            ((8, 64, 64), (0, 2)), ((10000, 4), (1,)), ((10000, 3), (1,)), ((32, 4, 100), (1,)),
        ):  # fmt: skip
            given = {"x": numbers(*shape), "a": exactly(*axes)}
            for known, opening in (("a", ""), ("a", "open"), ("", "")):
                words = (opening, "" if known else "of a run")
                name = named(op.lower(), sizes(shape), "over", *axes, *words)
                yield name, single(f"Reduce{op}", given, known, opening)


def reductions_of_matrices() -> Iterator[Named]:
    """Over the first axis of matrices whose pitch is a power of two or beside one; other types."""
    for shape in ((1024, 64), (1024, 1024), (1000, 1024), (1025, 65), (2048, 512), (64, 4096)):
        for op in ("Sum", "Max"):
            for opening in OPENINGS:
                given = {"x": numbers(*shape), "a": exactly(0)}
                name = named(op.lower(), sizes(shape), "over 0", opening)
                yield name, single(f"Reduce{op}", given, "a", opening)
    for dtype in ("f64", "f16", "i32", "i64"):
        for shape, axis in (((1024, 256), 0), ((1000, 256), 1), ((10000, 4), 1)):
            for op in ("Sum", "Max"):
                given = {"x": numbers(*shape, dtype=dtype), "a": exactly(axis)}
                name = named(op.lower(), sizes(shape), f"over {axis}", dtype)
                yield name, single(f"Reduce{op}", given, "a")


def narrow_rows() -> Iterator[Named]:
    """Maxima, sums and places of them along a last axis of 2 to 8."""
    for width in (2, 3, 4, 8):
        for opening in ("", "apart", "batch"):
            given = {"x": numbers(5000, width), "a": exactly(1)}
            for op in ("Max", "Sum"):
                name = named(op.lower(), f"5000x{width} over 1", opening)
                yield name, single(f"Reduce{op}", given, "a", opening)
            yield (
                named(f"argmax 5000x{width} over 1", opening),
                single("ArgMax", {"x": given["x"]}, "", opening, axis=1),
            )
    for shape, axis in (((8, 21, 1000), 1), ((1000, 100), 0), ((64, 1000), 1), ((1, 50000), 1)):
        for op in ("ArgMax", "ArgMin"):
            for opening in OPENINGS:
                name = named(op.lower(), sizes(shape), f"over {axis}", opening)
                yield name, single(op, {"x": numbers(*shape)}, "", opening, axis=axis)


def softmaxes() -> Iterator[Named]:
    """Over axes with few and many elements behind them."""
    for shape, axis in (
        ((1000, 1), 0), ((1000, 2), 0), ((1000, 3), 0), ((1000, 4), 0), ((1000, 8), 0),
        ((1000, 17), 0), ((1000, 64), 0), ((8, 100, 8), 1), ((8, 21, 400), 1), ((1000, 2), 1),
        ((1000, 3), 1), ((1000, 10), 1), ((128, 128), 1), ((32, 1000), 1), ((8, 77, 77), 2),
    ):  # fmt: skip
        for op in ("Softmax", "LogSoftmax"):
            for opening in OPENINGS if op == "Softmax" else ("",):
                name = named(op.lower(), sizes(shape), f"over {axis}", opening)
                yield name, single(op, {"x": numbers(*shape)}, "", opening, axis=axis)
    for dtype in ("f16", "f64"):
        for shape, axis in (((1000, 8), 0), ((128, 128), 1)):
            name = named("softmax", sizes(shape), f"over {axis}", dtype)
            yield name, single("Softmax", {"x": numbers(*shape, dtype=dtype)}, axis=axis)


def norms() -> Iterator[Named]:
    """Layers, instances and lengths of rows, short and long."""
    for shape in ((5000, 4), (1000, 16), (128, 768), (8, 100, 65), (1, 4096)):
        width = shape[-1]
        for opening in ("", "batch"):
            given = {"x": numbers(*shape), "s": numbers(width), "b": numbers(width)}
            yield (
                named("layer norm of", sizes(shape), opening),
                single("LayerNormalization", given, "s b", opening),
            )
            yield (
                named("lp norm of", sizes(shape), opening),
                single("LpNormalization", {"x": given["x"]}, opening=opening, axis=-1, p=2),
            )
    for image in ((1, 3, 64, 64), (8, 32, 14, 14), (2, 16, 1000), (32, 64, 7, 7)):
        for opening in OPENINGS:
            given = {"x": numbers(*image), "s": numbers(image[1]), "b": numbers(image[1])}
            yield (
                named("instance norm", sizes(image), opening),
                single("InstanceNormalization", given, "s b", "image" if opening else ""),
            )


def tops() -> Iterator[Named]:
    """The greatest of rows and columns; their number is known, or a run gives it."""
    for count, shape, axis in (
        (1, (1, 30000), 1), (5, (1, 30000), 1), (40, (1, 30000), 1), (5, (8, 1000), 1),
        (3, (1000, 8), 1), (5, (1000, 8), 0), (100, (10, 100), 1), (10, (8, 100, 16), 1),
    ):  # fmt: skip
        given = {"x": numbers(*shape), "k": exactly(count)}
        for known, opening in (("k", ""), ("k", "open"), ("", "")):
            words = (opening, "" if known else "of a run")
            yield (
                named(f"top {count} of", sizes(shape), f"axis {axis}", *words),
                single("TopK", given, known, opening, outputs="y y1", axis=axis),
            )
    for dtype in ("f64", "i64", "i32"):
        given = {"x": numbers(8, 1000, dtype="f64" if dtype == "f64" else "f32"), "k": exactly(5)}
        if dtype != "f64":
            given["x"] = below(10**6, 8, 1000, dtype=dtype)
        yield f"top 5 of 8x1000 {dtype}", single("TopK", given, "k", outputs="y y1")


def running_sums() -> Iterator[Named]:
    """Along each axis."""
    for shape, axis in (
        ((64, 500), 1), ((500, 64), 0), ((8, 3, 500), 2), ((1, 5000), 1), ((8, 500, 16), 1),
        ((500, 3), 0), ((1024, 512), 0), ((1024, 512), 1),
    ):  # fmt: skip
        for opening in OPENINGS:
            given = {"x": numbers(*shape), "a": scalar(axis)}
            yield (
                named("cumsum", sizes(shape), f"axis {axis}", opening),
                single("CumSum", given, "a", opening),
            )
        given = {"x": below(100, *shape), "a": scalar(axis)}
        yield named("cumsum", sizes(shape), f"axis {axis} i64"), single("CumSum", given, "a")


_PAIRS = (
    ("equal", (200, 250), (200, 250)), ("pairs of 3", (20000, 3), (20000, 3)),
    ("column", (200, 250), (200, 1)), ("row", (200, 250), (1, 250)), ("outer", (200, 1), (1, 250)),
    ("number", (200, 250), (1, 1)), ("vectors", (50000,), (50000,)), ("bias", (200, 250), (250,)),
    ("bias of 3", (20000, 3), (3,)), ("middle", (8, 64, 64), (8, 1, 64)),
    ("channels", (8, 3, 56, 56), (1, 3, 1, 1)),
)  # fmt: skip


def pairs() -> Iterator[Named]:
    """Ops of two operands of which one is broadcast; sizes are fixed, or each has a name."""
    for what, x, z in _PAIRS:
        for opening in ("", "open", "apart"):
            for op in ("Add", "Less"):
                given = {"x": numbers(*x), "z": numbers(*z)}
                yield named(op.lower(), what, opening), single(op, given, opening=opening)
            given = {"c": numbers(*z, dtype="bool"), "x": numbers(*x), "z": numbers(*z)}
            yield named("where", what, opening), single("Where", given, opening=opening)
    for dtype in ("f64", "f16", "i64", "i32"):
        for what, x, z in (_PAIRS[0], _PAIRS[2], _PAIRS[8]):
            for opening in ("", "apart"):
                given = {"x": numbers(*x, dtype=dtype), "z": numbers(*z, dtype=dtype)}
                yield named("add", what, dtype, opening), single("Add", given, opening=opening)


def elements() -> Iterator[Named]:
    """Functions of one operand, small and large, and casts."""
    for op in ("Exp", "Tanh", "Gelu", "Sqrt", "Floor", "Softplus", "Log", "Sin", "Erf", "Relu"):
        for shape in ((1000,), (3, 333), (200, 250), (8, 3, 112, 112)):
            x = {"x": numbers(*shape)}
            if op in ("Sqrt", "Log"):
                nodes = [node("Abs", "x", "t"), node(op, "t", "y")]
                yield named(op.lower(), "of abs", sizes(shape)), graph(nodes, x)
            else:
                yield named(op.lower(), sizes(shape)), single(op, x)
    for source in ("f32", "f16", "f64", "i64", "u8", "bool"):
        for target, number in (("f32", 1), ("f16", 10), ("i64", 7), ("i8", 3), ("bool", 9)):
            if source != target:
                x = {"x": below(100, 250, 501, dtype=source)}
                yield f"cast {source} to {target}", single("Cast", x, to=number)
    for dtype in ("f16", "f64"):
        for op in ("Sigmoid", "Exp"):
            yield (
                named(op.lower(), "200x250", dtype),
                single(op, {"x": numbers(200, 250, dtype=dtype)}),
            )

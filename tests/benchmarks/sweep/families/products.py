"""Products, attention, what stands around it, and layers that remember.

In: nothing. Out: families of cases. Not done here: their list (``registry``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from tests.benchmarks.single_node import Array, Case
from tests.benchmarks.sweep.making import (
    MICROSOFT,
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


def products() -> Iterator[Named]:
    """Of one column, of short depths, of two operands that a run gives."""
    for m, k, n in (
        (100, 250, 1), (1000, 250, 1), (100, 32, 1), (100, 3, 1), (100, 16, 100), (100, 8, 100),
        (64, 4, 64), (200, 32, 200), (16, 16, 16), (33, 17, 9), (128, 128, 128), (1, 250, 200),
        (1, 1000, 1000), (4, 250, 200), (16, 250, 200),
    ):  # fmt: skip
        given = {"a": numbers(m, k), "b": numbers(k, n)}
        for known, opening in (("b", ""), ("", ""), ("", "open"), ("b", "batch")):
            words = ("stored" if known else "", opening)
            name = named("product", sizes((m, k, n)), *words)
            yield name, single("MatMul", given, known, opening)
    for dtype in ("f64", "f16"):
        for m, k, n in ((1, 250, 200), (64, 64, 64), (100, 250, 1)):
            given = {"a": numbers(m, k, dtype=dtype), "b": numbers(k, n, dtype=dtype)}
            yield named("product", sizes((m, k, n)), dtype), single("MatMul", given)


def products_of_transposed() -> Iterator[Named]:
    """1 to 16 rows by a transposed matrix that a run gives."""
    for m in (1, 2, 3, 4, 5, 8, 16, 40):
        for k, n in ((250, 200), (64, 64), (256, 256), (17, 33), (512, 1000)):
            given = {"a": numbers(m, k), "b": numbers(n, k)}
            for opening in OPENINGS if k == 250 else ("",):
                name = named(f"by transposed {m}x{k}x{n}", opening)
                yield name, single("Gemm", given, opening=opening, transB=1)
    given = {"a": numbers(250, 4), "b": numbers(250, 200)}
    yield "of transposed 4x250x200", single("Gemm", given, transA=1)


def batches_of_products() -> Iterator[Named]:
    """Many small products, and equations."""
    for a, b in (
        ((8, 16, 16), (8, 16, 16)), ((12, 64, 32), (12, 32, 64)), ((8, 1, 64), (8, 64, 100)),
        ((8, 100, 64), (8, 64, 1)), ((8, 100, 64), (64,)), ((32, 5, 7), (32, 7, 9)),
        ((64, 4, 4), (64, 4, 4)), ((8, 50, 64), (64, 48)), ((1, 8, 64, 16), (1, 8, 16, 64)),
        ((50, 64), (8, 64, 1)), ((2, 1, 50, 64), (8, 64, 32)),
    ):  # fmt: skip
        for opening in OPENINGS:
            given = {"a": numbers(*a), "b": numbers(*b)}
            name = named("batch", sizes(a), "by", sizes(b), opening)
            yield name, single("MatMul", given, opening=opening)
    for equation, left, right in (
        ("bhid,bhjd->bhij", (1, 8, 64, 32), (1, 8, 64, 32)), ("bij,bjk->bik", (4, 64, 64), (4, 64, 64)),
        ("bchw,cd->bdhw", (1, 64, 32, 32), (64, 32)), ("i,j->ij", (300,), (300,)),
        ("bij,bj->bi", (8, 100, 64), (8, 64)), ("bi,bi->b", (500, 64), (500, 64)),
        ("ij,ij->", (200, 250), (200, 250)), ("abc,abd->cd", (8, 50, 16), (8, 50, 24)),
    ):  # fmt: skip
        for opening in OPENINGS:
            given = {"a": numbers(*left), "b": numbers(*right)}
            name = named("equation", equation, opening)
            yield name, single("Einsum", given, opening=opening, equation=equation)


def distances() -> Iterator[Named]:
    """Between all pairs of points."""
    for n, m, k in (
        (100, 150, 1), (100, 150, 2), (100, 150, 3), (100, 150, 8), (100, 150, 17), (100, 150, 64),
        (100, 150, 256), (64, 64, 4), (1, 1000, 3), (500, 500, 3), (17, 33, 3), (300, 300, 128),
    ):  # fmt: skip
        for metric in ("sqeuclidean", "euclidean"):
            for opening in OPENINGS if metric == "euclidean" else ("",):
                given = {"a": numbers(n, k), "b": numbers(m, k)}
                yield (
                    named("distance", metric, sizes((n, m, k)), opening),
                    single("CDist", given, opening=opening, domain=MICROSOFT, metric=metric),
                )


def bags() -> Iterator[Named]:
    """Rows of a table that are reduced at once."""
    for op in ("Mean", "Sum", "Max"):
        for width, batch, length in (
            (32, 32, 50), (64, 32, 50), (33, 32, 50), (4, 32, 50), (1, 32, 50), (128, 1, 50),
            (300, 8, 20), (16, 200, 16),
        ):  # fmt: skip
            for opening in OPENINGS:
                nodes = [node("Gather", "w i", "g"), node(f"Reduce{op}", "g a", "y", keepdims=0)]
                given = {
                    "w": numbers(1000, width), "i": below(1000, batch, length), "a": exactly(1),
                }  # fmt: skip
                name = named("bag", op.lower(), f"{batch}x{length} of {width}", opening)
                yield name, graph(nodes, given, "y", "w a", opening)


def _cache(
    batch: int, heads: int, keys: int, depth: int, past: int, opening: str
) -> Callable[[], Case]:
    """One token behind so many."""
    given = {
        "q": numbers(batch, 1, heads * depth), "k": numbers(batch, 1, keys * depth),
        "v": numbers(batch, 1, keys * depth), "pk": numbers(batch, keys, past, depth),
        "pv": numbers(batch, keys, past, depth), "sl": exactly(*[past] * batch, dtype="i32"), "tl": scalar(past + 1, "i32"),
    }  # fmt: skip
    return single(
        "GroupQueryAttention", given, "", opening, "y ok ov", domain=MICROSOFT, num_heads=heads,
        kv_num_heads=keys,
    )  # fmt: skip


def attention() -> Iterator[Named]:
    """Tokens of decoders, and layers of encoders."""
    for batch, heads, keys, depth, past in (
        (1, 8, 2, 64, 127), (1, 8, 1, 64, 127), (1, 32, 8, 128, 255), (1, 8, 8, 64, 127),
        (4, 8, 2, 64, 127), (8, 8, 1, 32, 63), (1, 14, 2, 64, 500),
    ):  # fmt: skip
        for opening in ("", "batch"):
            name = named(f"grouped {batch}x{heads}of{keys}x{depth} past {past}", opening)
            yield name, _cache(batch, heads, keys, depth, past, opening)
    for batch, length, heads, depth in (
        (1, 1, 8, 64), (1, 16, 8, 64), (1, 64, 4, 32), (1, 128, 12, 64), (8, 50, 4, 16),
        (1, 77, 8, 40), (32, 16, 2, 32),
    ):  # fmt: skip
        shape = (batch, length, heads * depth)
        given = {name: numbers(*shape) for name in ("q", "k", "v")}
        for opening in OPENINGS:
            yield (
                named("multi head", sizes(shape), f"heads {heads}", opening),
                single(
                    "MultiHeadAttention", given, "", "batch" if opening else "", domain=MICROSOFT,
                    num_heads=heads,
                ),
            )  # fmt: skip
        width = heads * depth
        packed = {
            "x": numbers(*shape), "w": _scaled(width, 3 * width), "b": numbers(3 * width),
        }  # fmt: skip
        yield (
            named("attention", sizes(shape), f"heads {heads}"),
            single("Attention", packed, "w b", domain=MICROSOFT, num_heads=heads),
        )


def _scaled(*shape: int) -> Drawn:
    """Weights whose products stay small."""

    def draw(generator: np.random.Generator) -> Array:
        return np.asarray(numbers(*shape)(generator) / np.float32(shape[-1] ** 0.5))

    return draw


def rotations() -> Iterator[Named]:
    """Positions of tokens, whose pairs lie beside each other or in halves."""
    for interleaved in (0, 1):
        for batch, length, heads, depth in (
            (1, 1, 8, 64), (1, 32, 8, 64), (8, 16, 4, 32), (1, 32, 8, 128), (4, 1, 32, 128),
        ):  # fmt: skip
            given = {
                "x": numbers(batch, length, heads * depth), "p": below(length, batch, length),
                "c": numbers(256, depth // 2), "s": numbers(256, depth // 2),
            }  # fmt: skip
            for opening in ("", "batch"):
                order = "interleaved" if interleaved else "halves"
                yield (
                    named("rotary", order, f"{batch}x{length}x{heads}x{depth}", opening),
                    single(
                        "RotaryEmbedding", given, "c s", opening, domain=MICROSOFT,
                        interleaved=interleaved, num_heads=heads,
                    ),
                )  # fmt: skip


def quantized() -> Iterator[Named]:
    """Products and convolutions of bytes, and what makes bytes."""
    for m, k, n in ((1, 256, 256), (8, 64, 64), (32, 256, 128), (128, 128, 128), (100, 16, 10)):
        given = {
            "a": below(256, m, k, dtype="u8"), "b": below(128, k, n, dtype="i8"),
            "z": scalar(128, "u8"),
        }  # fmt: skip
        for known in ("b z", "z"):
            name = named("bytes", sizes((m, k, n)), "stored" if "b" in known else "")
            yield name, single("MatMulInteger", given, known)
    for channels, to, kernel, groups, size in (
        (3, 16, 3, 1, 64), (32, 32, 3, 1, 28), (32, 64, 1, 1, 28), (32, 32, 3, 32, 28), (8, 8, 1, 2, 28),
    ):  # fmt: skip
        given = {
            "x": below(256, 1, channels, size, size, dtype="u8"), "xs": scalar(0.02, "f32"),
            "xz": scalar(128, "u8"),
            "w": below(100, to, channels // groups, kernel, kernel, dtype="i8"),
            "ws": scalar(0.01, "f32"), "wz": scalar(0, "i8"), "ys": scalar(2, "f32"),
            "yz": scalar(100, "u8"),
        }  # fmt: skip
        name = f"bytes conv g{groups} k{kernel} {channels}to{to} {size}x{size}"
        yield (
            name,
            single(
                "QLinearConv", given, "xs xz w ws wz ys yz", pads=[kernel // 2] * 4, group=groups
            ),
        )
    for shape in ((1000,), (128, 768), (1, 3, 112, 112)):
        for opening in OPENINGS:
            yield (
                named("dynamic quantize", sizes(shape), opening),
                single("DynamicQuantizeLinear", {"x": numbers(*shape)}, "", opening, "y ys yz"),
            )
            given = {"x": numbers(*shape), "s": scalar(0.05, "f32"), "z": scalar(120, "u8")}
            name = named("quantize", sizes(shape), opening)
            yield name, single("QuantizeLinear", given, "s z", opening)
            given["x"] = below(256, *shape, dtype="u8")
            name = named("dequantize", sizes(shape), opening)
            yield name, single("DequantizeLinear", given, "s z", opening)


def recurrent() -> Iterator[Named]:
    """Small layers that remember, over short and long sequences."""
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for length, batch, width, hidden in (
            (10, 1, 32, 32), (50, 1, 16, 64), (10, 8, 32, 32), (5, 32, 8, 16),
        ):  # fmt: skip
            for opening in OPENINGS:
                given = {
                    "x": numbers(length, batch, width), "w": _scaled(1, gates * hidden, width),
                    "r": _scaled(1, gates * hidden, hidden), "b": numbers(1, 2 * gates * hidden),
                }  # fmt: skip
                name = named(op.lower(), f"{length}x{batch}x{width} to {hidden}", opening)
                yield name, single(op, given, "w r b", opening, "y y1", hidden_size=hidden)

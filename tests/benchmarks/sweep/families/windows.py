"""Pools, convolutions and images that are made larger or sampled.

In: nothing. Out: families of cases. Not done here: their list (``registry``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.benchmarks.single_node import Case
from tests.benchmarks.sweep.making import (
    OPENINGS,
    Named,
    exactly,
    named,
    numbers,
    single,
    sizes,
)

_POOLS = {"max": "MaxPool", "average": "AveragePool", "lp": "LpPool"}


def _same(kernel: int, rank: int, **attributes: Any) -> dict[str, Any]:
    """A window around each element."""
    return {"kernel_shape": [kernel] * rank, "pads": [kernel // 2] * (2 * rank), **attributes}


def pools() -> Iterator[Named]:
    """Windows of three kinds over images, with fixed and with open sizes."""
    shapes = (
        (2, (1, 64, 56, 56)), (3, (8, 3, 64, 64)), (3, (1, 256, 14, 14)), (9, (1, 1, 64, 64)),
        (9, (2, 3, 64, 80)), (13, (1, 32, 20, 20)), (31, (1, 1, 96, 96)),
    )  # fmt: skip
    for kind, op in _POOLS.items():
        for kernel, shape in shapes:
            for opening in OPENINGS:
                name = named("pool", kind, f"k{kernel}", sizes(shape), opening)
                window: dict[str, Any] = {"kernel_shape": [kernel] * 2}
                if kernel % 2:
                    window = _same(kernel, 2)
                yield name, single(op, {"x": numbers(*shape)}, opening=opening, **window)


def pools_of_other_ranks() -> Iterator[Named]:
    """Signals, volumes, strides as large as the window, other types."""
    for kind, op in _POOLS.items():
        for kernel, shape in (
            (9, (1, 1, 10000)), (3, (8, 3, 1000)), (101, (1, 1, 10000)), (25, (1, 16, 1024)),
            (3, (1, 1, 24, 32, 40)), (3, (1, 16, 12, 12, 12)), (9, (1, 1, 24, 24, 24)),
        ):  # fmt: skip
            rank = len(shape) - 2
            name = named("pool", kind, f"k{kernel}", sizes(shape))
            yield name, single(op, {"x": numbers(*shape)}, **_same(kernel, rank))
        for kernel, image in ((2, (1, 16, 64, 64)), (4, (8, 3, 64, 64)), (16, (1, 3, 224, 224))):
            name = named("pool", kind, f"k{kernel} s{kernel}", sizes(image))
            window: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [kernel] * 2}
            yield name, single(op, {"x": numbers(*image)}, **window)
    for kernel in (3, 9):
        for dtype in ("f64", "f16", "i8", "u8"):
            name = named("pool max", f"k{kernel} 1x4x60x80", dtype)
            x = numbers(1, 4, 60, 80, dtype=dtype)
            yield name, single("MaxPool", {"x": x}, **_same(kernel, 2))


def whole_planes() -> Iterator[Named]:
    """A window of the whole image, and the ops for it."""
    shapes = ((1, 1, 64, 64), (1, 3, 120, 160), (8, 32, 7, 7), (2, 4, 1000), (1, 2, 16, 16, 16))
    for kind, op in _POOLS.items():
        for shape in shapes:
            name = named("pool", kind, "whole", sizes(shape))
            yield name, single(op, {"x": numbers(*shape)}, kernel_shape=shape[2:])
            for opening in OPENINGS:
                name = named("pool", kind, "global", sizes(shape), opening)
                yield name, single(f"Global{op}", {"x": numbers(*shape)}, opening=opening)


def _convolution(
    shape: tuple[int, ...], to: int, kernel: int, groups: int = 1, opening: str = "", **more: Any
) -> Callable[[], Case]:
    """A convolution with a bias that keeps the size where it has no stride."""
    rank = len(shape) - 2
    given = {
        "x": numbers(*shape), "w": numbers(to, shape[1] // groups, *[kernel] * rank),
        "b": numbers(to),
    }  # fmt: skip
    pads = [kernel // 2 * more.get("dilations", [1])[0]] * (2 * rank)
    return single("Conv", given, "w b", opening, group=groups, pads=pads, **more)


def convolutions() -> Iterator[Named]:
    """Small groups, large stems, several results of a channel."""
    for groups, channels, to, kernel, size in (
        (2, 16, 16, 1, 28), (4, 16, 16, 1, 28), (4, 32, 32, 1, 28), (8, 32, 64, 1, 28),
        (8, 64, 64, 1, 56), (4, 20, 20, 1, 28), (16, 64, 64, 1, 28), (4, 16, 16, 3, 28),
        (8, 32, 32, 3, 28), (16, 16, 32, 3, 28), (3, 3, 6, 3, 64), (64, 64, 128, 3, 14),
        (4, 4, 32, 5, 28), (1, 1, 16, 9, 64), (1, 3, 64, 9, 64), (1, 64, 3, 9, 64),
        (1, 3, 16, 3, 112), (1, 1, 8, 3, 128), (1, 64, 64, 3, 28), (1, 64, 128, 1, 14),
    ):  # fmt: skip
        for opening in ("", "image"):
            name = named(f"conv g{groups} k{kernel} {channels}to{to} {size}x{size}", opening)
            yield name, _convolution((1, channels, size, size), to, kernel, groups, opening)


def convolutions_of_other_ranks() -> Iterator[Named]:
    """Signals, volumes, batches, strides and dilations."""
    for shape, to, kernel, groups in (
        ((1, 1, 4000), 16, 9, 1), ((1, 64, 500), 16, 1, 4), ((1, 32, 1000), 32, 3, 1),
        ((8, 16, 500), 32, 5, 16), ((1, 16, 500), 32, 3, 16), ((1, 64, 8, 10, 10), 16, 1, 4),
        ((1, 3, 16, 24, 24), 16, 3, 1), ((1, 16, 12, 12, 12), 16, 3, 16),
        ((8, 16, 28, 28), 32, 3, 16), ((8, 64, 28, 28), 16, 1, 4), ((32, 8, 14, 14), 8, 1, 2),
    ):  # fmt: skip
        name = named(f"conv g{groups} k{kernel} to{to}", sizes(shape))
        yield name, _convolution(shape, to, kernel, groups)
    for dilation in (2, 4, 12):
        for channels in (3, 32):
            for opening in ("", "image"):
                name = named(f"conv dilated {dilation} {channels}to32 40x40", opening)
                shape = (1, channels, 40, 40)
                yield name, _convolution(shape, 32, 3, 1, opening, dilations=[dilation] * 2)
    for channels, to, kernel in ((3, 32, 9), (3, 16, 3), (16, 32, 3), (16, 32, 1)):
        for opening in ("", "image"):
            name = named(f"conv s2 k{kernel} {channels}to{to} 96x96", opening)
            shape = (1, channels, 96, 96)
            yield name, _convolution(shape, to, kernel, 1, opening, strides=[2, 2])


def transposed_convolutions() -> Iterator[Named]:
    """Images made larger, with few and many channels."""
    for channels, to, kernel, stride in (
        (64, 32, 2, 2), (32, 16, 3, 2), (16, 8, 4, 2), (64, 3, 4, 2), (1, 8, 3, 2), (8, 1, 5, 1),
        (64, 4, 2, 2), (16, 8, 5, 1), (32, 32, 3, 1), (8, 8, 8, 4),
    ):  # fmt: skip
        for opening in ("", "image"):
            given = {
                "x": numbers(1, channels, 32, 32), "w": numbers(channels, to, kernel, kernel),
            }  # fmt: skip
            name = named(f"transposed k{kernel} s{stride} {channels}to{to} 32x32", opening)
            yield name, single("ConvTranspose", given, "w", opening, strides=[stride] * 2)
    for channels, to in ((16, 8), (4, 4)):
        given = {"x": numbers(1, channels, 1000), "w": numbers(channels, to, 4)}
        yield (
            f"transposed k4 s2 {channels}to{to} 1000",
            single("ConvTranspose", given, "w", strides=[2]),
        )


def resizes() -> Iterator[Named]:
    """By whole and broken scales that are known, or that a run gives."""
    for mode in ("nearest", "linear", "cubic"):
        for shape in ((1, 3, 32, 32), (1, 16, 40, 40)):
            for scale in (2.0, 1.5, 0.5, 0.3):
                given = {"x": numbers(*shape), "s": exactly(1, 1, scale, scale, dtype="f32")}
                for known, opening in (("s", ""), ("s", "open"), ("", "")):
                    words = (opening, "" if known else "of a run")
                    yield (
                        named("resize", mode, f"by {scale:g}", sizes(shape), *words),
                        single("Resize", given, known, opening, inputs="x . s", mode=mode),
                    )
    for mode in ("nearest", "linear"):
        for known in ("s", ""):
            given = {"x": numbers(1, 3, 32, 32), "s": exactly(1, 3, 64, 64)}
            name = named("resize", mode, "to 64x64", "" if known else "of a run")
            yield name, single("Resize", given, known, inputs="x . . s", mode=mode)
        given = {"x": numbers(1, 3, 64, 64, dtype="u8"), "s": exactly(1, 1, 2, 2, dtype="f32")}
        yield (
            named("resize", mode, "by 2 1x3x64x64 u8"),
            single("Resize", given, "s", inputs="x . s", mode=mode),
        )


def samples_of_grids() -> Iterator[Named]:
    """Points of images, few and many for each channel."""
    for mode in ("linear", "nearest", "cubic"):
        for channels, size, points in ((64, 28, 4), (3, 56, 64), (1, 56, 32), (16, 28, 28)):
            for opening in OPENINGS:
                given = {
                    "x": numbers(1, channels, size, size), "g": numbers(1, points, points, 2),
                }  # fmt: skip
                name = named("grid sample", mode, f"{channels}@{size} at {points}", opening)
                yield name, single("GridSample", given, opening=opening, mode=mode)

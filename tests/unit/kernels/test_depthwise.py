"""Depthwise kernels against float64 sums over taps, on every level that the machine runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.kernels_harness import BEST, LEVELS, Array, Kernel, empty, normal

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.kernels.tiles import choose_pixels, taps_together
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Local, Value
from ingot_compiler.lowering.loops.program import Buffer, Depthwise, LoopProgram, Store
from ingot_compiler.targets.target import parse_target

Y, X, C, KY, KX = symbol("y"), symbol("x"), symbol("c"), symbol("ky"), symbol("kx")


def depthwise_program(
    size: int,
    channels: int,
    kernel: tuple[int, int],
    stride: int,
    pixels: int,
    *,
    symbolic: bool = False,
    dtype: DType = "f32",
    epilogue: Value | None = None,
) -> LoopProgram:
    """Output y is the parallel index; buffers: haloed image [y, x, c], weights [ky, kx, c], output,
    bias [c]."""
    out = -(-size // stride)
    width: Dim = symbol("W") if symbolic else out
    depth: Dim = symbol("C") if symbolic else channels
    pitch = depth * (size + kernel[1] - 1)
    a_index = (Y * stride + KY) * pitch + (X * stride + KX) * depth + C
    value = epilogue or Local("acc", dtype)
    statement = Depthwise(
        "x", width, "c", depth, (("ky", kernel[0]), ("kx", kernel[1])), 0, a_index, 1, (KY * kernel[1] + KX) * depth + C,
        dtype, "acc", (Store(2, (Y * width + X) * depth + C, value),), pixels,
    )  # fmt: skip
    buffers = tuple(Buffer(dtype, number == 2) for number in range(4))
    return LoopProgram(buffers, ("W", "C") if symbolic else (), "y", out, 1, (statement,))


def reference(image: Array, weights: Array, out: int, stride: int) -> Array:
    """The sum over taps in float64."""
    total = np.zeros((out, out, image.shape[2]))
    for ky, kx in np.ndindex(weights.shape[:2]):
        window = image[ky : ky + stride * out : stride, kx : kx + stride * out : stride]
        total += window[:out, :out].astype(np.float64) * weights[ky, kx]
    return total


@pytest.mark.sweep(12)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("size", "channels", "kernel", "pixels"),
    [
        (9, 16, (3, 3), 4),
        (14, 37, (3, 3), 14),
        (7, 3, (5, 5), 7),
        (11, 20, (7, 7), 11),
        (5, 33, (1, 4), 3),
        (6, 8, (3, 1), 2),
        (9, 20, (3, 13), 9),
        (7, 17, (2, 31), 4),
    ],
)
def test_rows_of_all_tails(
    level: str, stride: int, size: int, channels: int, kernel: tuple[int, int], pixels: int
) -> None:
    """Pixels and channels that no group divides are summed right, for both strides and odd
    kernels."""
    out = -(-size // stride)
    image = normal((size + kernel[0] - 1, size + kernel[1] - 1, channels), 1)
    weights, result = normal((*kernel, channels), 2), empty((out, out, channels))
    program = depthwise_program(size, channels, kernel, stride, pixels)
    Kernel(program, parse_target(level)).run([image, weights, result, result])
    assert np.abs(result - reference(image, weights, out, stride)).max() < 2e-5


@pytest.mark.sweep(4)
@pytest.mark.parametrize("level", LEVELS)
def test_symbolic_sizes(level: str) -> None:
    """One kernel serves any width and number of channels, with equal bits."""
    target, kernel = parse_target(level), (3, 3)
    general = Kernel(depthwise_program(10, 0, kernel, 1, 4, symbolic=True), target)
    for channels in (1, 16, 35):
        image, weights = normal((12, 12, channels), 1), normal((*kernel, channels), 2)
        results = [empty((10, 10, channels)), empty((10, 10, channels))]
        general.run([image, weights, results[0], results[0]], (10, channels))
        Kernel(depthwise_program(10, channels, kernel, 1, 7), target).run(
            [image, weights, results[1], results[1]]
        )
        assert results[0].tobytes() == results[1].tobytes()
        assert np.abs(results[0] - reference(image, weights, 10, 1)).max() < 1e-5


@pytest.mark.sweep(4)
@pytest.mark.parametrize("level", LEVELS)
def test_bits_do_not_depend_on_pixels_or_threads(level: str) -> None:
    """Groups of pixels and cuts of the range do not change a bit."""
    image, weights = normal((16, 16, 19), 1), normal((7, 7, 19), 2)
    results: set[bytes] = set()
    for pixels, parts in ((1, 1), (3, 2), (10, 3), (14, 5)):
        result = empty((10, 10, 19))
        kernel = Kernel(depthwise_program(10, 19, (7, 7), 1, pixels), parse_target(level))
        kernel.run([image, weights, result, result], parts=parts)
        results.add(result.tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("function", ["relu", "gelu_tanh"])
def test_epilogues(level: str, function: str) -> None:
    """Light and heavy epilogues see the right pixel, channel and accumulator."""
    image, weights, bias = normal((10, 10, 21), 1), normal((3, 3, 21), 2), normal((21,), 3)
    result = empty((8, 8, 21))
    value = Apply(function, (Apply("add", (Local("acc", "f32"), Load(3, C)), "f32"),), "f32")
    program = depthwise_program(8, 21, (3, 3), 1, 5, epilogue=value)
    Kernel(program, parse_target(level)).run([image, weights, result, bias])
    x = reference(image, weights, 8, 1) + bias
    gelu = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    assert np.abs(result - (np.maximum(x, 0) if function == "relu" else gelu)).max() < 2e-5


@pytest.mark.parametrize("level", LEVELS)
def test_f64(level: str) -> None:
    """f64 images have half the lanes and their own precision."""
    image, weights, result = (
        normal((8, 8, 13), 1, "f8"),
        normal((3, 3, 13), 2, "f8"),
        empty((6, 6, 13), "f8"),
    )
    program = depthwise_program(6, 13, (3, 3), 1, 6, dtype="f64")
    Kernel(program, parse_target(level)).run([image, weights, result, result])
    assert np.abs(result - reference(image, weights, 6, 1)).max() < 1e-13


def test_pixels_fit_the_registers() -> None:
    """A chosen group leaves room for weights of a row and two inputs, and never is longer than the
    row; it has as many sums as multiply-adds are under way, for long rows of weights, too."""
    for name in (*LEVELS, "aarch64"):
        target = parse_target(name)
        for extent in (1, 7, 14, 56, 113, symbol("n")):
            for taps in ((3, 3), (5, 5), (7, 7), (11, 11), (5, 23), (1, 31), (31, 51)):
                pixels = choose_pixels(extent, taps, target)
                assert 1 <= pixels <= (extent if isinstance(extent, int) else 14)
                held = taps_together(taps[-1], target)
                assert pixels + held + 2 <= target.vector_register_count
                assert pixels >= 7 or (isinstance(extent, int) and extent < 7)


def test_foreign_targets_compile() -> None:
    """Kernels for machines that are not this one become objects."""
    for name in ("aarch64", "riscv64"):
        target = parse_target(name)
        module = kernel_module(depthwise_program(9, 21, (7, 7), 1, 7), target)
        assert compile_object(llvm_text(module), target, verify=True)[:4] == b"\x7fELF"


def test_no_block_is_long() -> None:
    """LLVM is quadratic in the length of a block: no kernel shape passes 700 instructions."""
    for kernel in ((3, 3), (5, 5), (7, 7), (1, 31), (13, 13)):
        text = llvm_text(
            kernel_module(depthwise_program(56, 100, kernel, 1, 14), parse_target(BEST))
        )
        assert max(block.count("\n") for block in text.split(":\n")) <= 700

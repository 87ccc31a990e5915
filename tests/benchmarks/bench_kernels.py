"""Speed of the contraction, depthwise and attention kernels: GF/s, percent of the measured
multiply-add peak, compile ms.

In: nothing. Out: a table on standard output. Not done here: peers, threads. Run:
``python -m tests.benchmarks.bench_kernels [LEVEL]``.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tests.harness.kernels_harness import BEST, Array, Kernel, aligned, normal
from tests.unit.frontend.test_attention import attention_program
from tests.unit.kernels.test_contraction import packed_panels, panel_index, panels
from tests.unit.kernels.test_depthwise import depthwise_program

from ingot_compiler.codegen.llvm import load_in_process
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.measured_loops import MeasuredLoops
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, symbol
from ingot_compiler.kernels.attention_layout import attention_query_block
from ingot_compiler.kernels.tiles import choose_pixels, choose_row_block, choose_tile
from ingot_compiler.lowering.loops.loop_values import Local
from ingot_compiler.lowering.loops.program import Buffer, Contraction, LoopProgram, Store
from ingot_compiler.targets.target import Target, parse_target

GEMMS = (
    (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (3136, 64, 64), (3136, 64, 256), (784, 512, 128),
    (196, 1024, 256), (49, 2048, 512), (3136, 144, 24), (784, 96, 40),
)  # fmt: skip
CONVOLUTIONS = ((64, 56), (128, 28), (256, 14), (512, 7))
DEPTHWISE = ((144, 56, 3, 1), (384, 14, 3, 1), (144, 56, 3, 2), (96, 56, 7, 1), (384, 14, 7, 1))
# So many heads that a call of Python is not a percent of the time.
ATTENTION = (
    (48, 49, 32, ""), (48, 49, 32, "mask"), (16, 50, 64, ""), (12, 77, 64, "causal"), (4, 128, 64, ""), (8, 128, 64, "causal"), (4, 197, 64, ""),
    (4, 256, 32, ""), (1, 256, 80, ""), (2, 256, 64, "causal"), (1, 384, 128, ""), (1, 512, 64, ""), (1, 512, 64, "mask"),
    (1, 512, 64, "causal"), (1, 1024, 64, ""),
)  # fmt: skip
VECTORS = ((4096, 11008), (2048, 5632), (2048, 2048), (256, 1024))
ROUNDS, ROUND_SECONDS, PEAK_ROUNDS = 15, 0.01, 5
M, N, K, P, KY, KX = (symbol(name) for name in ("m", "n", "k", "p", "ky", "kx"))


@dataclass(frozen=True, slots=True)
class Bench:
    """A kernel, what it is called with, and how many multiplications and additions it does."""

    name: str
    program: LoopProgram
    arrays: Sequence[Array]
    flops: float


def seconds(call: Callable[[], object]) -> float:
    """The least time of one call over several rounds."""
    call()
    start = time.perf_counter()
    call()
    repeats = max(1, int(ROUND_SECONDS / (time.perf_counter() - start)))
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


def peak_flops(target: Target) -> float:
    """Multiply-adds in registers, in flops per second."""
    loops, memory, rounds = MeasuredLoops(target), np.zeros(1024, np.uint8), 100_000
    operations = 2 * loops.sum_count * loops.lanes * rounds
    return operations / seconds(lambda: loops.run("adds", memory, rounds, 0))


def _contraction(
    target: Target,
    rows: int,
    columns: int,
    taps: tuple[tuple[str, int], ...],
    depth: int,
    a_index: Dim,
) -> LoopProgram:
    """C = A * B with packed B, as the lowering makes it: panels outside, row blocks inside."""
    tile = choose_tile(rows, columns, target)
    width, block = tile.vectors * target.f32_lanes, choose_row_block(rows, columns, tile, target)
    blocks, count = -(-rows // block), -(-columns // width)
    flat: Dim = 0
    total = depth
    for name, extent in taps:
        flat, total = flat * extent + symbol(name), total * extent
    layout = packed_panels(total)
    b_index = panel_index(layout, flat * depth + K)
    statement = Contraction(
        "m", rows, dim_mod(P, blocks) * block, block, "n", columns, dim_floordiv(P, blocks) * width, taps, "k", depth, 0, a_index,
        1, b_index, layout, "f32", "acc", (Store(2, M * columns + N, Local("acc", "f32")),), tile,
    )  # fmt: skip
    buffers = tuple(Buffer("f32", number == 2) for number in range(3))
    return LoopProgram(buffers, (), "p", blocks * count, 1, (statement,))


def gemm(target: Target, rows: int, depth: int, columns: int) -> Bench:
    """A product of matrices."""
    program = _contraction(target, rows, columns, (), depth, M * depth + K)
    arrays = (
        normal((rows, depth), 1),
        panels(normal((depth, columns), 2)),
        normal((rows, columns), 3),
    )
    return Bench(f"gemm {rows}x{depth}x{columns}", program, arrays, 2.0 * rows * depth * columns)


def convolution(target: Target, channels: int, size: int) -> Bench:
    """A 3x3 convolution of a square image, without Winograd's algorithm."""
    pitch = (size + 2) * channels
    a_index = (
        dim_floordiv(M, size) * pitch + dim_mod(M, size) * channels + KY * pitch + KX * channels + K
    )
    program = _contraction(target, size * size, channels, (("ky", 3), ("kx", 3)), channels, a_index)
    image, result = normal((size + 2, size + 2, channels), 1), normal((size * size, channels), 3)
    arrays = (image, panels(normal((9 * channels, channels), 2)), result)
    return Bench(
        f"conv 3x3 {channels}@{size}", program, arrays, 18.0 * channels * channels * size * size
    )


def depthwise(target: Target, channels: int, size: int, kernel: int, stride: int) -> Bench:
    """A depthwise convolution of a square image."""
    out = -(-size // stride)
    pixels = choose_pixels(out, (kernel, kernel), target)
    program = depthwise_program(size, channels, (kernel, kernel), stride, pixels)
    image = normal((size + kernel - 1, size + kernel - 1, channels), 1)
    result = normal((out, out, channels), 3)
    flops = 2.0 * kernel * kernel * channels * out * out
    name = f"depthwise {kernel}x{kernel} s{stride} {channels}@{size}"
    return Bench(
        name, program, (image, normal((kernel, kernel, channels), 2), result, result), flops
    )


def attention(target: Target, heads: int, length: int, depth: int, kind: str) -> Bench:
    """Some heads: a call of more than some milliseconds finds no quiet moment. Of causal attention
    the pairs that are seen count."""
    block, is_causal = attention_query_block(length, target), kind == "causal"
    program = attention_program(
        target, heads, length, length, depth, depth,
        block=block, mask=kind == "mask", causal=is_causal,
    )  # fmt: skip
    q, k, v, result = (normal((length, heads, depth), seed) for seed in range(4))
    pairs = length * (length + 1) / 2 if is_causal else length * length
    return Bench(
        f"attention {heads}x{length}x{depth} {kind}".strip(),
        program,
        (q, k, v, normal((length, length), 4), result),
        4.0 * heads * pairs * depth,
    )


def read_bytes_per_second(target: Target, array: Array) -> float:
    """Reading an array once, in vectors, with eight sums: what a matrix-vector product can
    reach."""
    writer, lanes, sums = Writer(target), target.f32_lanes, 8
    zero = constant(0, "float", lanes)

    def body(index: LlvmValue, old: tuple[LlvmValue, ...]) -> Sequence[LlvmValue]:
        places = (writer.add(index, constant(number * lanes, "i64")) for number in range(sums))
        loads = (
            writer.load(writer.offset(LlvmValue("%i", "ptr"), place, "float"), "float", lanes)
            for place in places
        )
        return [writer.binary("fadd", value, load) for value, load in zip(old, loads, strict=True)]

    count = array.size // (lanes * sums) * lanes * sums
    results = writer.loop(
        constant(0, "i64"), constant(count, "i64"), lanes * sums, (zero,) * sums, body
    )
    for value in results:
        writer.store(value, LlvmValue("%o", "ptr"))
    writer.write("ret")
    parameters = LlvmValue("%i", "ptr"), LlvmValue("%o", "ptr")
    engine = load_in_process(llvm_text(writer.kernel("read", parameters)), target)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
        engine.get_function_address("read")
    )
    memory = aligned(np.zeros(64))
    return 4.0 * count / seconds(lambda: function(array.ctypes.data, memory.ctypes.data))


def main() -> None:
    """Print one line per kernel."""
    target = parse_target(sys.argv[1] if len(sys.argv) > 1 else BEST)
    # The highest of several: the first measurement may find a slow clock.
    peak = max(peak_flops(target) for _ in range(PEAK_ROUNDS))
    print(f"{target}: multiply-add peak {peak / 1e9:.0f} GF/s")
    benches = [gemm(target, *shape) for shape in GEMMS]
    benches += [convolution(target, *shape) for shape in CONVOLUTIONS]
    benches += [depthwise(target, *shape) for shape in DEPTHWISE]
    benches += [attention(target, *shape) for shape in ATTENTION]
    for bench in benches:
        rate, compile_ms = _rate(bench, target)
        print(
            f"{bench.name:26} {rate / 1e9:6.0f} GF/s {100 * rate / peak:4.0f} %  {compile_ms:4.0f} ms"
        )
    for shape in VECTORS:
        bench = gemm(target, 1, *shape)
        rate, compile_ms = _rate(bench, target)
        limit = read_bytes_per_second(target, bench.arrays[1])
        print(
            f"{bench.name:26} {2 * rate / 1e9:6.1f} GB/s {200 * rate / limit:4.0f} %  {compile_ms:4.0f} ms (% of reading B)"
        )


def _rate(bench: Bench, target: Target) -> tuple[float, float]:
    """Flops per second, and milliseconds to make the kernel."""
    start = time.perf_counter()
    kernel = Kernel(bench.program, target, 2)  # as in bundles
    compile_ms = 1e3 * (time.perf_counter() - start)
    return bench.flops / seconds(kernel.prepare(bench.arrays)), compile_ms


if __name__ == "__main__":
    main()

"""Speed of kernels of 8-bit integers with the requantization that follows: GOP/s, times the
measured multiply-add peak of f32, compile ms, beside the f32 kernel of the same shape.

In: nothing. Out: a table on standard output. Not done here: peers, threads, whole models. Run:
``python -m tests.benchmarks.bench_byte_kernels [TARGET [SHAPE ...]]``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tests.benchmarks.bench_kernels import peak_flops, seconds
from tests.harness.codegen_harness import NUMPY, Array
from tests.harness.kernels_harness import Kernel, aligned
from tests.harness.lowering_harness import Builder, compile_graph

from ingot_compiler.ir.dims import evaluate
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.fused import BufferSpec, Launch
from ingot_compiler.lowering.loops.program import Contraction, Depthwise, LoopProgram
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target, parse_target

PEAK_ROUNDS = 5
PAIRS: tuple[tuple[DType, DType], ...] = (("u8", "i8"), ("i8", "i8"))


@dataclass(frozen=True, slots=True)
class Layer:
    """A product of x[rows, depth] and w[depth, columns], or a convolution of a square image."""

    name: str
    size: int
    depth: int
    columns: int
    kernel: int = 0  # 0: a product
    stride: int = 1
    groups: int = 1

    @property
    def out(self) -> int:
        """Pixels of a row of the result."""
        return -(-self.size // self.stride)

    @property
    def operations(self) -> float:
        """Multiplications and additions."""
        rows = self.out * self.out if self.kernel else self.size
        taps = max(self.kernel, 1) ** 2
        return 2.0 * rows * taps * self.depth // self.groups * self.columns


LAYERS = (
    *(Layer(f"product {m}x{k}x{n}", m, k, n) for m, k, n in ((128, 768, 768), (128, 768, 3072), (128, 3072, 768), (1, 768, 768), (128, 64, 128))),
    *(Layer(f"3x3 {c}@{s}", s, c, c, 3) for s, c in ((56, 64), (28, 128), (14, 256), (7, 512))),
    *(Layer(f"3x3 s2 {c}@{s}", s, c, c, 3, 2) for s, c in ((56, 128), (28, 256))),
    *(Layer(f"1x1 {c}-{o}@{s}", s, c, o, 1) for s, c, o in ((56, 64, 256), (56, 256, 64), (28, 512, 128), (14, 1024, 256), (7, 2048, 512), (112, 16, 96), (56, 24, 144), (56, 144, 24))),
    Layer("stem 7x7 s2", 224, 3, 64, 7, 2),
    Layer("stem 3x3 s2", 224, 3, 32, 3, 2),
    *(Layer(f"depthwise s1 {c}@{s}", s, c, c, 3, 1, c) for s, c in ((112, 32), (56, 144), (28, 192), (14, 384), (14, 576), (7, 960))),
    *(Layer(f"depthwise s2 {c}@{s}", s, c, c, 3, 2, c) for s, c in ((112, 96), (56, 144), (28, 192), (14, 576))),
)  # fmt: skip


def _drawn(shape: tuple[int, ...], dtype: DType) -> Array:
    draw = np.random.default_rng(0)
    if dtype == "f32":
        return draw.standard_normal(shape).astype(np.float32)
    limits = np.iinfo(NUMPY[dtype])
    return draw.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)


def _graph(layer: Layer, x: DType, w: DType) -> tuple[Builder, int]:
    """The layer between two elementwise ops, so that it reads and writes what kernels do."""
    shape = (1, layer.depth, layer.size, layer.size) if layer.kernel else (layer.size, layer.depth)
    builder = Builder([TensorType(x, shape)])
    own = layer.depth // layer.groups
    kernel = (layer.columns, own, layer.kernel, layer.kernel)
    weights = builder.constant(
        _drawn(kernel if layer.kernel else (layer.depth, layer.columns), w), w
    )
    given = builder.op("max", 0, 0)
    if not layer.kernel:
        return builder, builder.op("matmul" if x == "f32" else "matmul_integer", given, weights)
    pad = layer.kernel // 2
    more = {} if x == "f32" else {"pad_value": 3}
    total = builder.op(
        "conv", given, weights, strides=(layer.stride,) * 2, pads_before=(pad,) * 2,
        pads_after=((layer.out - 1) * layer.stride + layer.kernel - pad - layer.size,) * 2,
        dilations=(1, 1), groups=layer.groups, **more,
    )  # fmt: skip
    return builder, total


def _requantized(builder: Builder, total: int, layer: Layer) -> int:
    """Bias, scale per column, rounding, zero point, saturation: what the passes leave behind a
    sum."""
    shape = (layer.columns, 1, 1) if layer.kernel else (layer.columns,)
    bias = builder.constant(np.arange(layer.columns, dtype=np.int32).reshape(shape))
    scale = builder.constant(np.full(shape, 1e-4, np.float32))
    value = builder.op("cast", builder.op("add", total, bias), dtype="f32")
    value = builder.op("round", builder.op("mul", value, scale))
    value = builder.op("add", value, builder.literal(117.0))
    value = builder.op(
        "min", builder.op("max", value, builder.literal(0.0)), builder.literal(255.0)
    )
    return builder.op("cast", value, dtype="u8")


def _with_bias(builder: Builder, total: int, layer: Layer) -> int:
    shape = (layer.columns, 1, 1) if layer.kernel else (layer.columns,)
    bias = builder.constant(np.ones(shape, np.float32))
    return builder.op("relu", builder.op("add", total, bias))


def kernel_of(
    layer: Layer, x: DType, w: DType, target: Target
) -> tuple[LoopProgram, Sequence[BufferSpec]]:
    """Return the kernel with the sums, and what it reads and writes."""
    builder, total = _graph(layer, x, w)
    last = (_with_bias if x == "f32" else _requantized)(builder, total, layer)
    if layer.kernel:  # an output would ask for another layout
        one, none = (1, 1), (0, 0)
        window = {"kernel": one, "strides": one, "dilations": one}
        last = builder.op("max_pool", last, **window, pads_before=none, pads_after=none)
    compiled = compile_graph(builder.finish([last]), target)
    launches = [step for step in compiled.fused.steps if isinstance(step, Launch)]
    for launch in launches:
        program = compiled.programs[launch.program]
        if any(isinstance(item, (Contraction, Depthwise)) for item in program.body):
            return program, [compiled.fused.buffers[buffer] for buffer in launch.buffers]
    raise AssertionError(layer.name)


def _timed(layer: Layer, x: DType, w: DType, target: Target) -> tuple[float, float]:
    """Seconds of the kernel with the sums, milliseconds to compile it."""
    return _run(*kernel_of(layer, x, w, target), target)


def _run(program: LoopProgram, specs: Sequence[BufferSpec], target: Target) -> tuple[float, float]:
    start = time.perf_counter()
    kernel = Kernel(program, target, 2)
    compile_ms = 1e3 * (time.perf_counter() - start)
    arrays: list[Array] = []
    for spec in specs:
        count = evaluate(spec.element_count, {})
        arrays.append(aligned(_drawn((count,), spec.dtype), NUMPY[spec.dtype]))
    call: Callable[[], object] = kernel.prepare(arrays)
    return seconds(call), compile_ms


def main() -> None:
    """Print one line per layer."""
    target = parse_target(sys.argv[1]) if len(sys.argv) > 1 else host_target()
    peak = max(peak_flops(target) for _ in range(PEAK_ROUNDS))
    print(f"{target}: multiply-add peak {peak / 1e9:.0f} GF/s")
    for layer in LAYERS:
        if len(sys.argv) > 2 and not any(part in layer.name for part in sys.argv[2:]):
            continue
        parts = [f"{layer.name:24}"]
        float_seconds, float_ms = _timed(layer, "f32", "f32", target)
        for x, w in PAIRS:
            took, compile_ms = _timed(layer, x, w, target)
            rate = layer.operations / took
            parts.append(
                f"{x}{w} {1e6 * took:7.1f} us {rate / 1e9:4.0f} GOP/s {rate / peak:4.2f} x peak,"
                f" {took / float_seconds:4.2f} of f32, {compile_ms:4.0f} ms"
            )
        print(
            "  ".join(parts), f" f32 {1e6 * float_seconds:7.1f} us {float_ms:4.0f} ms", flush=True
        )


if __name__ == "__main__":
    main()

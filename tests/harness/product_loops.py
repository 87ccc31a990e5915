"""Kernels of products by each method, and their innermost loops, as a bundle's code has them.

In: a target. Out: ``LoopCode`` of each case. Not done here: what is asked of the loops
(``test_step_loads``, ``test_port_models``).

Rows and pixels are multiples of usual tiles' heights, so that most loops are those of whole tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import ml_dtypes
import numpy as np
import numpy.typing as npt
from tests.benchmarks.bench_byte_kernels import Layer, kernel_of
from tests.benchmarks.bench_kernels import attention
from tests.harness.loop_code import LoopCode, multiplying
from tests.harness.lowering_harness import Builder, compile_graph, f32, normal

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.ir.types import DType
from ingot_compiler.kernels.products.tuned import (
    DIRECT,
    MATRIX_DIRECT,
    MATRIX_STRASSEN,
    STRASSEN,
)
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.targets.target import Target

Made = Callable[[Target], Sequence[LoopProgram]]
ROWS, DEPTH, COLUMNS = 180, 768, 768
STRASSEN_ROWS = 168
_HALVES: Mapping[DType, npt.DTypeLike] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


def product(
    method: str, rows: int = ROWS, depth: int = DEPTH, columns: int = COLUMNS, dtype: DType = "f32"
) -> Made:
    """A product of f32 by weights, which are stored in ``dtype``."""

    def make(target: Target) -> Sequence[LoopProgram]:
        builder = Builder([f32(rows, depth)])
        weights = normal(1, depth, columns)
        if dtype == "f32":
            right = builder.constant(weights)
        else:
            stored = builder.constant(weights.astype(_HALVES[dtype]), dtype)
            right = builder.op("cast", stored, dtype="f32")
        return _programs(builder, builder.op("matmul", 0, right), target, method)

    return make


def convolution(method: str, channels: int, size: int, taps: int) -> Made:
    """A convolution of a square image, as large as its result."""

    def make(target: Target) -> Sequence[LoopProgram]:
        builder, pad = Builder([f32(1, channels, size, size)]), (taps // 2,) * 2
        result = builder.op(
            "conv", 0, builder.constant(normal(1, channels, channels, taps, taps)),
            strides=(1, 1), dilations=(1, 1), groups=1, pads_before=pad, pads_after=pad,
        )  # fmt: skip
        return _programs(builder, result, target, method)

    return make


def pairs_of_bf16(target: Target) -> Sequence[LoopProgram]:
    """A product that rounds to bf16; where nothing multiplies it, one of f32."""
    if not target.multiplies_bf16:
        return product(MATRIX_DIRECT)(target)
    builder = Builder([f32(ROWS, DEPTH)])
    result = builder.op("matmul", 0, builder.constant(normal(1, DEPTH, COLUMNS)))
    return compile_graph(builder.finish([result]), target, precision="bf16").programs


def _bytes(x: DType, w: DType) -> Made:
    layer = Layer("product", ROWS, DEPTH, COLUMNS)
    return lambda target: [kernel_of(layer, x, w, target)[0]]


def _programs(builder: Builder, result: int, target: Target, method: str) -> Sequence[LoopProgram]:
    """The kernels; another method than ``method`` is a mistake of the case, unless the target has
    none but the direct one."""
    compiled = compile_graph(builder.finish([result]), target, method=method)
    kinds = {launch.group.kind for launch in launches_of(compiled.fused)}
    assert kinds & {method, DIRECT, MATRIX_DIRECT}, kinds
    return compiled.programs


CASES: Mapping[str, Made] = {
    "direct": product(MATRIX_DIRECT),
    "direct, few columns": product(MATRIX_DIRECT, 784, 512, 128),
    "Strassen": product(MATRIX_STRASSEN, STRASSEN_ROWS),
    "one row": product(MATRIX_DIRECT, 1, 1024, 1024),
    "weights of f16": product(MATRIX_DIRECT, dtype="f16"),
    "weights of bf16": product(MATRIX_DIRECT, dtype="bf16"),
    "pairs of bf16": pairs_of_bf16,
    "bytes, u8 by i8": _bytes("u8", "i8"),
    "bytes, i8 by i8": _bytes("i8", "i8"),
    "convolution 3x3": convolution(DIRECT, 128, 24, 3),
    "convolution 1x1": convolution(DIRECT, 512, 24, 1),
    "convolution 1x1, Strassen": convolution(STRASSEN, 768, 24, 1),
    "Winograd 2x2": convolution("winograd_2x2", 128, 24, 3),
    "Winograd 3x3": convolution("winograd_3x3", 128, 36, 3),
    "attention": lambda target: [attention(target, 2, 128, 64, "").program],
}
"""By name."""


@cache
def loops_of(name: str, target: Target) -> tuple[LoopCode, ...]:
    """The innermost loops of a case's code that multiply."""
    return loops_in(CASES[name](target), target)


def loops_in(programs: Sequence[LoopProgram], target: Target) -> tuple[LoopCode, ...]:
    """Those of kernels."""
    return tuple(
        loop
        for program in programs
        for loop in multiplying(assembly_text(llvm_text(kernel_module(program, target)), target))
    )

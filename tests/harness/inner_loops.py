"""The innermost loops of kernels for aarch64, counted: instructions, beside the fewest that there
can be.

In: loop programs. Out: rows of a table. Not done here: the table's place in the documentation
(``test_inner_loops``), running the code (``test_foreign``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from tests.benchmarks.bench_byte_kernels import Layer, kernel_of
from tests.benchmarks.bench_kernels import attention, convolution, depthwise, gemm
from tests.harness.loop_code import innermost
from tests.harness.lowering_harness import Builder, compile_graph, f32

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.kernels.attention_layout import attention_layout
from ingot_compiler.kernels.attention_values import packs_values
from ingot_compiler.lowering.loops.program import Attention, Contraction, Depthwise, LoopProgram
from ingot_compiler.targets.target import Target, parse_target

LANES = 4
_LINE_VECTORS = 4
_LOOP = 3  # count, compare, branch
_PRODUCTS = ("fmla", "bfdot", "sdot", "udot", "usdot")
_BY_ELEMENT = re.compile(r"\.\w+\[\d\]$")
_LOADS = ("ld",)


@dataclass(frozen=True, slots=True)
class Loop:
    """A kernel's loop: ``code``, and the fewest instructions beside its products."""

    name: str
    tile: str
    code: tuple[str, ...]
    fewest_loads: int
    fewest_others: int

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self._count(_PRODUCTS)

    @property
    def by_element(self) -> int:
        """Multiply-adds that take one factor from a lane of a register."""
        return sum(
            line.startswith(_PRODUCTS) and bool(_BY_ELEMENT.search(line)) for line in self.code
        )

    @property
    def loads(self) -> int:
        """Instructions that load."""
        return self._count(_LOADS)

    @property
    def prefetches(self) -> int:
        """Instructions that prefetch."""
        return self._count(("prfm",))

    @property
    def others(self) -> int:
        """Instructions that neither multiply, load nor prefetch."""
        return len(self.code) - self.products - self.loads - self.prefetches

    @property
    def ratio(self) -> float:
        """All instructions but prefetches, by the fewest."""
        fewest = self.products + self.fewest_loads + self.fewest_others
        return (len(self.code) - self.prefetches) / fewest

    def _count(self, starts: tuple[str, ...]) -> int:
        return sum(line.startswith(starts) for line in self.code)


def counted_loops() -> list[Loop]:
    """All rows of the table."""
    plain, dots, pairs = map(parse_target, ("aarch64", "aarch64+asimddp", "aarch64+bf16"))
    return [
        *_loops("f32 product 128x768x768", gemm(plain, 128, 768, 768).program, plain),
        *_loops("f32 3x3 convolution 64@56", convolution(plain, 64, 56).program, plain),
        *_loops("f32 depthwise 3x3 144@56", depthwise(plain, 144, 56, 3, 1).program, plain),
        *_loops("f32 attention 2x128x64", attention(plain, 2, 128, 64, "").program, plain),
        *_loops("i8 product 128x768x768, `asimddp`", _bytes_product(dots), dots),
        *_loops("bf16 product 128x768x768, `bf16`", _bf16_product(pairs), pairs),
    ]


def _bytes_product(target: Target) -> LoopProgram:
    program, _ = kernel_of(Layer("product", 128, 768, 768), "i8", "i8", target)
    return program


def _bf16_product(target: Target) -> LoopProgram:
    builder = Builder([f32(128, 768)])
    product = builder.op("matmul", 0, builder.constant(np.ones((768, 768), np.float32)))
    programs = compile_graph(builder.finish([product]), target, precision="bf16").programs
    (found,) = (each for each in programs if isinstance(each.body[0], Contraction))
    return found


def _loops(name: str, program: LoopProgram, target: Target) -> list[Loop]:
    found = innermost(assembly_text(llvm_text(kernel_module(program, target)), target))
    most = max(map(_product_count, found))
    longest = [code for code in found if _product_count(code) == most]
    (statement,) = (item for item in program.body if isinstance(item, _KERNELS))
    match statement:
        case Contraction():
            tile = statement.tile
            return [_of_tile(name, tile.rows, tile.vectors, longest[0])]
        case Depthwise():
            return [_of_pixels(name, statement, longest[0])]
        case Attention():
            layout = attention_layout(
                statement.keys, statement.depth_extent, statement.value_extent,
                statement.query_block, target, in_place=False,
                packs_values=packs_values(statement, target),
            )  # fmt: skip
            heights = (("scores", layout.vectors), ("values", layout.value_vectors))
            return [
                _of_tile(f"{name}, {phase}", layout.rows, vectors, code)
                for (phase, vectors), code in zip(heights, longest, strict=True)
            ]


_KERNELS = (Contraction, Depthwise, Attention)


def _of_tile(name: str, rows: int, vectors: int, code: tuple[str, ...]) -> Loop:
    """A step takes a vector of B, two by an instruction, for each of the tile's; so many steps as
    there are lanes take a vector of each row of A."""
    loads = rows + LANES * vectors // 2
    return Loop(name, f"{rows}x{vectors * LANES}", code, loads, _LOOP)


def _of_pixels(name: str, statement: Depthwise, code: tuple[str, ...]) -> Loop:
    """All taps of some neighbouring pixels: each input and weight is loaded once, sums start at 0
    and are stored."""
    pixels, (height, width) = statement.pixels, (extent for _, extent in statement.taps)
    loads = height * width + height * (pixels + width - 1)
    return Loop(name, f"{pixels} pixels", code, loads, 2 * pixels + _LOOP)


def _product_count(code: tuple[str, ...]) -> int:
    return sum(line.startswith(_PRODUCTS) for line in code)

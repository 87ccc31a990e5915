"""Sums of products stay in registers: no kernel of a network's first convolution, whose depth is
odd, keeps them in memory between two steps.

In: convolutions of images of 1, 3 and 4 channels. Out: counts of instructions. Not done here:
results (``test_lowering_contractions``).
"""

from __future__ import annotations

import re

import pytest
from tests.harness.lowering_harness import Builder, compile_graph, f32, normal
from tests.unit.lowering.test_byte_convolutions import window

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.lowering.loops.program import Contraction
from ingot_compiler.targets.target import parse_target

IN_MEMORY = re.compile(r"[xyz]mm\d+, -?\d*\(%rsp\)|\s-?\d*\(%rsp\), %[xyz]mm")


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    ("channels", "kernel", "features"), [(3, 3, 32), (3, 7, 64), (1, 5, 64), (3, 5, 32), (1, 3, 16)]
)
def test_first_convolution(target: str, channels: int, kernel: int, features: int) -> None:
    """All lengths of depth are odd."""
    machine = parse_target(target)
    builder = Builder([f32(1, channels, 112, 112)])
    weights = builder.constant(normal(1, features, channels, kernel, kernel))
    product = builder.op("conv", 0, weights, **window(2, pad=kernel // 2, stride=2))
    result = builder.op("relu", product)
    programs = compile_graph(builder.finish([result]), machine).programs
    (found,) = (each for each in programs if isinstance(each.body[0], Contraction))
    assert not IN_MEMORY.findall(assembly_text(llvm_text(kernel_module(found, machine)), machine))

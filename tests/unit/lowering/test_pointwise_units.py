"""Elementwise kernels over one long run of numbers: how it is cut into units.

In: sizes. Out: loops, whether they are one kernel's. Not done here: results
(``test_lowering_ops``).
"""

from __future__ import annotations

from math import prod

import pytest
from tests.harness.lowering_harness import Builder, compile_graph, f32

from ingot_compiler.lowering.loops.kernel_of import kernel_of
from ingot_compiler.lowering.loops.program import For, LoopProgram

# What EfficientNet-B0 and networks of other images have: height, width, channels.
IMAGES = ((14, 14, 480), (28, 28, 240), (56, 56, 144), (7, 7, 1152), (14, 14, 672), (7, 7, 1280))


def program_of(count: int) -> LoopProgram:
    """The loops of a sigmoid of so many numbers."""
    builder = Builder([f32(count)])
    (program,) = compile_graph(builder.finish([builder.op("sigmoid", 0)])).programs
    return program


@pytest.mark.parametrize("count", [2048, 30 * 2048, *map(prod, IMAGES), 3 * 1088])
def test_units_without_a_rest(count: int) -> None:
    """Where a number near the usual block divides the size, all units are equal, and together they
    are the whole."""
    program = program_of(count)
    (loop,) = program.body
    assert isinstance(loop, For)
    assert isinstance(loop.extent, int)
    assert isinstance(program.extent, int)
    assert program.extent * loop.extent == count


@pytest.mark.parametrize("count", [2049, 4099, 30 * 2048 + 1, 197 * 768])
def test_units_with_a_rest(count: int) -> None:
    """A size that nothing near divides is cut into usual blocks and a shorter one."""
    program = program_of(count)
    (loop,) = program.body
    assert isinstance(loop, For)
    assert not isinstance(loop.extent, int)
    assert program.extent == -(-count // 2048)


def test_images_share_kernels() -> None:
    """Images of many sizes have few kernels between them."""
    kernels = {kernel_of(program_of(prod(image))) for image in IMAGES}
    assert len(kernels) == 1

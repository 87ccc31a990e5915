"""One launch of a kernel, as an instruction of ``main``.

In: a launch, its loop program, where the program's kernel is. Out: one instruction behind those
that compute its extent. Not done here: buffers that must be there before (``main_steps``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ingot_compiler.host_program.main_assembler import Assembler
from ingot_compiler.host_program.main_messages import of_nodes
from ingot_compiler.ir.attributes import attribute_text
from ingot_compiler.ir.dims import Dim, dim_add, dim_min, substitute
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.lowering.groups.fused import Group, Launch, requirements_of
from ingot_compiler.lowering.loops.kernel_of import kernel_arguments
from ingot_compiler.lowering.loops.program import LoopProgram

Kernel = tuple[LoopProgram, int]
"""The loops of a kernel, and its position in the variant's kernel list."""


def emit_launch(
    out: Assembler, launch: Launch, kernel: Kernel, ordinal: int, buffers: Sequence[int]
) -> None:
    """Append the ``ordinal``-th launch of the program, of a kernel that gets ``buffers``."""
    program, position = kernel
    group = launch.group
    scalars = tuple(map(out.dim, kernel_arguments(program)))
    extent = _extent(out, group, program)
    operands = (group.device, position, ordinal, tuple(buffers), scalars, extent, program.grain)
    messages = tuple(
        out.message(of_nodes(attribute_text(node.table, "what"), node.source, out.makers))
        for node in requirements_of(group)
    )
    if messages:
        out.emit("launch_checked", *operands, messages)
    else:
        out.emit("launch", *operands)


def _extent(out: Assembler, group: Group, program: LoopProgram) -> int:
    """The units to run: none where nothing is written, however many the sizes beside the empty one
    would make."""
    extent = out.dim(program.extent)
    if group.fills_halo:
        return extent  # an image without elements has a border
    first, *others = (result.type for result in group.results)
    sizes = list(dict.fromkeys(first.shape))
    if others:
        sizes = [
            functools.reduce(
                dim_add, (tensor_type.element_count for tensor_type in others), first.element_count
            )
        ]
    for size in sizes:
        if not isinstance(size, int) and not _vanishes(program.extent, size):
            extent = out.binary("mul", extent, out.dim(dim_min(size, 1)))
    return extent


def _vanishes(extent: Dim, size: Dim) -> bool:
    """Whether ``extent`` can be seen to be 0 where ``size`` is."""
    name = bare_symbol(size)
    return extent == size or (name is not None and substitute(extent, {name: 0}) == 0)

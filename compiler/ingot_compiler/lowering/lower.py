"""Lowers one group of the fused graph to loops.

In: a ``Group``, the target, the kinds that its back end has. Out: its ``LoopProgram`` (stage 7). Not done here: machine code.
"""

from collections.abc import Mapping

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.program import bound_names, used_symbols
from ingot_compiler.lowering.loops import LoopProgram


def lower(group: Group, target: KernelTarget, kinds: Mapping[str, Kind]) -> LoopProgram:
    """Apply the lowering of the group's kind.

    Raises:
        InternalError: a loop has the name of a size; one would be taken for the other, with a wrong answer.
    """
    program = kinds[group.kind].lower(group, target)
    sizes = set(used_symbols((group.nodes, group.types, group.operands, group.results)))
    if both := sizes & {program.index, *bound_names(program.body)}:
        raise InternalError(f"{sorted(both)} are sizes and loop variables of one kernel", why=f"kind {group.kind}")
    return program

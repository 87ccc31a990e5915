"""Lowers one group of the fused graph to loops.

In: a ``Group`` and the target. Out: its ``LoopProgram`` (stage 7). Not done here: machine code.
"""

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds import KINDS
from ingot_compiler.lowering.kinds.program import bound_names, used_symbols
from ingot_compiler.lowering.loops import LoopProgram


def lower(group: Group, target: KernelTarget) -> LoopProgram:
    """Apply the lowering of the group's kind.

    Raises:
        InternalError: a loop has the name of a size; one would be taken for the other, with a wrong answer.
    """
    program = KINDS[group.kind].lower(group, target)
    sizes = set(used_symbols((group.nodes, group.types, group.operands, group.results)))
    if both := sizes & {program.index, *bound_names(program.body)}:
        raise InternalError(f"{sorted(both)} are sizes and loop variables of one kernel", why=f"kind {group.kind}")
    return program

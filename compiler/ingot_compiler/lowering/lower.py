"""Lowers one group of the fused graph to launches of loops.

In: a ``Group``, the target, the kinds that its back end has. Out: its ``LoweredGroup`` (stage 7).
Not done here: machine code.
"""

from collections.abc import Mapping

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.loops.nested import bound_names, used_symbols


def lower(group: Group, target: KernelTarget, kinds: Mapping[str, Kind]) -> LoweredGroup:
    """Apply the lowering of the group's kind.

    Raises:
        InternalError: the back end has no such kind; or a loop has the name of a size; one would be
            taken for the other, with a wrong answer.
    """
    if group.kind not in kinds:
        raise InternalError(
            f"no kind of kernel is called {group.kind!r}", why=f"expected one of {', '.join(kinds)}"
        )
    lowered = kinds[group.kind].lower(group, target)
    sizes = _sizes_of(group)
    for program in lowered.programs if sizes else ():
        if both := sizes & {program.index, *bound_names(program.body)}:
            raise InternalError(
                f"{sorted(both)} are sizes and loop variables of one kernel",
                why=f"kind {group.kind}",
            )
    return lowered


def _sizes_of(group: Group) -> set[str]:
    """The symbols in a group's types, attributes and views."""
    tensors = (*group.operands, *group.results)
    types = [*(tensor_type for _, tensor_type in group.types), *(tensor.type for tensor in tensors)]
    dims = {
        dim for tensor_type in types for dim in tensor_type.shape if not isinstance(dim, int)
    }  # mostly none
    attributes = tuple([node.attributes for node in group.nodes if node.attributes])
    return set(used_symbols((*dims, attributes, tuple([tensor.view for tensor in tensors]))))

"""Whether fused attention copies values into scratch, or reads them in place.

In: an ``Attention``, a target. Out: a bool. Not done here: where the copy lies
(``attention_layout``), copying (``attention.attention_pack``).

A copy lies in one piece, but takes as long as some queries do. The values of one head lie between
those of others: many of them are more pages than the first TLB knows, and then a copy is faster.
"""

from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.program import Attention

_LINE_ELEMENTS = 16  # of 64 bytes
_SPAN_ELEMENTS_MAX = 80 << 10  # 80 pages of 4 KiB


def packs_values(statement: Attention, target: KernelTarget) -> bool:
    """Whether values are copied: to skip keys, a causal tile asks the copy whether all values are
    finite."""
    if statement.in_place:
        return False
    pitch = coefficient(statement.v_index, statement.key)
    if statement.causal or not isinstance(pitch, int) or not isinstance(statement.keys, int):
        return True
    in_lines = (
        target.f32_lanes == _LINE_ELEMENTS
        and statement.value_extent % _LINE_ELEMENTS == 0
        and coefficient(statement.v_index, statement.value) == 1
    )
    return not in_lines or pitch * statement.keys > _SPAN_ELEMENTS_MAX

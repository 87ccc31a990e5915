"""The record of a kind of kernel.

In: nothing. Out: ``Kind``, ``ResultLayout``. Not done here: which kinds there are (``kinds``),
which an op becomes (anchors).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum, auto

from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, one_launch
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_runtime.lazy_dataclass import dataclass


class ResultLayout(Enum):
    """The order of axes in which a kind of kernel stores its result best."""

    LIKE_OPERAND = auto()
    """The order of the first operand of the result's shape; row-major without one."""
    LIKE_FIRST_OPERAND = auto()
    """The order of the first operand, whatever its sizes are."""
    ROW_MAJOR = auto()
    CHANNELS_LAST = auto()
    """[N, spatial.., C]: the kernel's lanes are channels. A result of less than three axes lies
    like an operand."""
    HEADS_INSIDE = auto()
    """[B, rows, heads, C] of a result [B, heads, rows, C]: the heads of a row lie together."""


LowerGroup = Callable[[Group, KernelTarget], LoweredGroup]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of kernel.

    ``lower`` says what runs for a group of this kind. ``takes_followers``: elementwise users of the
    result may be computed by the same kernel, before it stores.
    """

    name: str
    lower: LowerGroup
    result_layout: ResultLayout = ResultLayout.LIKE_OPERAND
    takes_followers: bool = True


def one_kernel(lower: Callable[[Group, KernelTarget], LoopProgram]) -> LowerGroup:
    """What runs is one launch, of the loops that ``lower`` makes, over all buffers of the group."""

    @functools.wraps(lower)
    def steps(group: Group, target: KernelTarget) -> LoweredGroup:
        return one_launch(lower(group, target))

    return steps

"""Where the parts lie of factors of f32 that are multiplied as sums of bf16.

In: nothing. Out: ``SplitFactors``. Not done here: the contraction that has them (``loops``), its
meaning (``bf16_pairs``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SplitFactors:
    """Factors of f32 as sums of bf16, of which the operands of a contraction are the greatest parts.

    ``a`` and ``b``: the buffers of the lower parts, the larger ones first, which lie as the first
    ones do. ``plain``: the buffer of A itself, at ``plain_index``. ``fits``: the buffer whose first
    element, a bool, says whether products of parts are near enough; where they are not, A itself is
    multiplied by the sums of the parts of B, as one chain of multiply-adds for each element.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    plain: int
    plain_index: Dim
    fits: int

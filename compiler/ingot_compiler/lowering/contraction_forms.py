"""Contractions that add their products in ways of their own: rounded to odd, or of parts of f32.

In: a ``Contraction``. Out: the same as one of these classes, with what they have beside it. Not done
here: what they compute (``bf16_pairs``, ``interpret_blocks``).
"""

from __future__ import annotations

from dataclasses import fields

from ingot_compiler.lowering.loops import Contraction
from ingot_compiler.lowering.split_factors import SplitFactors
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ContractionToOdd(Contraction):
    """One whose sums of pairs of bf16 are rounded to odd."""

    @property
    def rounds_to_odd(self) -> bool:
        """True."""
        return True


@dataclass(frozen=True, slots=True)
class ContractionOfParts(Contraction):
    """One of parts of f32, whose tiles are multiplied in the order of ``bf16_pairs``."""

    parts: SplitFactors = SplitFactors((), (), 0, 0, 0)

    @property
    def split(self) -> SplitFactors | None:
        """The parts."""
        return self.parts


def contraction_of(
    made: Contraction, split: SplitFactors | None, *, to_odd: bool = False
) -> Contraction:
    """The same contraction, of parts or rounded to odd where that is asked for."""
    own = {each.name: getattr(made, each.name) for each in fields(made)}
    if split is not None:
        return ContractionOfParts(**own, parts=split)
    return ContractionToOdd(**own) if to_odd else made

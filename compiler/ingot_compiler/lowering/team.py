"""Units of a contraction that work together.

In: numbers. Out: ``Team``, a part of a ``Contraction``. Not done here: what they compute (``loops``),
how they share it (``backends.host.emit.kernels.team_contraction``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Team:
    """``units`` beside each other, each with one tile of rows or none (``place``: which is this
    one), may bring what they multiply into a memory that they share; without one each works
    alone."""

    units: int
    place: Dim

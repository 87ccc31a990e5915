"""What lowering asks of the processor that a kernel is made for; a back end's targets answer.

In: nothing. Out: ``KernelTarget``. Not done here: any target.
"""

from __future__ import annotations

from typing import Protocol

from ingot_compiler.ir.types import DType
from ingot_compiler.targets.processors import ProcessorClass


class KernelTarget(Protocol):
    """A processor with vector registers, as the choice of tiles and layouts sees it."""

    def __hash__(self) -> int:
        """Equal targets get equal tiles."""
        ...

    @property
    def processors(self) -> tuple[ProcessorClass, ...]:
        """The classes of processors that its code may run on, by which costs are weighed."""
        ...

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector register."""
        ...

    @property
    def f32_lanes(self) -> int:
        """Number of f32 in the widest vector register."""
        ...

    @property
    def vector_register_count(self) -> int:
        """Number of vector registers."""
        ...

    @property
    def multiplies_bytes(self) -> bool:
        """Whether four products of 8-bit integers are added to an i32 by one instruction."""
        ...

    @property
    def multiplies_by_element(self) -> bool:
        """Whether a multiply-add takes one factor from any lane of a register."""
        ...

    @property
    def multiplies_bf16(self) -> bool:
        """Whether two products of bf16 are added to an f32 by one instruction."""
        ...

    @property
    def widens_f16(self) -> bool:
        """Whether f16 becomes f32 by one instruction."""
        ...

    @property
    def rounds_pairs_to_odd(self) -> bool:
        """Whether that instruction rounds the products, their sum and the total to odd."""
        ...

    @property
    def multiplies_tiles(self) -> frozenset[DType]:
        """The element types of which whole tiles are multiplied by one instruction."""
        ...

    @property
    def team_units(self) -> int:
        """How many units of a kernel run beside each other and share a memory; 1: none do."""
        ...

    @property
    def has_fma(self) -> bool:
        """Whether multiply-add is one instruction, so that it needs no register for the product."""
        ...

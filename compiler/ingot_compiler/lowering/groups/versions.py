"""The versions of a model in a fused graph: a general one for any sizes, and those for the sizes
that the user named.

In: a fused graph. Out: ``Version``. Not done here: making one (``host_program.specialisation``),
the choice in ``main`` (``host_program.main_versions``).
"""

from __future__ import annotations

from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.lowering.groups.fused import (
    FusedGraph,
    Requirement,
    Step,
    all_steps,
    buffers_named,
)
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """The sizes that a version is for (an empty profile: all), where its steps begin, and they."""

    profile: Profile
    first_step: int
    steps: tuple[Step, ...]

    @property
    def refuses(self) -> bool:
        """Whether no call gets behind its requirements."""
        return any(isinstance(step, Requirement) and _fails(step) for step in self.steps)

    def buffers(self) -> set[int]:
        """The buffers that its steps name."""
        return {buffer for step in all_steps(self.steps) for buffer in buffers_named(step)}


def _fails(step: Requirement) -> bool:
    return isinstance(step.difference, int) and step.difference != 0


def versions_of(fused: FusedGraph) -> tuple[Version, ...]:
    """The general version, then the specialisations in the order in which ``main`` tries them."""
    profiles: list[Profile] = [(), *(each.profile for each in fused.specialisations)]
    starts = [0, *(each.first_step for each in fused.specialisations)]
    ends = [*starts[1:], len(fused.steps)]
    return tuple(
        Version(profile, start, fused.steps[start:end])
        for profile, start, end in zip(profiles, starts, ends, strict=True)
    )

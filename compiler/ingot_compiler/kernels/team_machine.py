"""The machine that kernels of GPUs are cut for: the vectors of ``VECTOR_MACHINE``, and units that
run beside each other and share a memory.

In: nothing. Out: ``TEAM_MACHINE``. Not done here: what runs a unit, which its back end knows.
"""

from typing import Final

from ingot_compiler.kernels.vector_machine import VECTOR_MACHINE
from ingot_compiler.targets.target import Target

_TEAM_UNITS: Final = 16


class TeamMachine(Target):
    """A ``Target`` whose units come in teams."""

    __slots__ = ()

    @property
    def team_units(self) -> int:
        """How many units are a team."""
        return _TEAM_UNITS


TEAM_MACHINE = TeamMachine(
    VECTOR_MACHINE.arch, VECTOR_MACHINE.level, VECTOR_MACHINE.cpu, VECTOR_MACHINE.features
)

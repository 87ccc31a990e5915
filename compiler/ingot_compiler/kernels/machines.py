"""The machines that kernels of devices are cut for: how many lanes and registers tiles count on.

In: nothing. Out: ``VECTOR_MACHINE``, ``TEAM_MACHINE``. Not done here: instructions; C has only
operators. What runs a unit of a team, its back end knows.
"""

from typing import Final

from ingot_compiler.targets.target import Target

VECTOR_MACHINE = Target("x86-64", "x86-64-v3", "", ("avx2", "fma"))


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

"""The GPUs that there is code for, and what their code asks of a driver.

In: nothing. Out: ``ARCHITECTURES``, ``GROUPS_MAX``. Not done here: targets, which name some of them
(``read_target``).

PTX for one architecture runs on it and on every later one. ``ptx``: the version of PTX that first
has the architecture (PTX ISA, "Release Notes"); ``driver``: the first driver that compiles this
version, as ``cuDriverGetVersion`` counts.
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass

GROUPS_MAX = 64
"""How many times eight threads may run a kernel that has scratch."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One of them. It has what ``codegen.llvm`` asks of a target."""

    name: str
    ptx: tuple[int, int]
    driver: int

    @property
    def triple(self) -> str:
        """LLVM target triple."""
        return "nvptx64-nvidia-cuda"

    @property
    def llvm_cpu(self) -> str:
        """LLVM cpu name."""
        return self.name

    @property
    def llvm_features(self) -> str:
        """The version of PTX."""
        return f"+ptx{self.ptx[0]}{self.ptx[1]}"


ARCHITECTURES = (
    Architecture("sm_75", (6, 3), 10000),
    Architecture("sm_80", (7, 0), 11000),
    Architecture("sm_86", (7, 1), 11010),
    Architecture("sm_87", (7, 4), 11040),
    Architecture("sm_89", (7, 8), 11080),
    Architecture("sm_90", (7, 8), 11080),
)

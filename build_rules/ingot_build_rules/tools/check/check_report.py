"""What a self-check found, for people and scripts.

In: comparisons. Out: one line, plain values, or the error of the first difference. Not done here:
comparing.
"""

from __future__ import annotations

import math
from dataclasses import asdict, field
from typing import cast

from ingot_build_rules.tools.check.deviation import Deviation
from ingot_compiler.ir.errors import VerificationError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One comparison: ``what`` was compared, ``nodes`` are the model's (name, op), ``kernel`` and
    ``launch`` if it is one."""

    what: str
    target: str
    type: str
    deviation: Deviation
    nodes: tuple[tuple[str, str], ...] = ()
    kernel: str = ""
    launch: int = -1

    def error(self, others: int) -> VerificationError:
        """The report of a difference; ``others``: how many more launches differ."""
        found = self.deviation
        place = f"{self.kernel}, launch {self.launch}, " if self.kernel else ""
        if found.index or found.count == 1:
            first = f"expected {found.expected:.9g}, got {found.got:.9g} at {list(found.index)}"
        else:
            first = f"expected {found.expected:.0f} elements, got {found.got:.0f}"
        more = f"; {others} more launches differ" if others else ""
        return VerificationError(
            f"{self.what} differs from the interpreter",
            where=f"{place}{self.type}, target {self.target}",
            why=f"{first}; {found.apart} of {found.count} elements differ, "
            f"largest error {found.absolute:.3g}, {found.relative:.3g} of the largest value{more}",
            do="report the model; no bundle was written",
        )

    def plain(self) -> dict[str, object]:
        """The finding as plain values, for JSON."""
        launch = {"kernel": self.kernel, "launch": self.launch} if self.kernel else {}
        return {**asdict(self), "kernel": None, "launch": None, **launch}


@dataclass(slots=True)
class CheckReport:
    """``largest``: the comparison of a launch with the largest relative error;
    ``outputs_relative``: end to end; ``sizes``: of the open dimensions, for each run on generated
    inputs."""

    launches: int = 0
    largest: CheckFinding | None = None
    outputs_relative: float = 0.0
    differences: list[CheckFinding] = field(default_factory=list[CheckFinding])
    targets: list[str] = field(default_factory=list[str])
    targets_left_out: list[str] = field(default_factory=list[str])
    sizes: list[dict[str, int]] = field(default_factory=list[dict[str, int]])

    def add(self, finding: CheckFinding) -> None:
        """Count one comparison."""
        if not finding.deviation.within:
            self.differences.append(finding)
        if self.largest is None or finding.deviation.relative > self.largest.deviation.relative:
            self.largest = finding

    def error(self) -> VerificationError:
        """Return the first of the differences, of which there must be one, as an error that names
        nodes, kernel, index and how far it is."""
        return self.differences[0].error(len(self.differences) - 1)

    def require_equal(self) -> None:
        """Raise for the first difference.

        Raises:
            VerificationError: naming nodes, kernel, index and how far it is.
        """
        if self.differences:
            raise self.error()

    def plain(self) -> dict[str, object]:
        """The report as plain values, for JSON."""
        found: dict[str, object] = {
            "passed": not self.differences,
            "launch_count": self.launches,
            "largest": self.largest and self.largest.plain(),
            "outputs_relative": self.outputs_relative,
            "first_difference": self.differences[0].plain() if self.differences else None,
            "difference_count": len(self.differences),
            "targets": self.targets,
            "targets_left_out": self.targets_left_out,
            "sizes": self.sizes,
        }
        return {name: _finite(value) for name, value in found.items()}

    def __str__(self) -> str:
        """One line for people."""
        found = self.largest
        largest = f"{found.deviation.relative:.1e} in {found.what}" if found else "none"
        left_out = (
            f"; not run here: {', '.join(self.targets_left_out)}" if self.targets_left_out else ""
        )
        return (
            f"checked {self.launches} launches against the interpreter: "
            f"largest relative error {largest}; outputs {self.outputs_relative:.1e}{left_out}"
        )


def _finite(value: object) -> object:
    """JSON has no infinity and no NaN: they become texts."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in cast("dict[str, object]", value).items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value

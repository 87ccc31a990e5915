"""What ``ingot compile`` tells of the bundle that it has made.

In: the outcome of a compilation. Out: plain values, lines. Not done here: compiling, printing
(``compile``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.shell.console import counted, format_bytes, format_seconds
from ingot_build_rules.tools.cli.shell.placement_lines import placement_lines
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.tools.check.check_report import CheckReport
    from ingot_build_rules.tools.check.selftest import Proved


@dataclass(frozen=True, slots=True)
class CompileOutcome:
    """``result``: the text of a stage, or the digest of the bundle that was written; ``summary``:
    of the bundle, else empty; ``checked``: what ``--check`` found; ``proved``: what the calls of
    ``--selftest`` gave; ``warnings``: of the model."""

    compiled: CompiledModel
    result: str
    summary: dict[str, object]
    checked: CheckReport | None = None
    proved: Proved | None = None
    warnings: tuple[str, ...] = ()


def report_values(outcome: CompileOutcome, output: str, seconds: float) -> dict[str, Any]:
    """Return what there is to tell of the bundle at ``output``, made in ``seconds``."""
    rule_seconds = outcome.compiled.seconds().items()
    report = {
        "output": output,
        "digest": outcome.result,
        "size_bytes": os.path.getsize(output),
        **outcome.summary,
        "warnings": list(outcome.warnings),
        "rules": outcome.compiled.counts(),
        "rule_seconds": {name: round(value, 3) for name, value in rule_seconds},
        "seconds": round(seconds, 3),
    }
    found = {"check": outcome.checked, "selftest": outcome.proved}
    return report | {name: each.plain() for name, each in found.items() if each is not None}


def report_lines(values: dict[str, Any], *found: CheckReport | Proved | None) -> list[str]:
    """Return the report of a compilation as lines for people; ``found``: by a check, by the calls
    of a selftest."""
    size, seconds = format_bytes(values["size_bytes"]), format_seconds(values["seconds"])
    lines = [f"{values['output']}: {size}, digest {values['digest'][:16]}, {seconds}"]
    for variant in values["variants"]:
        workspace = format_bytes(variant["planned_bytes"])
        workspace += "" if variant["fixed"] else " for open sizes of 64"
        kernels = counted(variant["kernel_count"], "kernel")
        made = f"{kernels} for {counted(variant['launch_count'], 'launch')}"
        lines.append(f"  {variant['target']}: {made}, workspace {workspace}")
    lines += placement_lines(values["placement"])
    return [*lines, *(f"  {each}" for each in found if each is not None)]

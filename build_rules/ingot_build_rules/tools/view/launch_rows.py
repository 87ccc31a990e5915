"""What is known of each step of a call, as plain values: nodes, kernel, device, costs, time.

In: what a report or a trace is about, perhaps times. Out: one row per launch and copy. Not done
here: measuring (``measure``), counting (``kernel_costs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingot_build_rules.tools.view.evaluate_call import CopyStep, LaunchStep
from ingot_build_rules.tools.view.kernel_costs import kernel_costs
from ingot_build_rules.tools.view.report_subject import ReportSubject
from ingot_compiler.backends.registry import backend_of_target
from ingot_compiler.kernels.machines import VECTOR_MACHINE
from ingot_compiler.targets.target import parse_target


def launch_rows(
    subject: ReportSubject, seconds: Mapping[int, float] | None = None
) -> list[dict[str, Any]]:
    """Return one row per step of the call: what `inspect` knows of a launch, with costs and, from
    ``seconds`` by ordinal, its time."""
    recorded = recorded_launches(subject)
    rows: list[dict[str, Any]] = []
    for step in subject.call.steps:
        if isinstance(step, CopyStep):
            rows.append(_copy_row(subject, step))
            continue
        known: dict[str, Any] = recorded[step.ordinal] if step.ordinal < len(recorded) else {}
        rows.append({
            "kind": "", "nodes": [], "reads": [], "writes": [], **known,
            "step": "launch", "ordinal": step.ordinal, "kernel": subject.symbol(step),
            "device": subject.plan.devices[step.device].name, "extent": step.extent,
            "seconds": None if seconds is None else seconds.get(step.ordinal),
            **_costs(subject, step),
        })  # fmt: skip
    return rows


def recorded_launches(subject: ReportSubject) -> list[dict[str, Any]]:
    """Return what the bundle's debug section says of the variant's launches, by their ordinal."""
    rows: list[dict[str, Any]] = (
        subject.described["debug"].get("launches", {}).get(subject.target, [])
    )
    return rows


def _copy_row(subject: ReportSubject, step: CopyStep) -> dict[str, Any]:
    names = [subject.plan.devices[n].name for n in (step.source_device, step.target_device)]
    return {
        "step": "copy", "kind": "copy", "nodes": [], "source": names[0], "device": names[1],
        "kernel": "", "seconds": None, "operations": 0, "bytes": 2 * step.size_bytes,
        "size_bytes": step.size_bytes,
    }  # fmt: skip


def _costs(subject: ReportSubject, step: LaunchStep) -> dict[str, int | None]:
    loops = subject.loops(step)
    if loops is None:
        return {"operations": None, "bytes": None}
    sizes = [subject.size_bytes(span) for span in step.buffers]
    target = subject.code_target(step)
    has_own_targets = backend_of_target(target).target_prefix  # it is no processor
    machine = VECTOR_MACHINE if has_own_targets else parse_target(target)
    costs = kernel_costs(loops, step, sizes, machine.vector_bits)
    return {"operations": costs.operation_count, "bytes": costs.touched_bytes}

"""All that a report shows of one variant of a bundle, as plain values for JSON.

In: a bundle, the sizes of a call, perhaps what was measured. Out: ``dict``. Not done here:
measuring (``measure``), HTML (``report_page``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ingot_build_rules.tools.text.assembly import kernel_assembly
from ingot_build_rules.tools.view.evaluate_call import LaunchStep
from ingot_build_rules.tools.view.launch_rows import launch_rows
from ingot_build_rules.tools.view.measure import MachineLimits
from ingot_build_rules.tools.view.memory_timeline import Lifetime, memory_timeline
from ingot_build_rules.tools.view.report_graph import report_graph
from ingot_build_rules.tools.view.report_subject import ReportSubject
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run on this machine gave: ``seconds`` of calls (p10, p50, p90, p99), of launches by
    ordinal; ``devices``: what each virtual device was."""

    threads: int
    calls: int
    seconds: Mapping[str, float]
    launches: Mapping[int, float]
    devices: Mapping[str, str]


def report_data(
    subject: ReportSubject, measured: Measured | None, limits: MachineLimits | None = None
) -> dict[str, Any]:
    """Return all that the page shows; times are None where nothing was measured. ``limits`` of this
    machine come with times."""
    described, plan = subject.described, subject.plan
    lifetimes = memory_timeline(subject.call, subject.writes)
    return {
        "model": described["model"],
        "digest": described["digest"],
        "format": described["format"],
        "size_bytes": described["size_bytes"],
        "target": subject.target,
        "inputs": described["inputs"],
        "outputs": described["outputs"],
        "shapes": {t.name: list(s) for t, s in zip(plan.inputs, subject.shapes, strict=True)},
        "problem": subject.call.problem,
        "variants": described["variants"],
        "memory_bytes": described["memory"],
        "sections": described["sections"],
        "devices": described["devices"],
        "libraries": described["libraries"],
        "device_use": described["device_use"][subject.target],
        "lock": described["lock"],
        "refusals": described["debug"].get("refusals", []),
        "launches": launch_rows(subject, None if measured is None else measured.launches),
        **report_graph(subject, lifetimes),
        "pools": _pools(subject, lifetimes),
        "assembly": _assembly(subject),
        "measured": None if measured is None else _plain_measured(measured, limits),
    }


def _plain_measured(measured: Measured, limits: MachineLimits | None) -> dict[str, Any]:
    plain = asdict(measured)
    del plain["launches"]
    return {**plain, "limits": None if limits is None else asdict(limits)}


def _pools(subject: ReportSubject, lifetimes: Sequence[Lifetime]) -> list[dict[str, Any]]:
    """The workspace of each device, and what lies in it when."""
    return [
        {
            "device": device.name,
            "size_bytes": subject.call.workspace_bytes[number],
            "lifetimes": [
                [life.span.offset, life.span.size_bytes, life.first, life.last]
                for life in lifetimes
                if life.span.origin == "workspace" and life.span.device == number
            ],
        }
        for number, device in enumerate(subject.plan.devices)
    ]


def _assembly(subject: ReportSubject) -> dict[str, str]:
    """Assembly by symbol; what cannot be shown says why."""
    texts: dict[str, str] = {}
    for step in subject.call.steps:
        if isinstance(step, LaunchStep) and subject.symbol(step) not in texts:
            symbol = subject.symbol(step)
            try:
                text = kernel_assembly(subject.described, subject.code_target(step), symbol)
            except UserError as error:
                text = f"# {error.what}: {error.why or error.do}\n"
            texts[symbol] = text
    return dict(sorted(texts.items()))

"""Verb ``identify``: what this machine can run.

In: nothing. Out: its architecture, level and named features, perhaps its rates. Not done here:
probing (the loader's own probe), measuring (``view.measure_processor``).
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.shell import console

if TYPE_CHECKING:
    from ingot_compiler.targets.processors import ProcessorClass


def _kinds() -> tuple[str, ...]:
    """The kinds of devices beside the host that the loader has code for."""
    from ingot_runtime.errors import IncompatibleError
    from ingot_runtime.loader.bind_devices import devices_module

    try:
        return tuple(devices_module("registry", "this machine").OPEN)
    except IncompatibleError:  # they are a package of their own
        return ()


def _measured(row: ProcessorClass | None) -> dict[str, Any]:
    """The rates of this machine, those of its class, and where they differ."""
    from ingot_build_rules.tools.view.measure_processor import differences, measure_processor

    found = measure_processor()
    measured = {
        name: round(value, 2) if isinstance(value, float) else value
        for name, value in asdict(found).items()
    }
    table = {name: getattr(row, name) for name in measured if name != "clock"} if row else None
    differs = list(differences(found, row)) if row else []
    return {"measured": measured, "table": table, "differs": differs}


def _measured_lines(found: dict[str, Any]) -> list[str]:
    """A row for each column of the table of classes."""
    measured: dict[str, object] = found["measured"]
    table: dict[str, object] = found["table"] or {}
    rows = [("", "measured", "its class", "")]
    for name, value in measured.items():
        ours = f"{found['measured']['clock'] / 1e9:.2f} GHz" if name == "clock" else _shown(value)
        note = "not as the table has it" if name in found["differs"] else ""
        rows.append((name, ours, _shown(table.get(name, "")), note))
    return console.format_table(rows, right=(1, 2))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def run(arguments: argparse.Namespace) -> int:
    """Print what the probe finds, the target that ``native`` stands for, and what is measured."""
    from ingot_build_rules.making.options.host_target import resolve_target
    from ingot_compiler.targets.processors import processor_class
    from ingot_runtime.loader.cpu import machine_architecture, machine_features, processor_model

    target, model = resolve_target("native"), processor_model()
    processor = processor_class(target.level, model)
    found: dict[str, str | list[str]] = {
        "architecture": machine_architecture(),
        "level": target.level,
        "processor": model or "unknown",
        "class": processor.name if processor else "unknown",
        "native": str(target),
        "features": sorted(machine_features()),
        "devices": ["host", *_kinds()],
    }
    rows = [(name, it if isinstance(it, str) else " ".join(it)) for name, it in found.items()]
    lines = console.format_table(rows)
    measured = _measured(processor) if arguments.measure else {}
    if measured:
        lines += ["", *_measured_lines(measured)]
    console.print_report({**found, **measured}, lines, as_json=arguments.json)
    return 0

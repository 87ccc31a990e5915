"""Verb ``identify``: what this machine can run.

In: nothing. Out: its architecture, level and named features. Not done here: probing (the loader's
own probe).
"""

from __future__ import annotations

import argparse

from ingot_build_rules.tools.cli.shell import console


def _kinds() -> tuple[str, ...]:
    """The kinds of devices beside the host that the loader has code for."""
    from ingot_runtime.errors import IncompatibleError
    from ingot_runtime.loader.bind_devices import devices_module

    try:
        return tuple(devices_module("registry", "this machine").OPEN)
    except IncompatibleError:  # they are a package of their own
        return ()


def run(arguments: argparse.Namespace) -> int:
    """Print what the probe finds, and the target that ``native`` stands for."""
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
    console.print_report(found, console.format_table(rows), as_json=arguments.json)
    return 0

"""Options as plain values, as a bundle's lock and a lock file have them.

In: ``CompileOptions``. Out: a record. Not done here: options again (``recorded_options``), files.

Targets are recorded by their features, so ``native`` is what it was on the machine that built.
"""

from __future__ import annotations

from ingot_build_rules.rules.compile_options import CompileOptions


def options_record(options: CompileOptions) -> dict[str, object]:
    """Return every option by its name."""
    return {
        "targets": [str(target) for target in options.targets],
        "shapes": {name: list(sizes) for name, sizes in options.shapes},
        "devices": dict(options.devices),
        "place": [list(pair) for pair in options.place],
        "planner": options.planner,
    }

"""Options as plain values, as a bundle's lock and a lock file have them, and options again.

In: ``CompileOptions``, or a record that anybody may have written. Out: the other. Not done here: files.

Targets are recorded by their features, so ``native`` is what it was on the machine that built.
"""

from __future__ import annotations

from ingot_build_rules.rules.compile_options import CompileOptions
from ingot_build_rules.rules.plain_values import as_list, as_size, as_table, as_text, as_texts


def options_record(options: CompileOptions) -> dict[str, object]:
    """Return every option by its name."""
    return {
        "targets": [str(target) for target in options.targets],
        "shapes": {name: list(sizes) for name, sizes in options.shapes},
        "devices": dict(options.devices),
        "place": [list(pair) for pair in options.place],
        "planner": options.planner,
    }


def recorded_options(record: object) -> CompileOptions:
    """Return the options that a record has.

    Raises:
        KeyError, TypeError, ValueError: not a record of options. UserError: values that this version does not know.
        UnsupportedError: a device kind without code.
    """
    from ingot_build_rules.rules.options import make_options

    values = as_table(record)
    targets = [as_text(target) for target in as_list(values["targets"])]
    shapes = {name: [as_size(size) for size in as_list(sizes)] for name, sizes in as_table(values["shapes"]).items()}
    place = [(as_text(glob), as_text(device)) for glob, device in map(as_list, as_list(values["place"]))]
    if not targets:
        raise ValueError("no target")
    return make_options(targets, shapes, as_texts(values["devices"]), place, as_text(values["planner"]))

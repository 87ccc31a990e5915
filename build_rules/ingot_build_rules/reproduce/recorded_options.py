"""Options from plain values.

In: a record (``CompileOptions.plain``) that anybody may have written. Out: ``CompileOptions``. Not
done here: files.
"""

from __future__ import annotations

from ingot_build_rules.compilation.options import make_options
from ingot_build_rules.compilation.plain_values import (
    as_flag,
    as_list,
    as_table,
    as_text,
    as_texts,
)
from ingot_build_rules.rules.compile_options import FORBID, CompileOptions


def recorded_options(record: object) -> CompileOptions:
    """Return the options that a record has.

    Raises:
        KeyError, TypeError, ValueError: not a record of options. UserError: values that this
        version does not know. UnsupportedError: a device kind without code.
    """
    values = as_table(record)
    targets = [as_text(target) for target in as_list(values["targets"])]
    shapes = list(map(as_texts, as_list(values["shapes"])))
    pairs = map(as_list, as_list(values["place"]))
    place = [(as_text(glob), as_text(device)) for glob, device in pairs]
    if not targets:
        raise ValueError("no target")
    devices, planner = as_texts(values["devices"]), as_text(values["planner"])
    other_shapes, strip = as_text(values["other_shapes"]), as_flag(values["strip"])
    # Older records have neither.
    fallback = as_text(values.get("fallback", FORBID))
    strict_dims = as_flag(values.get("strict_dims", False))
    return make_options(
        targets,
        shapes,
        devices,
        place,
        planner,
        other_shapes,
        strip=strip,
        fallback=fallback,
        strict_dims=strict_dims,
    )

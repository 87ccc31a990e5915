"""Verb ``export``: a bundle, or a model, as something that runs without Python.

In: a bundle or a model. Out: files, a line about them; an exit code. Not done here: making them
(``export.export_kinds``).
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ingot_build_rules.making.options.export_rows import (
    EXPORT_ROWS,
    FIELD_ROWS,
    NOTHING_SAID,
    ExportFields,
    misfits,
)
from ingot_build_rules.making.stages.kind_of_file import (
    check_bundle_kind,
    check_model_kind,
    is_program,
)
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.usage import profiles, unique
from ingot_build_rules.tools.workspace.cache_folder import (
    cache_folder,
    cache_max_bytes,
    cache_trust,
)
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_build_rules.tools.export.export_kinds import Exported


def run(arguments: argparse.Namespace) -> int:
    """Check what is given, of a bundle every byte, and write the files."""
    from ingot_artifacts.inspect.describe import opened
    from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
    from ingot_build_rules.making.stages.output_file import check_output, check_output_folder
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.tools.export.export_kinds import WRITERS, choices_of
    from ingot_build_rules.tools.ship.share import require_own_weights

    started = time.perf_counter()
    name, fields = _kind(arguments), _fields(arguments)
    kind = EXPORT_ROWS[name]
    for field in misfits(name, fields)[:1]:
        what, why = f"--{FIELD_ROWS[field].option} does not fit", f"it says nothing of --{name}"
        raise UserError(what, "ingot export", why, "leave it out")
    if kind.in_folder:
        check_output_folder(arguments.output)
    else:
        check_output(arguments.output, [arguments.bundle, *arguments.also])
    if kind.of_model:
        if not is_program(arguments.bundle):
            check_model_kind(arguments.bundle)
    else:
        for bundle in (arguments.bundle, *arguments.also):
            check_bundle_kind(bundle)
            verify_whole_bundle(bundle)
            with opened(bundle) as source:
                require_own_weights(source, "what is exported stands alone")
    trust = cache_trust(shared=arguments.cache_shared)
    settings = BuildSettings(
        cache_folder(arguments.cache), trust, max_bytes=cache_max_bytes(), tell=console.print_note
    )
    with open_build(settings) as build:
        choices = choices_of(name, fields, "ingot export")
        made = WRITERS[name](build, arguments.bundle, arguments.output, choices)
    seconds = time.perf_counter() - started
    values = {"bundle": arguments.bundle, "output": arguments.output, **made.values}
    line = _line(arguments.output, made, seconds)
    console.print_report({**values, "seconds": round(seconds, 3)}, [line], as_json=arguments.json)
    return 0


def _line(output: str, made: Exported, seconds: float) -> str:
    shown = {
        name: console.format_bytes(value)
        if isinstance(value, int) and not name.endswith("_count")
        else value
        for name, value in made.values.items()
    }
    says = made.says.format_map(shown)
    if digest := str(made.values.get("digest", ""))[:16]:
        says = f"{says}; digest {digest}"
    return f"{output}: {says}, {console.format_seconds(seconds)}"


def _kind(arguments: argparse.Namespace) -> str:
    """The one kind that is asked for."""
    kinds = [name for name, kind in EXPORT_ROWS.items() if not kind.of_project]
    names = [name for name in kinds if getattr(arguments, name.replace("-", "_"))]
    flags = ", ".join(f"--{name}" for name in kinds)
    if len(names) != 1:
        got = " ".join(f"--{name}" for name in names) or "none"
        why, do = f"expected one of {flags}, got {got}", f"give one, such as --{kinds[0]}"
        if names:
            do = " or ".join(f"leave --{name} out" for name in names)
        raise UserError("what to export?", "ingot export", why, do)
    return names[0]


def _fields(arguments: argparse.Namespace) -> ExportFields:
    """What is said of it."""
    given = {
        field: getattr(arguments, row.option.replace("-", "_"))
        for field, row in FIELD_ROWS.items()
        if row.option
    }
    pools = tuple(f"{name}={place}" for name, place in unique(arguments.pool, "--pool").items())
    shapes = tuple(tuple(each.items()) for each in profiles(arguments.shape))
    texts = {field: value or "" for field, value in given.items() if field in _TEXTS}
    lists = {"pools": pools, "shapes": shapes, "also": tuple(arguments.also)}
    return NOTHING_SAID._replace(**{**given, **texts, **lists})


_TEXTS = tuple(field for field, value in NOTHING_SAID._asdict().items() if value == "")

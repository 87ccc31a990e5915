"""Verb ``export``: a bundle, or a model, as something that runs without Python.

In: a bundle or a model. Out: files, a line about them; an exit code. Not done here: making them
(``export.export_kinds``).
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ingot_build_rules.cli import console
from ingot_build_rules.cli.usage import profiles, unique
from ingot_build_rules.compilation.kind_of_file import check_bundle_kind, check_model_kind
from ingot_build_rules.compilation.program_suffix import is_program
from ingot_build_rules.workspace.cache_folder import cache_folder, cache_max_bytes, cache_trust
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_build_rules.export.export_kinds import ExportChoices, Exported, ExportKind

_OPTIONS = (
    "name", "variant", "shared", "pool", "tensors_in", "also", "shape", "target", "weights_apart",
    "dynamic",
)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Check what is given, of a bundle every byte, and write the files."""
    from ingot_artifacts.inspect.describe import opened
    from ingot_build_rules.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.compilation.open_build import BuildSettings, open_build
    from ingot_build_rules.compilation.output_file import check_output, check_output_folder
    from ingot_build_rules.ship.share import require_own_weights

    started = time.perf_counter()
    kind = _kind(arguments)
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
        made = kind.write(build, arguments.bundle, arguments.output, _choices(arguments))
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


def _kind(arguments: argparse.Namespace) -> ExportKind:
    """The one kind that is asked for, with no option of another."""
    from ingot_build_rules.export.export_kinds import KINDS

    kinds = [name for name, kind in KINDS.items() if not kind.of_project]
    names = [name for name in kinds if getattr(arguments, name.replace("-", "_"))]
    flags = ", ".join(f"--{name}" for name in kinds)
    if len(names) != 1:
        got = " ".join(f"--{name}" for name in names) or "none"
        why, do = f"expected one of {flags}, got {got}", f"give one, such as --{kinds[0]}"
        if names:
            do = " or ".join(f"leave --{name} out" for name in names)
        raise UserError("what to export?", "ingot export", why, do)
    for option in _OPTIONS:
        if getattr(arguments, option) and option not in KINDS[names[0]].takes:
            where, other = "ingot export", f"--{option.replace('_', '-')}"
            why = f"it says nothing of --{names[0]}"
            raise UserError(f"{other} does not fit", where, why, "leave it out")
    return KINDS[names[0]]


def _choices(arguments: argparse.Namespace) -> ExportChoices:
    from ingot_build_rules.export.c_source import CChoices, are_tensors_in
    from ingot_build_rules.export.export_kinds import ExportChoices
    from ingot_build_rules.export.library_facts import LibraryChoices
    from ingot_build_rules.export.library_pools import PoolWishes
    from ingot_compiler.backends.c.c_forms import C_FORMS

    wishes = PoolWishes(tuple(unique(arguments.pool, "--pool").items()), arguments.tensors_in or "")
    shapes = profiles(arguments.shape)
    first = tuple(shapes[0].items()) if shapes else ()
    library = LibraryChoices(arguments.name or "", arguments.variant or "", wishes, first)
    is_source = bool(arguments.c_source)  # a library has other pools
    source = CChoices(
        arguments.name or "",
        tuple(shapes),
        arguments.target or C_FORMS[0].name,
        arguments.weights_apart,
        is_source and are_tensors_in(arguments.tensors_in or ""),
    )
    others, dynamic = tuple(arguments.also), arguments.dynamic
    return ExportChoices(library, arguments.shared, others, source, dynamic=dynamic)

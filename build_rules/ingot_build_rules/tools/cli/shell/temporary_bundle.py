"""A bundle for a verb that takes models too: the one that is named, or one compiled for the moment.

In: the verb's arguments. Out: the path of a bundle, which lives as long as the block. Not done
here: compiling (``compilation``).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Generator

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind, check_model_kind
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.options import usable_cpu_count
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format.header import MAGIC
from ingot_runtime.lazy_dataclass import dataclass

_ENDING = ".onnx"


@dataclass(frozen=True, slots=True)
class GivenBundle:
    """``path`` of a bundle; ``how_made``: how it was made, "" where the user named it."""

    path: str
    how_made: str = ""


@contextlib.contextmanager
def given_bundle(arguments: argparse.Namespace) -> Generator[GivenBundle]:
    """Yield the bundle that ``arguments.bundle`` is, or that of the model that it is.

    Raises:
        UserError: a target for what is a bundle already. Errors of a compilation.
    """
    path = arguments.bundle
    if not _is_model(path):
        if arguments.target is not None:
            why = "it was compiled for its targets; a model would be compiled now"
            do = f"leave --target out; `ingot inspect {shlex.quote(path)}` lists its variants"
            raise UserError("a target for a bundle", path, why, do)
        check_bundle_kind(path)
        yield GivenBundle(path)
        return
    check_model_kind(path)
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        name = os.path.basename(path).removesuffix(_ENDING)
        made = os.path.join(folder, f"{name}.ingot")
        yield GivenBundle(made, _compiled(arguments, made))


def _is_model(path: str) -> bool:
    """Whether the file is a model: its name says so, and its first bytes do not contradict."""
    if not path.endswith(_ENDING):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) != MAGIC
    except OSError:
        return True  # the compiler says what is wrong


def _compiled(arguments: argparse.Namespace, output: str) -> str:
    """Compile into a file; return what was done."""
    from ingot_build_rules.making.options.options import make_options
    from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
    from ingot_build_rules.making.stages.start_compilation import start_compilation
    from ingot_build_rules.tools.workspace.cache_folder import (
        cache_folder,
        cache_max_bytes,
        cache_trust,
    )

    target, folder = arguments.target or "native", cache_folder(arguments.cache)
    doing = f"{arguments.bundle} for {target}, over the cache {folder}, into a temporary bundle"
    console.print_lines(f"compiling {doing}", file=sys.stderr, flush=True)
    trust = cache_trust(shared=arguments.cache_shared)
    settings = BuildSettings(
        folder,
        trust,
        jobs=usable_cpu_count(),
        max_bytes=cache_max_bytes(),
        tell=console.print_note,
    )
    started = time.perf_counter()
    with open_build(settings) as build:
        start_compilation(build, arguments.bundle, make_options([target])).save(output)
    return f"compiled {doing}, in {console.format_seconds(time.perf_counter() - started)}"

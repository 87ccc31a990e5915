"""Verb ``export``: a bundle as something that runs without Python.

In: a bundle. Out: a file, a line about it; an exit code. Not done here: making it
(``export.executable``).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from ingot_build_rules.cli import console
from ingot_build_rules.compilation.kind_of_file import check_bundle_kind
from ingot_build_rules.workspace.cache_folder import cache_folder, cache_trust

if TYPE_CHECKING:
    from ingot_build_rules.export.executable import Executable


def run(arguments: argparse.Namespace) -> int:
    """Check every byte of the bundle, and write the file."""
    from ingot_build_rules.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.compilation.open_build import BuildSettings, open_build
    from ingot_build_rules.compilation.output_file import check_output
    from ingot_build_rules.export.executable import write_executable

    started = time.perf_counter()
    check_bundle_kind(arguments.bundle)
    check_output(arguments.output, [arguments.bundle])
    verify_whole_bundle(arguments.bundle)
    trust = cache_trust(shared=arguments.cache_shared)
    settings = BuildSettings(cache_folder(arguments.cache), trust)
    with open_build(settings) as build:
        made = write_executable(build, arguments.bundle, arguments.output)
    seconds = time.perf_counter() - started
    values = {"bundle": arguments.bundle, "output": arguments.output, **asdict(made)}
    line = _line(arguments.output, made, seconds)
    console.print_report({**values, "seconds": round(seconds, 3)}, [line], as_json=arguments.json)
    return 0


def _line(output: str, made: Executable, seconds: float) -> str:
    loader, whole = map(console.format_bytes, (made.loader_bytes, made.size_bytes))
    what = f"{output}: {whole}, of which the loader has {loader}, for {made.triple}"
    return f"{what}; digest {made.digest[:16]}, {console.format_seconds(seconds)}"

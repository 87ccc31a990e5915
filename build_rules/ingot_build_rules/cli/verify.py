"""Verb ``verify``: every byte of bundles checked.

In: bundles. Out: what was verified and how long it took, or what is wrong; an exit code. Not done
here: checking (``check.verify_bundle``).
"""

from __future__ import annotations

import argparse
import time

from ingot_build_rules.cli import console
from ingot_build_rules.cli.options import DIGEST, JSON, add_options
from ingot_compiler.ir.errors import UserError

_FAILED = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("bundles", nargs="+", metavar="BUNDLE")
    add_options(parser, DIGEST, JSON)


def run(arguments: argparse.Namespace) -> int:
    """Verify all of them, whatever becomes of each; one that is damaged makes the exit code 4, else
    the worst counts."""
    if arguments.digest is not None and len(arguments.bundles) > 1:
        raise UserError(
            "one digest for several bundles",
            "option --digest",
            f"expected one bundle, got {len(arguments.bundles)}",
            "verify them one by one",
        )
    started = time.perf_counter()
    reports, codes = list[dict[str, object]](), list[int]()
    for path in arguments.bundles:
        report, code = _verify(path, arguments.digest, quiet=arguments.json)
        reports.append(report)
        codes.append(code)
    if arguments.json:
        console.print_json({"bundles": reports, "seconds": round(time.perf_counter() - started, 3)})
    return _FAILED if _FAILED in codes else max(codes)


def _verify(path: str, digest: str | None, *, quiet: bool) -> tuple[dict[str, object], int]:
    from ingot_build_rules.check.verify_bundle import verify_whole_bundle
    from ingot_runtime.errors import BundleError

    started = time.perf_counter()
    try:
        found = verify_whole_bundle(path, digest)
    except BundleError as error:
        console.print_error(error)
        parts = console.plain_error(error)
        return {
            "bundle": path,
            "verified": False,
            "error": parts,
            "exit_code": error.exit_code,
        }, error.exit_code
    seconds = time.perf_counter() - started
    if not quiet:
        what = f"{found.section_count} sections, {found.kernel_count} kernels for {', '.join(found.targets)}"
        size = f"all {console.format_bytes(found.size_bytes)} of {what}"
        console.print_lines(
            f"{path}: verified {size}, digest {found.digest[:16]}, {console.format_seconds(seconds)}"
        )
    return {
        "bundle": path,
        "verified": True,
        "digest": found.digest,
        "size_bytes": found.size_bytes,
        "sections": found.section_count,
        "targets": list(found.targets),
        "kernels": found.kernel_count,
        "weights_bytes": found.weights_bytes,
        "seconds": round(seconds, 3),
    }, 0

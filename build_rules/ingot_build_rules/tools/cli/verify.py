"""Verb ``verify``: every byte of bundles checked.

In: bundles. Out: what was verified and how long it took, or what is wrong; an exit code. Not done
here: checking (``check.verify_bundle``).
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console
from ingot_compiler.ir.errors import UserError
from ingot_runtime.json_output import error_values

if TYPE_CHECKING:
    from ingot_build_rules.tools.check.verify_bundle import VerifiedBundle

_FAILED = 4


class Checks(NamedTuple):
    """What a bundle must be besides whole: the one of a digest, signed by one of some keys or as a
    policy says."""

    digest: str | None
    keys: str | tuple[str, ...] | None


def run(arguments: argparse.Namespace) -> int:
    """Verify all of them, whatever becomes of each; one that is damaged makes the exit code 4, else
    the worst counts."""
    if arguments.digest is not None and len(arguments.bundles) > 1:
        what, where = "one digest for several bundles", "option --digest"
        why = f"expected one bundle, got {len(arguments.bundles)}"
        raise UserError(what, where, why, "verify them one by one")
    if arguments.policy is not None and arguments.require_key:
        why = "expected --policy, or --require-key"
        raise UserError("a policy and keys", "command line", why, "name the keys in the policy")
    started = time.perf_counter()
    checks = Checks(arguments.digest, arguments.policy or tuple(arguments.require_key) or None)
    found = [_verify(path, checks, quiet=arguments.json) for path in arguments.bundles]
    worst, code = max(found, key=lambda item: (item[1] == _FAILED, item[1]))
    if arguments.json:
        seconds = round(time.perf_counter() - started, 3)
        failure = {"error": worst["error"]} if code else {}
        values = {"bundles": [report for report, _ in found], "seconds": seconds}
        console.print_json(values | failure)
    return code


def _verify(path: str, checks: Checks, *, quiet: bool) -> tuple[dict[str, Any], int]:
    """Verify one bundle, and say so; return what there is to report of it, and the exit code."""
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_runtime.errors import BundleError

    started = time.perf_counter()
    try:
        check_bundle_kind(path)
        found = verify_whole_bundle(path, checks.digest, checks.keys)
    except BundleError as error:
        console.print_error(error)
        failure = {"bundle": path, "verified": False, "error": error_values(error)}
        return failure, error.exit_code
    seconds = time.perf_counter() - started
    if not quiet:
        console.print_lines(_line(path, found, seconds))
    return _values(path, found, seconds), 0


def _values(path: str, verified: VerifiedBundle, seconds: float) -> dict[str, object]:
    return {
        "bundle": path,
        "verified": True,
        "digest": verified.digest,
        "size_bytes": verified.size_bytes,
        "section_count": verified.section_count,
        "targets": list(verified.targets),
        "kernel_count": verified.kernel_count,
        "weights_bytes": verified.weights_bytes,
        "signed_by": list(verified.signed_by),
        "seconds": round(seconds, 3),
    }


def _line(path: str, verified: VerifiedBundle, seconds: float) -> str:
    kernels = (
        f"{console.counted(verified.kernel_count, 'kernel')} for {', '.join(verified.targets)}"
    )
    what = f"all {console.format_bytes(verified.size_bytes)} of {verified.section_count} sections"
    signed = f"signed by {', '.join(verified.signed_by)}, " if verified.signed_by else ""
    made = f"{signed}digest {verified.digest[:16]}, {console.format_seconds(seconds)}"
    return f"{path}: verified {what}, {kernels}, {made}"

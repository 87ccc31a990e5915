"""Verb ``share``: a bundle whose weights lie in another one, as far as they are the same.

In: two bundles. Out: a bundle, a line about it; an exit code. Not done here: what is shared
(``ship.share``).
"""

from __future__ import annotations

import argparse
import os

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console


def run(arguments: argparse.Namespace) -> int:
    """Verify both, and write what is the bundle's own."""
    from ingot_artifacts.bundle.rewrite import rewrite_bundle
    from ingot_artifacts.inspect.describe import opened
    from ingot_build_rules.making.stages.output_file import check_output
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.tools.ship.share import share_changes
    from ingot_compiler.ir.errors import UserError

    given = arguments.base, arguments.bundle
    for path in given:
        check_bundle_kind(path)
    check_output(arguments.output, list(given))
    folders = [
        os.path.realpath(os.path.dirname(path)) for path in (arguments.base, arguments.output)
    ]
    if folders[0] != folders[1]:
        why, do = "its weights are looked for beside it", f"write it into {folders[0]}"
        raise UserError("the bundle would not find its weights", arguments.output, why, do)
    for path in given:
        verify_whole_bundle(path)
    with opened(arguments.base) as base, opened(arguments.bundle) as source:
        parts = share_changes(base, source, os.path.basename(arguments.base))
        digest = rewrite_bundle(source, parts.changes, arguments.output)
        before = source.size_bytes
    size = os.stat(arguments.output).st_size
    given_values = {"base": arguments.base, "bundle": arguments.bundle}
    made = {"output": arguments.output, "digest": digest, "size_bytes": size}
    values = {**given_values, **made, "shared_bytes": parts.shared_bytes}
    now, was = console.format_bytes(size), console.format_bytes(before)
    line = f"{arguments.output}: {now} of {was}, the rest in {arguments.base}; digest {digest[:16]}"
    console.print_report(values, [line], as_json=arguments.json)
    return 0

"""Verb ``thin``: a bundle with one of its variants.

In: a bundle, a target. Out: a bundle, a line about it; an exit code. Not done here: what is left
(``ship.thin``).
"""

from __future__ import annotations

import argparse
import os

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console


def run(arguments: argparse.Namespace) -> int:
    """Verify every byte, and write what is left."""
    from ingot_artifacts.bundle.rewrite import rewrite_bundle
    from ingot_artifacts.inspect.describe import opened
    from ingot_build_rules.making.stages.output_file import check_output
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.tools.ship.thin import thin_changes
    from ingot_runtime.format import header as head

    check_bundle_kind(arguments.bundle)
    check_output(arguments.output, [arguments.bundle])
    verify_whole_bundle(arguments.bundle)
    with opened(arguments.bundle) as source:
        changes = thin_changes(source, arguments.target)
        is_shared = (head.SHARED, 0) in changes.payloads
        other = source.shared.name if source.shared and is_shared else ""
        digest, before = rewrite_bundle(source, changes, arguments.output), source.size_bytes
    found = os.stat(arguments.output)
    taken = min(found.st_size, found.st_blocks * 512)
    values = {"bundle": arguments.bundle, "output": arguments.output, "target": arguments.target}
    sizes = {"digest": digest, "size_bytes": found.st_size, "disk_bytes": taken}
    was, now = console.format_bytes(before), console.format_bytes(taken)
    beside = f"; weights in {other} made thin, too" if other else ""
    line = f"{arguments.output}: {now} of {was}, {arguments.target}; digest {digest[:16]}{beside}"
    console.print_report({**values, **sizes}, [line], as_json=arguments.json)
    return 0

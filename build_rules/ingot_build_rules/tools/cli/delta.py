"""Verb ``delta``: what turns one bundle into another.

In: two bundles. Out: a file, a line about it; an exit code. Not done here: making it
(``ship.delta``).
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console


def run(arguments: argparse.Namespace) -> int:
    """Verify both, and write what they differ in."""
    from ingot_build_rules.making.stages.output_file import check_output
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.tools.ship.delta import write_delta

    given = arguments.old, arguments.new
    for path in given:
        check_bundle_kind(path)
    check_output(arguments.output, list(given))
    size_bytes = [verify_whole_bundle(path).size_bytes for path in given][1]
    made = write_delta(*given, arguments.output)
    values = {"old": arguments.old, "new": arguments.new, "output": arguments.output}
    size, whole = map(console.format_bytes, (made.size_bytes, size_bytes))
    roots = f"{made.old_digest[:16]} -> {made.new_digest[:16]}"
    line = f"{arguments.output}: {size} in the place of {whole}, {roots}"
    console.print_report({**values, **asdict(made)}, [line], as_json=arguments.json)
    return 0

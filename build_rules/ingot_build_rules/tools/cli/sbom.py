"""Verb ``sbom``: what a bundle is made of.

In: a bundle. Out: a document of CycloneDX; an exit code. Not done here: what is in it
(``ship.sbom``).
"""

from __future__ import annotations

import argparse
import json

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console


def run(arguments: argparse.Namespace) -> int:
    """Verify every byte, and write the document."""
    from ingot_artifacts.inspect.describe import opened
    from ingot_build_rules.making.stages.output_file import check_output, write_text
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.tools.ship.sbom import bill_of_materials

    check_bundle_kind(arguments.bundle)
    if arguments.output is not None:
        check_output(arguments.output, [arguments.bundle])
    verify_whole_bundle(arguments.bundle)
    with opened(arguments.bundle) as source:
        text = json.dumps(bill_of_materials(source, arguments.license), indent=2)
    if arguments.output is None:
        console.print_listing(text)
    else:
        write_text(arguments.output, text + "\n")
    return 0

"""Verb ``why-device``: why a value of a bundle is on its device.

In: a bundle, a name. Out: the chain of reasons, in the model's own names. Not done here: following
it (``view.device_chain``), deciding (``placement``).
"""

from __future__ import annotations

import argparse

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.text.stripped import STRIPPED, is_stripped


def run(arguments: argparse.Namespace) -> int:
    """Print one chain for each value that is meant, and the copies of it."""
    from ingot_artifacts.inspect.describe import describe_bundle
    from ingot_build_rules.tools.view.device_chain import device_chains

    check_bundle_kind(arguments.bundle)
    described = describe_bundle(arguments.bundle, arguments.digest)
    stripped = is_stripped(described)
    chains = device_chains(described, arguments.value, arguments.bundle)
    values = {
        "bundle": arguments.bundle,
        "digest": described["digest"],
        "value": arguments.value,
        "stripped": stripped,
        "devices": [device["name"] for device in described["devices"]],
        "chains": [chain.plain() for chain in chains],
    }
    lines = [STRIPPED] if stripped else []
    lines += [line for chain in chains for line in chain.lines()]
    if not chains:
        lines.append(f"{arguments.value}: on the host, like everything: there is no other device")
    console.print_report(values, lines, as_json=arguments.json)
    return 0

"""The versions of a model in a bundle, for people: for which sizes each is, and what it launches.

In: a fused graph with its groups expanded, names. Out: plain values for the debug section. Not done
here: the launches themselves (``launch_report``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.sizes.profile import Profile, SizeRange
from ingot_compiler.lowering.groups.fused import FusedGraph, Launch, all_steps
from ingot_compiler.lowering.groups.versions import versions_of


def describe_versions(fused: FusedGraph, names: Names) -> list[dict[str, object]]:
    """Say of each version, the general one first, its ``sizes`` (name and number or range, of those
    that are not open) whether its calls are ``refused``, and how many ``launches`` it has; they follow one another
    in the list of all.
    """
    return [
        {
            "sizes": describe_sizes(version.profile, names),
            "refused": version.refuses,
            "launches": sum(isinstance(step, Launch) for step in all_steps(version.steps)),
        }
        for version in versions_of(fused)
    ]


def describe_sizes(profile: Profile, names: Names) -> list[list[str]]:
    """Return the name of each size that is not open, and the number or range that it has."""
    called = dict(names.symbols)
    return [_size(item, called.get(item.symbol, item.symbol)) for item in profile]


def _size(item: SizeRange, name: str) -> list[str]:
    one = item.least == item.most
    return [name, str(item.least) if one else f"{item.least}..{item.most}"]

"""The share of a model that runs on each device, for the one line that reports it.

In: a compilation. Out: plain values. Not done here: counting (``report.placement_report``), the
line (``cli.shell.placement_lines``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.making.stages.compilation import Compilation

if TYPE_CHECKING:
    from ingot_compiler.placement.placed import PlacedGraph


async def find_fallbacks(compilation: Compilation) -> list[str]:
    """Say of each node that its device has no code for that the host runs it."""
    from ingot_build_rules.making.report.placement_report import fallen_back

    names, graphs = await compilation.names(), await _graphs(compilation)
    return list(dict.fromkeys(text for graph in graphs for text in fallen_back(graph, names)))


async def describe_placement(compilation: Compilation) -> list[dict[str, object]]:
    """Return a description of each version, the general one first; none where there is the host
    alone."""
    if not compilation.options.devices:
        return []
    from ingot_build_rules.making.report.placement_report import describe_devices

    names, graphs = await compilation.names(), await _graphs(compilation)
    profiles = ((), *(await compilation.typed()).profiles)
    return [
        describe_devices(graph, profile, names)
        for graph, profile in zip(graphs, profiles, strict=True)
    ]


async def _graphs(compilation: Compilation) -> list[PlacedGraph]:
    """The placed graphs of all versions."""
    graphs = (await compilation.placed(), *await compilation.specialisations())
    return [await compilation.build.value(graph) for graph in graphs]

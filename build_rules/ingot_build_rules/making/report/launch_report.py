"""The launches of a bundle and the messages of its programs, in the user's names.

In: a fused graph, symbols of kernels, names. Out: plain values for the debug section. Not done
here: what fusion did (``fusion_report``), the bundle (rule ``bundle``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.in_names import text_in_names, type_in_names
from ingot_compiler.ir.message import Text
from ingot_compiler.lowering.groups.fused import FusedGraph, launches_of


def describe_launches(fused: FusedGraph, symbols: Sequence[str], names: Names) -> list[object]:
    """Say for each launch which kernel runs which of the user's nodes on which shapes; ``symbols``:
    of all programs' kernels.

    ``fused`` has its groups expanded. Launches of one group have equal rows but for what each reads
    and writes of the group's tensors; what goes from one launch to another is no tensor of the
    model.
    """
    return [
        {
            "kernel": symbols[launch.program],
            "kind": ".".join(filter(None, (launch.group.plugin, launch.group.kind))),
            "method": str(launch.group.method),
            "nodes": [list(names.nodes[ordinal]) for ordinal in launch.group.source],
            "reads": [
                type_in_names(operand.type, names)
                for operand in launch.group.operands
                if operand.buffer in launch.buffers
            ],
            "writes": [type_in_names(operand.type, names) for operand in launch.results],
        }
        for launch in launches_of(fused)
    ]


def name_messages(messages: Iterable[Text], names: Names) -> dict[str, object]:
    """Return each text that a program may say with the same in the user's names, where these are in
    it."""
    named = {str(text): text_in_names(text, names) for text in messages}
    return {text: named[text] for text in sorted(named) if named[text] != text}

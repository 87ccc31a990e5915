"""Where two results of one stage part: the first line of their texts that differs, with the user's
names.

In: a rule's name, its old result and the new one. Out: a sentence. Not done here: finding the rule
(``blame``), the texts themselves (``print_*`` of each stage).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from ingot_build_rules.tools.text.loop_record import read_program
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.lowering.groups.print_fused import print_fused
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.memory.print_memory import print_memory
from ingot_compiler.placement.print_placed import print_placed

TEXTS: Mapping[str, Callable[[Any], str]] = {
    "infer_types": print_graph,
    "optimize": lambda optimized: print_graph(optimized.graph),
    "place": print_placed,
    "fuse": print_fused,
    "plan_memory": print_memory,
}
"""Rule -> the text of its result."""
_SOURCE = re.compile(r"@\[([\d, ]+)\]")
_WIDTH_MAX = 160


def stage_difference(rule: str, old: object, new: object, names: Names) -> str:
    """Say which line of a text of ``TEXTS`` became which other one; "" for equal ones."""
    return _first(TEXTS[rule](old), TEXTS[rule](new), names)


def program_difference(old: bytes, new: bytes) -> str:
    """Say which line of a bundle's loop program became which other one; "" where one of the two is
    no program."""
    try:
        return _first(print_loops(read_program(old)), print_loops(read_program(new)), None)
    except (
        UserError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ):  # a program of parts that do not fit
        return ""


def _first(old: str, new: str, names: Names | None) -> str:
    for left, right in zip_longest(old.splitlines(), new.splitlines(), fillvalue=""):
        if left != right:
            return f"{_shown(left)} became {_shown(right)}{_nodes(right, names)}"
    return ""


def _shown(line: str) -> str:
    line = line.strip()
    return (
        f"'{line if len(line) <= _WIDTH_MAX else line[: _WIDTH_MAX - 3] + '...'}'"
        if line
        else "nothing"
    )


def _nodes(line: str, names: Names | None) -> str:
    found = _SOURCE.search(line)
    if names is None or found is None:
        return ""
    ordinals: Sequence[int] = [
        int(text) for text in found[1].split(",") if int(text) < len(names.nodes)
    ]
    return f", node {names.describe(ordinals)}"

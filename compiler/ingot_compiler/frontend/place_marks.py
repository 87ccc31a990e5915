"""Resolves ``--place GLOB=DEVICE`` to a mark per node.

In: node names and the user's globs. Out: a device name or "" per node. Not done here: devices (``placement``).
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from ingot_compiler.frontend.suggest import suggest
from ingot_compiler.ir.errors import UserError


def place_marks(names: Sequence[str], place: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The mark of each node; of several globs that match the last one wins; UserError for one that matches nothing."""
    marks = [""] * len(names)
    for glob, device in place:
        matches = [index for index, name in enumerate(names) if fnmatchcase(name, glob)]
        if not matches:
            close = suggest(glob, names)
            do = f"did you mean {close!r}?" if close else "`ingot compile --to imported` prints all nodes"
            raise UserError("a placement matches no node", f"--place {glob}={device}", "", do)
        for index in matches:
            marks[index] = device
    return tuple(marks)

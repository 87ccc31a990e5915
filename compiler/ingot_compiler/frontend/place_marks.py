"""Resolves ``--place GLOB=DEVICE`` to a mark per node.

In: node names and the user's globs. Out: a device name or "" per node. Not done here: devices
(``placement``), marks inside branches of If and bodies of loops: they run on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from ingot_compiler.frontend.suggest import suggest
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.message import OptionRef, message

_SHOWN_MAX = 3


def place_marks(
    names: Sequence[str], place: Sequence[tuple[str, str]], inner_names: Sequence[str] = ()
) -> tuple[str, ...]:
    """The mark of each node of the graph; of several globs that match the last one wins.

    Raises:
        UserError: a glob matches nothing. UnsupportedError: it matches nodes inside branches and
            bodies alone, ``inner_names``.
    """
    marks = [""] * len(names)
    for glob, device in place:
        matches = [index for index, name in enumerate(names) if fnmatchcase(name, glob)]
        if not matches and glob != "*":  # that is all nodes, also where there are none
            where = OptionRef("place", f"{glob}={device}")
            raise _no_match(glob, where, names, inner_names)
        for index in matches:
            marks[index] = device
    return tuple(marks)


def _no_match(
    glob: str, where: OptionRef, names: Sequence[str], inner_names: Sequence[str]
) -> UserError | UnsupportedError:
    """Why no node of the graph itself has such a name."""
    inside = [repr(name) for name in inner_names if fnmatchcase(name, glob)]
    if inside:
        shown = ", ".join(inside[:_SHOWN_MAX]) + (", ..." if len(inside) > _SHOWN_MAX else "")
        why = f"{shown}: in a branch of If or the body of a loop, which run on the host"
        do = "place nodes of the graph itself"
        return UnsupportedError("a placement inside control flow", where, why, do)
    close = suggest(glob, names)
    all_nodes = message(OptionRef("to", "imported"), " gives the names of all nodes")
    meant = f"did you mean {close!r}?" if close else all_nodes
    return UserError("a placement matches no node", where, "", meant)

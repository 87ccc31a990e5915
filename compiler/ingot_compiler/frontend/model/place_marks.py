"""Resolves ``--place GLOB=DEVICE`` to a mark per node.

In: node names and the user's globs. Out: a device name, ``auto`` or "" per node; which globs count. Not done here: devices
(``placement``).
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from glob import escape

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.graph import AUTO
from ingot_compiler.ir.message import message
from ingot_compiler.ir.suggest import nearest
from ingot_runtime.option_ref import OptionRef

_SHOWN_MAX = 3


def place_marks(names: Sequence[str], place: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The mark of each node; of several globs that match the last one wins.

    Raises:
        UserError: a glob matches nothing.
    """
    marks = [""] * len(names)
    for glob, device in place:
        matches = [index for index, name in enumerate(names) if fnmatchcase(name, glob)]
        if not matches and glob != "*":  # that is all nodes, also where there are none
            where = OptionRef("place", f"{glob}={device}")
            raise _no_match(glob, where, names)
        for index in matches:
            marks[index] = device
    return tuple(marks)


def matching_globs(name: str, place: Sequence[tuple[str, str]]) -> tuple[int, ...]:
    """The numbers of the globs that a node's name matches, from 0; the last one counts."""
    return tuple(number for number, (glob, _) in enumerate(place) if fnmatchcase(name, glob))


def disagreements(names: Sequence[str], place: Sequence[tuple[str, str]]) -> list[str]:
    """Say of each two globs that put nodes on different devices which one counts; what is left to
    us contradicts nothing."""
    found: dict[tuple[int, int], list[str]] = {}
    for name in names:
        *earlier, last = matching_globs(name, place) or (0,)
        for number in earlier:
            if place[number][1] not in (AUTO, place[last][1]):
                found.setdefault((last, number), []).append(name)
    return [
        f"{OptionRef('place', '='.join(place[last]))} counts, and not the earlier "
        f"{'='.join(place[number])}, for {_shown(nodes)}"
        for (last, number), nodes in sorted(found.items())
    ]


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN_MAX]))
    rest = len(names) - _SHOWN_MAX
    return f"{shown} and {rest} more" if rest > 0 else shown


def _no_match(glob: str, where: OptionRef, names: Sequence[str]) -> UserError:
    """The refusal, with globs for the names that are most like this one."""
    close = [escape(name) for name in _nearest(glob, names)]
    all_nodes = message(
        "leave it out, and ", OptionRef("to", "imported"), " gives the names of all nodes"
    )
    suggestion = f"did you mean {' or '.join(map(repr, close))}?" if close else all_nodes
    return UserError("a placement matches no node", where, "", suggestion)


def _nearest(glob: str, names: Sequence[str]) -> list[str]:
    """The names most like what the glob says without its wildcards, at most three."""
    said = "".join(letter for letter in glob if letter not in "*?[]").casefold()
    starts = {name: name.casefold()[: len(said)] for name in dict.fromkeys(names)}
    near = get_close_matches(said, sorted(set(starts.values())), _SHOWN_MAX)
    whole = nearest(glob, names)
    found: list[str] = [whole] if whole else []
    found += [name for start in near for name in starts if starts[name] == start]
    return list(dict.fromkeys(found))[:_SHOWN_MAX]

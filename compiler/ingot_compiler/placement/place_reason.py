"""Why a value is on its device: one link of the chain that ``ingot why-device`` follows.

In: nothing. Out: ``PlaceReason``, ``REASON_KINDS``. Not done here: deciding (``place``), words for
people (``report.placement_report``).
"""

from __future__ import annotations

from typing import Literal, get_args

from ingot_runtime.lazy_dataclass import dataclass

PlaceReasonKind = Literal[
    "input",  # the caller gives it, on the host
    "marked",  # the user put its node there
    "auto",  # the cost model put its node there
    "follows",  # its node runs where ``value``, an operand, lives
    "host_only",  # only the host runs its node: control flow, or what ``device`` has no code for
    "fallback",  # its node is marked for ``device``, which has no code for it
    "default",  # nothing says otherwise
    "read_by",  # a constant, lives where the node of ``value`` reads it first
    "returned",  # a constant that nothing reads but the caller
    "copied_for",  # a copy, since the node of ``value`` reads it there
    "made_for",  # a constant once more, since the node of ``value`` reads it there
]
REASON_KINDS: tuple[PlaceReasonKind, ...] = get_args(PlaceReasonKind)
NO_VALUE = -1
"""The reader of ``copied_for`` and ``made_for``: the caller of the graph reads it."""
CANNOT_RUN = -1


@dataclass(frozen=True, slots=True)
class PlaceReason:
    """``value``: the next link of the chain. ``device``: the one that does not run the node.
    ``picoseconds``: of ``auto``: what each device of the table would take, ``CANNOT_RUN`` where it
    has no code."""

    kind: PlaceReasonKind
    value: int = NO_VALUE
    device: str = ""
    picoseconds: tuple[int, ...] = ()

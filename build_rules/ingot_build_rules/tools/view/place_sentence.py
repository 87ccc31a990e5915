"""The reason of a value's device as a sentence.

In: a row of the debug section. Out: ``PlacedRow``, sentences. Not done here: which rows
(``device_chain``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

Globs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """One value of the placed graph, as the debug section has it; ``reader``: who reads a copy."""

    op: str
    nodes: tuple[tuple[str, str], ...]
    name: str
    device: str
    reason: str
    of: int | None
    leads_to: int | None
    asked: str
    globs: tuple[int, ...]
    picoseconds: tuple[tuple[str, int], ...]
    plan: tuple[str, ...] = ()
    reader: str = ""

    @staticmethod
    def read(row: Mapping[str, Any]) -> PlacedRow:
        """Read a row of the shape that the format names."""
        return PlacedRow(
            row["op"],
            tuple((name, op) for name, op in row["nodes"]),
            row.get("name", ""),
            row["device"],
            row["reason"],
            row.get("of"),
            row.get("from"),
            row.get("asked", ""),
            tuple(row.get("globs", ())),
            tuple((name, each) for name, each in row.get("picoseconds", ())),
            tuple(row.get("plan", ())),
        )

    def read_in(self, rows: Sequence[PlacedRow]) -> PlacedRow:
        """Return this row with the name of its reader."""
        known = self.leads_to is not None and self.leads_to < len(rows)
        return replace(self, reader=rows[self.leads_to or 0].title() if known else "the caller")

    def title(self) -> str:
        """What the user calls it."""
        if self.op == "copy":
            return f"a copy on {self.device}"
        if self.name:
            return f"{'constant' if self.op else 'input'} {self.name}"
        if self.nodes:
            return ", ".join(f"{name} ({op})" for name, op in self.nodes)
        return f"a {self.op} that no node of the model asked for"


def sentence(row: PlacedRow, after: PlacedRow | None, globs: Globs) -> str:
    """Say why a value is where it is; ``after``: what the reason leads to."""
    other = after.title() if after is not None else row.reader or "the caller"
    say = _SENTENCES.get(row.reason)
    return say(row, other, globs) if say is not None else row.reason


def _asked_for(row: PlacedRow, globs: Globs) -> str:
    """By which option a node was placed, and which ones did not count."""
    known = ["=".join(globs[number - 1]) for number in row.globs if 0 < number <= len(globs)]
    if row.plan:
        return f"the program: {'; '.join(row.plan)}"
    if not known:
        return "the user"
    over = f", not {', '.join(map(repr, known[:-1]))}" if len(known) > 1 else ""
    return f"{OptionRef('place', repr(known[-1]))}{over}"


def _auto(row: PlacedRow, _other: str, globs: Globs) -> str:
    times = [f"{name} {each / 1e6:.4g} us" for name, each in row.picoseconds]
    by = _asked_for(row, globs)
    return f"left to the cost model by {by}; with its copies it takes {', '.join(times)}"


def _host_only(row: PlacedRow, other: str, _globs: Globs) -> str:
    if row.asked:
        return f"{row.asked}, where {other} is, has no code for it: the host runs it"
    return "only the host runs it"


def _fallback(row: PlacedRow, _other: str, globs: Globs) -> str:
    by = _asked_for(row, globs)
    return f"{row.asked} has no code for it, where {by} puts it: the host runs it ({OptionRef('fallback')})"


_SENTENCES: Mapping[str, Callable[[PlacedRow, str, Globs], str]] = {
    "input": lambda _row, _other, _globs: "the caller gives it, on the host",
    "marked": lambda row, _other, globs: f"put on {row.device} by {_asked_for(row, globs)}",
    "auto": _auto,
    "follows": lambda _row, other, _globs: (
        f"no option names it: it follows {other}, which it reads"
    ),
    "host_only": _host_only,
    "fallback": _fallback,
    "default": lambda _row, _other, _globs: "nothing says otherwise",
    "read_by": lambda _row, other, _globs: (
        f"a constant, which lies where it is read first: by {other}"
    ),
    "returned": lambda _row, _other, _globs: "a constant that the model returns",
    "copied_for": lambda row, other, _globs: f"copied to {row.device} for {row.reader or other}",
    "made_for": lambda row, other, _globs: (
        f"a constant, made on {row.device} once more for {other}"
    ),
}
"""By kind of reason (``placement.place_reason``)."""

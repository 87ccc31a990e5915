"""The text of one LLVM IR function under construction: its lines, and the module's declarations.

In: lines in any order of places: ``mark`` leaves a place, ``at`` writes there later. Out: module
text in final form. Not done here: what instructions look like (``instructions``), blocks
(``writer``).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from ingot_compiler.backends.host.llvm_value import FLOAT_ELEMENTS, LlvmValue, float_text
from ingot_compiler.backends.host.targets.target import Target

Lines = list["str | Lines"]
LANE_SLOT, TEAM_SLOT = "%own", "%team"
"""What the names of slots begin with that are no plain ones; behind the first one stand the
lanes."""


class FunctionText:
    """One function under construction, with the module's declarations and constants."""

    __slots__ = (
        "_arrays",
        "_counter",
        "_declarations",
        "_labels",
        "_sink",
        "_slots",
        "entry",
        "label",
        "lines",
        "target",
    )

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lines: Lines = []
        self._slots: Lines = []  # stack slots, first lines of the entry block
        self.entry: Lines = []  # runs once, after the slots
        self._sink = self.lines
        self._counter = 0
        self._labels = 0
        self._declarations: dict[str, str] = {}
        self._arrays: dict[str, str] = {}
        self.label = "entry"
        self.lines += ["entry:", self._slots, self.entry]

    def line(self, text: str) -> None:
        """Append an instruction without result."""
        self._sink.append("  " + text)

    def fresh(self, element: str, lanes: int = 0) -> LlvmValue:
        """A new name, to be defined by the caller."""
        self._counter += 1
        return LlvmValue(f"%v{self._counter}", element, lanes)

    def define(self, text: str, element: str, lanes: int = 0) -> LlvmValue:
        """Append ``%new = text``."""
        result = self.fresh(element, lanes)
        self.line(f"{result.text} = {text}")
        return result

    def mark(self) -> Lines:
        """Leave an insertion point here, to be filled with ``at``."""
        point: Lines = []
        self._sink.append(point)
        return point

    @contextmanager
    def at(self, point: Lines) -> Generator[None]:
        """Write straight-line code to an earlier insertion point."""
        sink, self._sink = self._sink, point
        try:
            yield
        finally:
            self._sink = sink

    def interleave(self, many: Sequence[str | Lines], few: Sequence[str | Lines]) -> None:
        """Append two pieces of straight-line code that do not need one another, the lines of the
        second spread evenly behind those of the first."""
        done = 0
        for number, line in enumerate(many, start=1):
            end = number * len(few) // len(many)
            self._sink += [line, *few[done:end]]
            done = end

    def module(self, header: str, attributes: str) -> str:
        """The whole module: arrays, declarations, one function
        ``define HEADER ATTRIBUTES { ... }``."""
        body: list[str] = []
        _flatten(self.lines, body)
        parts = [self._arrays[name] for name in sorted(self._arrays)]
        parts += [self._declarations[name] for name in sorted(self._declarations)]
        return "\n".join([*parts, f"define {header} {attributes} {{", *body, "}", ""])

    def slot(self, element: str, count: int = 1, align: int = 64) -> LlvmValue:
        """Stack memory of the function, allocated once at its entry."""
        return self._allocated(self.fresh("ptr"), element, count, align)

    def lane_slot(self, element: str, lanes: int, vectors: int) -> LlvmValue:
        """A slot for whole vectors, of which each lane reads what it wrote itself: where lanes are
        threads, memory of each thread's own."""
        if self.target.team_units == 1:
            return self.slot(element, lanes * vectors)
        return self._named_slot(f"{LANE_SLOT}{lanes}_", element, lanes * vectors)

    def team_slot(self, element: str, count: int) -> LlvmValue:
        """Memory that the units of a team share; between what one writes and another reads stands
        ``team_barrier``."""
        return self._named_slot(TEAM_SLOT, element, count)

    def _named_slot(self, prefix: str, element: str, count: int) -> LlvmValue:
        self._counter += 1
        result = LlvmValue(f"{prefix}{self._counter}", "ptr")
        return self._allocated(result, element, count)

    def _allocated(self, place: LlvmValue, element: str, count: int, align: int = 64) -> LlvmValue:
        self._slots.append(f"  {place.text} = alloca {element}, i64 {count}, align {align}")
        return place

    def array(
        self, name: str, element: str, values: Sequence[str | int | float], align: int = 64
    ) -> LlvmValue:
        """A read-only array in the module, shared by name."""
        texts = (
            str(value) if element not in FLOAT_ELEMENTS else float_text(float(value), element)
            for value in values
        )
        content = ", ".join(f"{element} {text}" for text in texts)
        kind = f"[{len(values)} x {element}]"
        self._arrays[name] = (
            f"@{name} = private unnamed_addr constant {kind} [{content}], align {align}"
        )
        return LlvmValue(f"@{name}", "ptr")


def _flatten(lines: Lines, result: list[str]) -> None:
    for line in lines:
        if isinstance(line, str):
            result.append(line)
        else:
            _flatten(line, result)

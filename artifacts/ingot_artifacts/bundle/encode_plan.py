"""The bytes of the sections of plan and values: FORMAT.md, "Words and texts".

In: a record of ``ingot_runtime.format.schema``. Out: bytes that its reader reads back. Not done here:
checking them (the reader does).
"""

import struct
from collections.abc import Sequence
from typing import Any

from ingot_runtime.format.plan import PLAN_VERSION, BundlePlan, ValuePlan
from ingot_runtime.format.schema import Record, Row


class PlanWriter:
    """Collects words and texts in the order that ``Reader`` reads them."""

    __slots__ = ("_minor", "_texts", "_words")

    def __init__(self, minor: int = 0) -> None:
        self._minor = minor
        self._words: list[int] = []
        self._texts: list[bytes] = []

    def word(self, *values: int) -> None:
        """Append words."""
        self._words += values

    def text(self, text: str) -> None:
        """Append a text and the word with its length in bytes."""
        data = text.encode()
        self._words.append(len(data))
        self._texts.append(data)

    def record(self, record: Record) -> None:
        """Append the fields of a record."""
        for row in record.rows:
            if row.since <= self._minor:
                self._value(row, getattr(record, row.name))

    def _value(self, row: Row, value: Any) -> None:
        """Append an integer, a text, a name as its number, a record, or a list of these or pairs."""
        if isinstance(value, Record):
            self.record(value)
        elif isinstance(value, int):
            self.word(value)
        elif isinstance(value, str) and row.of:
            self.word(row.of.index(value))
        elif isinstance(value, str):
            self.text(value)
        else:
            if row.kind != "words per device":
                self.word(len(value))
            for each in value:
                if row.kind == "ranges":
                    self.word(*each)
                else:
                    self._value(row, each)

    def data(self) -> bytes:
        """Return the whole stream."""
        return struct.pack(f"<q{len(self._words)}q", len(self._words), *self._words) + b"".join(
            self._texts
        )


def encode_plan(plan: BundlePlan) -> bytes:
    """Return the bytes of the plan section of a bundle of the plan's minor version."""
    out = PlanWriter(plan.minor)
    out.word(PLAN_VERSION)
    out.record(plan)
    return out.data()


def encode_values(values: Sequence[Sequence[tuple[str, str]]]) -> bytes:
    """Return the bytes of the section of values: name and form of all inputs, then of all outputs."""
    out = PlanWriter()
    for named in values:
        out.word(len(named))
        for name, form in named:
            out.record(ValuePlan(name, form))
    return out.data()

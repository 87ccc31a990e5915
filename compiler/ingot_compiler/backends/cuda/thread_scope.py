"""The instructions of one thread under construction: names, constants that differ by thread.

In: LLVM IR. Out: ``ThreadScope``: lines of the body, lines of the kernel's start, tables. Not done
here: what instructions become (``thread_function``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingot_compiler.backends.cuda.lane_group import LANE, LANE64, LANES, element_of, pieces_of
from ingot_compiler.backends.host.llvm_value import LlvmValue, element_bits
from ingot_compiler.ir.errors import InternalError

_LIST = re.compile(r"<(\w+) (?!x )[^<>]*>")
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_SUFFIX = re.compile(r"\.v(\d+)(?=[ifp]\d)")


class ThreadScope:
    """``lines`` are the body so far, ``start`` what runs before it; ``tables`` stand before the
    function, with names that begin with ``prefix``."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.lines: list[str] = []
        self.start: list[str] = []
        self.tables: list[str] = []
        self.declarations: set[str] = set()
        self._constants: dict[str, str] = {}
        self._counter = 0

    def line(self, text: str) -> None:
        """Append an instruction."""
        self.lines.append(f"  {text}")

    def define(self, text: str) -> str:
        """Append an instruction; return the name of what it gives."""
        self._counter += 1
        self.line(f"%t{self._counter} = {text}")
        return f"%t{self._counter}"

    def _define_at_start(self, text: str) -> str:
        self._counter += 1
        self.start.append(f"  %t{self._counter} = {text}")
        return f"%t{self._counter}"

    def own(self, text: str) -> str:
        """A text of vectors as one of what a thread has of them."""
        if "<" in text:
            text = _LIST.sub(lambda found: self._list(found[0], found[1]), text)
            text = _VECTOR.sub(lambda found: f"<{pieces_of(_count(found))} x {found[2]}>", text)
        return _SUFFIX.sub(lambda found: f".v{pieces_of(_count(found))}", text)

    def own_value(self, value: LlvmValue) -> LlvmValue:
        """What a thread has of an operand."""
        lanes = pieces_of(value.lanes) if value.lanes else 0
        return LlvmValue(self.own(value.text), value.element, lanes)

    def thread_offset(self, lanes: int) -> str:
        """How many elements lie before those of a thread in a vector, an i64."""
        if lanes == LANES:
            return LANE64
        if lanes > LANES:
            return self._constant(f"offset {lanes}", f"mul i64 {LANE64}, {pieces_of(lanes)}")
        return self._constant(f"offset {lanes}", f"urem i64 {LANE64}, {lanes}")

    def _constant(self, key: str, text: str) -> str:
        if key not in self._constants:
            self._constants[key] = self._define_at_start(text)
        return self._constants[key]

    def by_thread(self, numbers: Sequence[int]) -> str:
        """An i32 that is ``numbers[thread]``, each from 0 to 15."""
        if len(set(numbers)) == 1:
            return str(numbers[0])
        if list(numbers) == list(range(LANES)):
            return LANE
        word = sum(number << 4 * thread for thread, number in enumerate(numbers))
        word -= (word >> 31) << 32
        key = f"word {word}"
        if key not in self._constants:
            shift = self._constant("shift", f"shl i32 {LANE}, 2")
            self._constants[key] = self._define_at_start(f"lshr i32 {word}, {shift}")
            return self._constant(f"{key} low", f"and i32 {self._constants[key]}, 15")
        return self._constants[f"{key} low"]

    def flag_by_thread(self, flags: Sequence[bool]) -> str:
        """An i1 that is ``flags[thread]``."""
        if len(set(flags)) == 1:
            return str(flags[0]).lower()
        bits = sum(int(flag) << thread for thread, flag in enumerate(flags))
        moved = self._constant(f"bits {bits}", f"lshr i32 {bits}, {LANE}")
        return self._constant(f"flag {bits}", f"trunc i32 {moved} to i1")

    def _list(self, text: str, element: str) -> str:
        """The numbers of a constant that a thread has, a vector that is made at the start."""
        if text not in self._constants:
            numbers = [part.split(" ", 1)[1] for part in text[1:-1].split(", ")]
            self._constants[text] = self._own_numbers(element, numbers)
        return self._constants[text]

    def _own_numbers(self, element: str, numbers: Sequence[str]) -> str:
        lanes, count = len(numbers), pieces_of(len(numbers))
        if lanes % LANES and LANES % lanes:
            raise InternalError(f"{lanes} lanes are no share of {LANES} threads")
        made, kind = "poison", f"<{count} x {element}>"
        for piece in range(count):
            mine = [numbers[element_of(thread, piece, lanes)] for thread in range(LANES)]
            number = self._own_number(element, mine)
            made = self._define_at_start(
                f"insertelement {kind} {made}, {element} {number}, i32 {piece}"
            )
        return made

    def _own_number(self, element: str, numbers: Sequence[str]) -> str:
        if len(set(numbers)) == 1:
            return numbers[0]
        if element == "i1":
            return self.flag_by_thread([number in ("1", "true") for number in numbers])
        if re.fullmatch(r"i\d+", element):
            first, second = int(numbers[0]), int(numbers[1])
            step = second - first
            if [int(number) for number in numbers] == [first + step * n for n in range(LANES)]:
                narrow = "trunc" if element_bits(element) < 64 else ""
                lane = LANE64
                if narrow:
                    lane = self._constant(f"lane {element}", f"trunc i64 {LANE64} to {element}")
                moved = self._define_at_start(f"mul {element} {lane}, {step}")
                return self._define_at_start(f"add {element} {moved}, {first}")
        name = f"@{self.prefix}_lanes{len(self.tables)}"
        texts = ", ".join(f"{element} {number}" for number in numbers)
        self.tables.append(
            f"{name} = private unnamed_addr constant [{LANES} x {element}] [{texts}], align 8"
        )
        at = self._define_at_start(f"getelementptr {element}, ptr {name}, i64 {LANE64}")
        return self._define_at_start(f"load {element}, ptr {at}")


def _count(found: re.Match[str]) -> int:
    return int(found[1])

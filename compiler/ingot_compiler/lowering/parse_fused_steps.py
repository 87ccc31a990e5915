"""Reads the steps of a fused graph.

In: a reader that stands before the first step. Out: the steps; where each one stands. Not done
here: what the nodes of a kernel are (``parse_group``), whether steps are well formed
(``verify_fused``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ingot_compiler.ir.message import InputRef, Message, NodeRef, OutputRef, Piece, Text
from ingot_compiler.ir.parse_graph import Places, read_source
from ingot_compiler.ir.problem import Path
from ingot_compiler.ir.read_terms import read_dim, read_element
from ingot_compiler.ir.text_reader import Reader
from ingot_compiler.lowering.fused import (
    Copy,
    Grow,
    HeldPair,
    HoldState,
    IfStep,
    LoopStep,
    Requirement,
    Step,
    SymbolRead,
    SymbolSet,
)
from ingot_compiler.lowering.parse_group import read_group
from ingot_runtime.lazy_dataclass import dataclass

_REFERENCES: Mapping[str, Callable[[int], Piece]] = {
    "node": NodeRef,
    "input": InputRef,
    "output": OutputRef,
}


def read_steps(reader: Reader, places: Places) -> tuple[Step, ...]:
    """The steps up to the first constant or the end; their places are added to ``places``."""
    return _Steps(reader, places).until(("constant", ""), ())


def _text(reader: Reader) -> Text:
    """``"what"`` or ``["in pieces", size s0]``."""
    if not reader.accept("["):
        return reader.string()
    return Message(reader.items(lambda: _piece(reader), "]"))


def _piece(reader: Reader) -> Piece:
    """A piece of a text: ``"words"``, ``node 1``, ``size 2*s0``."""
    if reader.token.kind == "STRING":
        return reader.string()
    start = reader.token
    word = reader.choice(("node", "input", "output", "size"))
    if word != "size":
        return _REFERENCES[word](reader.integer())
    size = read_dim(reader)
    if isinstance(size, int):
        raise reader.fail(f"expected a size with a symbol, got {size}", start)
    return size


@dataclass(frozen=True, slots=True)
class _Steps:
    """Reads steps; remembers where each one stands."""

    reader: Reader
    places: Places

    def until(self, words: tuple[str, ...], path: Path) -> tuple[Step, ...]:
        """Steps up to one of some words, which is left."""
        found: list[Step] = []
        while self.reader.token.text not in words:
            at = (*path, len(found))
            self.places[at] = self.reader.token
            found.append(_READERS[self.reader.choice(tuple(_READERS))](self, at))
        return tuple(found)

    def block(self, path: Path) -> tuple[Step, ...]:
        """``{ STEP ... }``."""
        self.reader.expect("{")
        with self.reader.nested():
            steps = self.until(("}", ""), path)
        self.reader.expect("}")
        return steps

    def read(self, _: Path) -> SymbolRead:
        """``read size s = b0[INDEX]: i64 at most 9 @[1]``."""
        reader = self.reader
        is_size = reader.choice(("size", "number")) == "size"
        element, most = read_element(reader), None
        if reader.accept("at"):
            reader.expect("most")
            most = reader.integer()
        return SymbolRead(*element, is_size, read_source(reader), most)

    def set(self, path: Path) -> SymbolSet:
        """``set a, b = DIM, DIM``."""
        names = self.reader.listed(lambda: self.reader.name("a symbol"))
        self.reader.expect("=")
        values = self.reader.listed(lambda: read_dim(self.reader))
        if len(names) != len(values):
            raise self.reader.fail(
                f"expected {len(names)} values, got {len(values)}", self.places[path]
            )
        return SymbolSet(names, values)

    def hold(self, _: Path) -> HoldState:
        """``hold room, pitch, moved from DIM to DIM: 0 in 1 by DIM, 2 in 3 by DIM``."""
        reader = self.reader
        room = reader.name("a symbol")
        reader.expect(",")
        pitch = reader.name("a symbol")
        reader.expect(",")
        moved = reader.name("a symbol")
        reader.expect("from")
        past = read_dim(reader)
        reader.expect("to")
        rows = read_dim(reader)
        reader.expect(":")
        return HoldState(room, pitch, moved, rows, past, reader.listed(self._pair))

    def _pair(self) -> HeldPair:
        number = self.reader.integer()
        self.reader.expect("in")
        output = self.reader.integer()
        self.reader.expect("by")
        return HeldPair(number, output, read_dim(self.reader))

    def grow(self, _: Path) -> Grow:
        """``grow b0 to DIM, keep DIM by b1``."""
        buffer = self.reader.buffer()
        self.reader.expect("to")
        count = read_dim(self.reader)
        if not self.reader.accept(","):
            return Grow(buffer, count)
        self.reader.expect("keep")
        kept = read_dim(self.reader)
        return Grow(buffer, count, kept, self.reader.buffer() if self.reader.accept("by") else -1)

    def require(self, _: Path) -> Requirement:
        """``require DIM = 0, TEXT @[1]``."""
        difference = read_dim(self.reader)
        self.reader.expect("=", "0", ",")
        return Requirement(difference, _text(self.reader), read_source(self.reader))

    def copy(self, _: Path) -> Copy:
        """``copy b0 to b1 @[1]``."""
        operand = self.reader.buffer()
        self.reader.expect("to")
        return Copy(operand, self.reader.buffer(), read_source(self.reader))

    def begin_copy(self, path: Path) -> Copy:
        """``begin_copy b0 to b1 @[1]``."""
        return replace(self.copy(path), part="begin")

    def end_copy(self, path: Path) -> Copy:
        """``end_copy b0 to b1 @[1]``."""
        return replace(self.copy(path), part="end")

    def branch(self, path: Path) -> IfStep:
        """``if s { ... } else { ... }``."""
        condition = self.reader.name("a symbol")
        then = self.block((*path, 0))
        self.reader.expect("else")
        return IfStep(condition, then, self.block((*path, 1)))

    def loop(self, path: Path) -> LoopStep:
        """``while i < DIM and s holding b0, b1 { ... }``."""
        reader = self.reader
        counter = reader.name("a symbol")
        reader.expect("<")
        count = read_dim(reader)
        condition = reader.name("a symbol") if reader.accept("and") else ""
        held = reader.listed(reader.buffer) if reader.accept("holding") else ()
        return LoopStep(counter, count, condition, self.block((*path, 0)), held)


_READERS: Mapping[str, Callable[[_Steps, Path], Step]] = {
    "read": _Steps.read,
    "set": _Steps.set,
    "hold": _Steps.hold,
    "grow": _Steps.grow,
    "require": _Steps.require,
    "copy": _Steps.copy,
    "begin_copy": _Steps.begin_copy,
    "end_copy": _Steps.end_copy,
    "if": _Steps.branch,
    "while": _Steps.loop,
    "kernel": lambda steps, path: read_group(steps.reader, steps.places, path),
}

"""Reads the text form of a fused graph.

In: text, as ``print_fused`` writes it or by hand. Out: a ``FusedGraph`` that ``verify_fused``
accepts, or ``ModelError`` with line and column. Not done here: devices and targets, which are
beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.message import InputRef, Message, NodeRef, OutputRef, Piece, Text
from ingot_compiler.ir.parse_graph import Places, read_graph, read_node, read_source
from ingot_compiler.ir.problem import Path
from ingot_compiler.ir.read_terms import read_dim, read_dtype, read_element, read_type
from ingot_compiler.ir.text_reader import Reader, Token
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fused import (
    BufferSpec,
    Copy,
    FusedGraph,
    Group,
    Grow,
    IfStep,
    LoopStep,
    Operand,
    Requirement,
    Specialisation,
    Step,
    SymbolRead,
    SymbolSet,
    View,
)
from ingot_compiler.lowering.verify_fused import find_fused_problems
from ingot_compiler.lowering.verify_fused_buffers import BUFFER, CONSTANT


def parse_fused(text: str, kinds: Collection[str] = ()) -> FusedGraph:
    """The fused graph that ``text`` writes down; ``parse_fused(print_fused(f)) == f``. ``kinds``:
    of kernels, as in ``verify_fused``."""
    reader = Reader("fused", text)
    steps = _Steps(reader)
    places = steps.places
    inputs, outputs = _types(reader, "input"), _types(reader, "output")
    buffers: list[BufferSpec] = []
    while reader.at("buffer"):
        places[BUFFER, len(buffers)] = reader.token
        buffers.append(_buffer(reader, len(buffers)))
    specialisation = _specialisation(reader) if reader.at("special") else None
    body = steps.until(("constant", ""), ())
    constants: list[Graph] = []
    while reader.at("constant"):
        path = (CONSTANT, len(constants))
        places[path] = reader.expect("constant", str(len(constants)), ":")
        constants.append(read_graph(reader, places, path))
    reader.end()
    fused = FusedGraph(inputs, outputs, tuple(buffers), body, tuple(constants), specialisation)
    reader.check(find_fused_problems(fused, kinds), places)
    return fused


def _types(reader: Reader, word: str) -> tuple[TensorType, ...]:
    found: list[TensorType] = []
    while reader.at(word):
        reader.expect(word, str(len(found)), ":")
        found.append(read_type(reader))
    return tuple(found)


def _device(reader: Reader) -> int:
    if not reader.accept("on"):
        return 0
    reader.expect("device")
    return reader.integer()


def _buffer(reader: Reader, number: int) -> BufferSpec:
    reader.expect("buffer", f"b{number}", ":")
    dtype = read_dtype(reader)
    reader.expect("x")
    element_count = read_dim(reader)
    reader.expect(",")
    kind: OneOf["input", "output", "workspace", "constant"]
    kind = reader.choice(("input", "output", "workspace", "constant"))
    index = reader.integer() if reader.token.kind == "INTEGER" else -1
    return BufferSpec(kind, dtype, element_count, index, _device(reader))


def _specialisation(reader: Reader) -> Specialisation:
    def size() -> tuple[str, int]:
        name = reader.name("a symbol")
        reader.expect("=")
        return name, reader.integer()

    reader.expect("special", "from")
    first_step = reader.integer()
    reader.expect("where")
    return Specialisation(first_step, reader.listed(size))


@dataclass(slots=True)
class _Steps:
    """Reads steps; remembers where each one stands."""

    reader: Reader
    places: Places = field(default_factory=Places)

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
        """``read size s = b0[INDEX]: i64 @[1]``."""
        reader = self.reader
        is_size = reader.choice(("size", "number")) == "size"
        return SymbolRead(*read_element(reader), is_size, read_source(reader))

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
        """``require DIM = 0, "what" @[1]``; the text may be ``["in pieces", size s0]``."""
        difference = read_dim(self.reader)
        self.reader.expect("=", "0", ",")
        what: Text = (
            Message(self.reader.items(self.piece, "]"))
            if self.reader.accept("[")
            else self.reader.string()
        )
        return Requirement(difference, what, read_source(self.reader))

    def piece(self) -> Piece:
        """A piece of a text: ``"words"``, ``node 1``, ``size 2*s0``."""
        reader = self.reader
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

    def copy(self, _: Path) -> Copy:
        """``copy b0 to b1 @[1]``."""
        operand = self.reader.buffer()
        self.reader.expect("to")
        return Copy(operand, self.reader.buffer(), read_source(self.reader))

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

    def kernel(self, path: Path) -> Group:
        """``kernel KIND on device 1 anchor 0 @[1] { NODES, reads, writes, knows, ends }``."""
        reader = self.reader
        kind, device = reader.name("a kind of kernel"), _device(reader)
        anchor = reader.integer() if reader.accept("anchor") else -1
        source = read_source(reader)
        reader.expect("{")
        types: dict[int, TensorType] = {}
        nodes = self.nodes(path, types)
        operands, results = self.operands("reads", types), self.operands("writes", types)
        while reader.accept("knows"):
            self.value(types)
        stop_reason = reader.string() if reader.accept("ends") else ""
        reader.expect("}")
        return Group(
            kind,
            nodes,
            operands,
            results,
            tuple(sorted(types.items())),
            anchor,
            source,
            device,
            stop_reason,
        )

    def nodes(self, path: Path, types: dict[int, TensorType]) -> tuple[Node, ...]:
        """The nodes of a kernel; it has no regions, and its values any numbers."""
        reader, found = self.reader, list[Node]()

        def define(_: Token, number: int, kind: TensorType) -> int:
            types[number] = kind
            return number

        def region(_: int) -> Graph:
            raise reader.fail("expected a node without regions, got one")

        while reader.token.kind == "VALUE" or reader.ahead() == "(":
            found.append(
                read_node(reader, self.places, (*path, len(found)), reader.value, define, region)
            )
        return tuple(found)

    def operands(self, word: str, types: dict[int, TensorType]) -> tuple[Operand, ...]:
        """``reads %1: f32[2] in b0 at DIM strides [DIM]``, some of them."""
        reader, found = self.reader, list[Operand]()
        while reader.accept(word):
            value, kind = self.value(types)
            reader.expect("in")
            buffer = reader.buffer()
            reader.expect("at")
            offset = read_dim(reader)
            reader.expect("strides", "[")
            strides = reader.items(lambda: read_dim(reader), "]")
            found.append(Operand(value, kind, buffer, View(strides, offset)))
        return tuple(found)

    def value(self, types: dict[int, TensorType]) -> tuple[int, TensorType]:
        """``%1: f32[2]``."""
        start = self.reader.token
        value = self.reader.value()
        self.reader.expect(":")
        kind = read_type(self.reader)
        if types.setdefault(value, kind) != kind:
            raise self.reader.fail(f"expected {types[value]}, as above, got {kind}", start)
        return value, kind


_REFERENCES: Mapping[str, Callable[[int], Piece]] = {
    "node": NodeRef,
    "input": InputRef,
    "output": OutputRef,
}
_READERS: Mapping[str, Callable[[_Steps, Path], Step]] = {
    "read": _Steps.read,
    "set": _Steps.set,
    "grow": _Steps.grow,
    "require": _Steps.require,
    "copy": _Steps.copy,
    "if": _Steps.branch,
    "while": _Steps.loop,
    "kernel": _Steps.kernel,
}

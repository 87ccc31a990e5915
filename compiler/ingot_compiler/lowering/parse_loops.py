"""Reads the text form of a loop program.

In: text, as ``print_loops`` writes it or by hand. Out: a ``LoopProgram`` that ``verify_loops``
accepts, or ``ModelError`` with line and column. Not done here: sizes of buffers, which the text
does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal as OneOf

from ingot_compiler.ir.problem import Path
from ingot_compiler.ir.read_terms import read_dim, read_dtype
from ingot_compiler.ir.text_reader import Reader, Token
from ingot_compiler.lowering.loops import (
    Buffer,
    CallExtern,
    Filter,
    For,
    ForKind,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
)
from ingot_compiler.lowering.parse_loop_blocks import BLOCK_WORDS, read_block
from ingot_compiler.lowering.parse_loop_values import (
    read_access,
    read_argument,
    read_range,
    read_type_behind,
    read_value,
)
from ingot_compiler.lowering.verify_loops import find_loop_problems
from ingot_runtime.lazy_dataclass import dataclass


def parse_loops(text: str) -> LoopProgram:
    """The program that ``text`` writes down; ``parse_loops(print_loops(p)) == p``."""
    reader = Reader("loops", text)
    program = read_loops(reader)
    reader.end()
    return program


def read_loops(reader: Reader) -> LoopProgram:
    """The program that comes next, verified."""
    reader.expect("kernel", "(")
    buffers = _buffers(reader)
    scalars = reader.listed(reader.name) if reader.accept(";") else ()
    reader.expect(")", "scratch")
    scratch_bytes = read_dim(reader)
    reader.expect("{", "parallel")
    index, extent = read_range(reader)
    reader.expect("grain")
    grain = reader.integer()
    statements = _Statements(reader)
    body = statements.block(())
    reader.expect("}")
    program = LoopProgram(buffers, scalars, index, extent, grain, body, scratch_bytes)
    reader.check(find_loop_problems(program), statements.places)
    return program


def _buffers(reader: Reader) -> tuple[Buffer, ...]:
    found: list[Buffer] = []
    while not reader.at(")") and not reader.at(";"):
        if found:
            reader.expect(",")
        reader.expect(f"b{len(found)}", ":")
        written = reader.accept("write")
        found.append(Buffer(read_dtype(reader), written))
    return tuple(found)


# ---- statements ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Statements:
    """Reads statements; remembers where each one stands."""

    reader: Reader
    places: dict[Path, Token] = field(default_factory=dict[Path, Token])

    def block(self, path: Path) -> tuple[Statement, ...]:
        """``{ STATEMENT ... }``."""
        body = self.open(path)
        self.reader.expect("}")
        return body

    def open(self, path: Path) -> tuple[Statement, ...]:
        """``{ STATEMENT ...``, up to the brace or the word that ends it."""
        reader, found = self.reader, list[Statement]()
        reader.expect("{")
        with reader.nested():
            while not reader.at("}") and not (reader.at("yield") and reader.ahead() != "="):
                at = (*path, len(found))
                self.places[at] = reader.token
                found.append(self.statement(at))
        return tuple(found)

    def statement(self, path: Path) -> Statement:
        """One statement; its first words say which."""
        reader = self.reader
        if reader.ahead() in _READERS_BY_SIGN:
            return _READERS_BY_SIGN[reader.ahead()](self, path)
        word = reader.name("a statement")
        if word in BLOCK_WORDS:
            return read_block(word, reader, lambda: self.block(path))
        if word in _READERS:
            return _READERS[word](self, path)
        words = " ".join((*_READERS, *BLOCK_WORDS))
        why = f"expected one of {words} or a name before '=', got {word}"
        raise reader.fail(why, self.places[path])

    def let(self, _: Path) -> Let:
        """``name = VALUE``."""
        name = self.reader.name()
        self.reader.expect("=")
        return Let(name, read_value(self.reader))

    def store(self, _: Path) -> Store:
        """``b0[INDEX] = VALUE``."""
        buffer, index = read_access(self.reader)
        self.reader.expect("=")
        return Store(buffer, index, read_value(self.reader))

    def reduce(self, path: Path) -> Reduce:
        """``name: f32 = sum lanes unroll over i in EXTENT { ... yield VALUE }``."""
        reader = self.reader
        name, dtype = reader.name(), read_type_behind(reader)
        reader.expect("=")
        function: OneOf["sum", "product", "max", "min", "max_number"]
        function = reader.choice(("sum", "product", "max", "min", "max_number"))
        lanes, unroll = reader.accept("lanes"), reader.accept("unroll")
        reader.expect("over")
        variable, extent = read_range(reader)
        body = self.open(path)
        reader.expect("yield")
        value = read_value(reader)
        reader.expect("}")
        return Reduce(name, function, variable, extent, dtype, body, value, lanes, unroll)

    def filter(self, path: Path) -> Filter:
        """``filter name over i in EXTENT from DIM below DIM { ... yield CONDITION STORE ... }``."""
        reader = self.reader
        name = reader.name()
        reader.expect("over")
        variable, extent = read_range(reader)
        reader.expect("from")
        start = read_dim(reader)
        reader.expect("below")
        limit = read_dim(reader)
        body = self.open(path)
        reader.expect("yield")
        condition = read_value(reader)
        stores: list[Store] = []
        while not reader.at("}"):
            stores.append(self.store(path))
        reader.expect("}")
        return Filter(name, variable, extent, start, limit, body, condition, tuple(stores))

    def loop(self, kind: ForKind, path: Path) -> For:
        """``serial i in EXTENT { ... }``."""
        return For(*read_range(self.reader), kind, self.block(path))

    def let_index(self, _: Path) -> LetIndex:
        """``index name = VALUE``, perhaps ``index name within 47 = VALUE``."""
        name = self.reader.name()
        reach = self.reader.integer() if self.reader.accept("within") else 0
        self.reader.expect("=")
        return LetIndex(name, read_value(self.reader), reach)

    def require(self, _: Path) -> Require:
        """``require 0: CONDITION``."""
        number = self.reader.integer()
        self.reader.expect(":")
        return Require(number, read_value(self.reader))

    def call_extern(self, _: Path) -> CallExtern:
        """``extern 0: SYMBOL(ARGUMENT, ...)``."""
        reader = self.reader
        number = reader.integer()
        reader.expect(":")
        symbol = reader.name("a function")
        reader.expect("(")
        return CallExtern(symbol, number, reader.items(lambda: read_argument(reader), ")"))

    def branch(self, path: Path) -> If:
        """``if CONDITION { ... }``."""
        return If(read_value(self.reader), self.block(path))


_READERS_BY_SIGN: Mapping[str, Callable[[_Statements, Path], Statement]] = {
    "=": _Statements.let,
    "[": _Statements.store,
    ":": _Statements.reduce,
}
_READERS: Mapping[str, Callable[[_Statements, Path], Statement]] = {
    "serial": lambda statements, path: statements.loop("serial", path),
    "vector": lambda statements, path: statements.loop("vector", path),
    "vector_down": lambda statements, path: statements.loop("vector_down", path),
    "unroll": lambda statements, path: statements.loop("unroll", path),
    "filter": _Statements.filter,
    "index": _Statements.let_index,
    "require": _Statements.require,
    "extern": _Statements.call_extern,
    "if": _Statements.branch,
}

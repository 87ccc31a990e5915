"""Reads the text form of a loop program.

In: text, as ``print_loops`` writes it or by hand. Out: a ``LoopProgram`` that ``verify_loops``
accepts, or ``ModelError`` with line and column. Not done here: sizes of buffers, which the text
does not say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.problem import Path
from ingot_compiler.ir.read_terms import at_float, read_dim, read_dtype, read_float
from ingot_compiler.ir.text_reader import Reader, Token
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops import (
    Apply,
    Attention,
    Buffer,
    Compare,
    Constant,
    Contraction,
    Depthwise,
    DepthwisePlane,
    For,
    FromIndex,
    If,
    Let,
    LetIndex,
    Load,
    Local,
    LoopProgram,
    Reduce,
    RegisterTile,
    Require,
    Statement,
    Store,
    Transpose,
    Value,
)
from ingot_compiler.lowering.verify_loops import find_loop_problems

_COMPARISONS: Mapping[str, Callable[[Dim, Dim], Compare]] = {
    "<": lambda left, right: Compare("less", left, right),
    "<=": lambda left, right: Compare("less_equal", left, right),
    "==": lambda left, right: Compare("equal", left, right),
}
_NUMBERS: Mapping[str, float | bool] = {
    "true": True,
    "false": False,
    "NaN": math.nan,
    "Infinity": math.inf,
}


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
    index = reader.name()
    reader.expect("in")
    extent = read_dim(reader)
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


# ---- values --------------------------------------------------------------------------------------


def _read_value(reader: Reader) -> Value:
    with reader.nested():
        if reader.token.kind == "VALUE":
            return _local(reader)
        if reader.accept("("):
            return _index_value(reader)
        if (
            at_float(reader)
            or reader.token.kind == "INTEGER"
            or reader.token.text in ("-", *_NUMBERS)
        ):
            return _constant(reader)
        if reader.ahead() == "[":
            return Load(*_access(reader))
        function = reader.name("a value")
        reader.expect("(")
        arguments = reader.items(lambda: _read_value(reader), ")")
        return Apply(function, arguments, _of_type(reader))


def _of_type(reader: Reader) -> DType:
    reader.expect(":")
    return read_dtype(reader)


def _local(reader: Reader) -> Local:
    return Local(reader.take().text[1:], _of_type(reader))


def _index_value(reader: Reader) -> FromIndex | Compare:
    left = read_dim(reader)
    if reader.accept(")"):
        return FromIndex(left, _of_type(reader))
    if reader.token.text not in _COMPARISONS:
        raise reader.fail(f'expected ")" or one of {" ".join(_COMPARISONS)}, got {reader.token}')
    made = _COMPARISONS[reader.take().text](left, read_dim(reader))
    reader.expect(")")
    return made


def _constant(reader: Reader) -> Constant:
    number: bool | float
    if reader.ahead() == "Infinity":
        reader.expect("-", "Infinity")
        number = -math.inf
    elif reader.token.text in _NUMBERS:
        number = _NUMBERS[reader.take().text]
    else:
        number = read_float(reader) if at_float(reader) else reader.integer()
    return Constant(number, _of_type(reader))


def _access(reader: Reader) -> tuple[int, Dim]:
    """``b0[INDEX]``."""
    buffer = reader.buffer()
    reader.expect("[")
    index = read_dim(reader)
    reader.expect("]")
    return buffer, index


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
        follower = reader.ahead()
        if follower == "=":
            name = reader.name()
            reader.expect("=")
            return Let(name, _read_value(reader))
        if follower == "[":
            buffer, index = _access(reader)
            reader.expect("=")
            return Store(buffer, index, _read_value(reader))
        if follower == ":":
            return self.reduce(path)
        word = reader.name("a statement")
        if word not in _READERS:
            raise reader.fail(
                f"expected one of {' '.join(_READERS)} or a name before '=', got {word}",
                self.places[path],
            )
        return _READERS[word](self, path)

    def reduce(self, path: Path) -> Reduce:
        """``name: f32 = sum lanes unroll over i in EXTENT { ... yield VALUE }``."""
        reader = self.reader
        name, dtype = reader.name(), _of_type(reader)
        reader.expect("=")
        function: OneOf["sum", "product", "max", "min", "max_number"]
        function = reader.choice(("sum", "product", "max", "min", "max_number"))
        lanes, unroll = reader.accept("lanes"), reader.accept("unroll")
        reader.expect("over")
        variable, extent = self.range()
        body = self.open(path)
        reader.expect("yield")
        value = _read_value(reader)
        reader.expect("}")
        return Reduce(name, function, variable, extent, dtype, body, value, lanes, unroll)

    def loop(self, kind: OneOf["serial", "vector", "unroll"], path: Path) -> For:
        """``serial i in EXTENT { ... }``."""
        return For(*self.range(), kind, self.block(path))

    def let_index(self, _: Path) -> LetIndex:
        """``index name = VALUE``."""
        name = self.reader.name()
        self.reader.expect("=")
        return LetIndex(name, _read_value(self.reader))

    def require(self, _: Path) -> Require:
        """``require 0: CONDITION``."""
        number = self.reader.integer()
        self.reader.expect(":")
        return Require(number, _read_value(self.reader))

    def branch(self, path: Path) -> If:
        """``if CONDITION { ... }``."""
        return If(_read_value(self.reader), self.block(path))

    def contraction(self, path: Path) -> Contraction:
        """Rows, columns, taps and depth, both operands, what is done with each sum."""
        reader = self.reader
        row, rows, row_start = self.name("row"), self.dim("rows"), self.dim("row_start")
        row_block, column, columns = (
            self.integer("row_block"),
            self.name("column"),
            self.dim("columns"),
        )
        column_start, taps = self.dim("column_start"), self.taps()
        reader.expect("depth", "=")
        depth, extent = self.range()
        rows_tile = self.integer("tile")
        vectors = reader.number("x", "a number of vectors (x2)")
        (a, a_index), (b, b_index) = self.access("a"), self.access("b")
        padded = self.python_flag("padded")
        accumulator, dtype = reader.name(), _of_type(reader)
        return Contraction(
            row, rows, row_start, row_block, column, columns, column_start, taps, depth, extent, a, a_index, b, b_index,
            padded, dtype, accumulator, self.epilogue(path), RegisterTile(rows_tile, vectors),
        )  # fmt: skip

    def depthwise(self, path: Path) -> Depthwise | DepthwisePlane:
        """A row of a depthwise convolution, or a plane of one."""
        if self.reader.accept("plane"):
            return self.depthwise_plane(path)
        x, x_extent, channel, channels = (
            self.name("x"),
            self.dim("x_extent"),
            self.name("channel"),
            self.dim("channels"),
        )
        pixels, taps = self.integer("pixels"), self.fixed_taps()
        (a, a_index), (w, w_index) = self.access("a"), self.access("w")
        accumulator, dtype = self.reader.name(), _of_type(self.reader)
        return Depthwise(
            x,
            x_extent,
            channel,
            channels,
            taps,
            a,
            a_index,
            w,
            w_index,
            dtype,
            accumulator,
            self.epilogue(path),
            pixels,
        )

    def depthwise_plane(self, path: Path) -> DepthwisePlane:
        """The same on images that lie row-major."""
        y, y_extent, x, x_extent = (
            self.name("y"),
            self.integer("y_extent"),
            self.name("x"),
            self.integer("x_extent"),
        )
        rows_together = self.integer("rows_together")
        image, strides, dilations, pads = map(self.pair, ("image", "strides", "dilations", "pads"))
        start = self.reader.token
        taps = self.fixed_taps()
        if len(taps) != 2:
            raise self.reader.fail(f"expected 2 taps, got {len(taps)}", start)
        a, a_index = self.access("a")
        self.reader.expect("over")
        row = self.reader.name()
        self.reader.expect(",")
        column = self.reader.name()
        w, w_index = self.access("w")
        accumulator, dtype = self.reader.name(), _of_type(self.reader)
        return DepthwisePlane(
            y, x, (y_extent, x_extent), image, strides, dilations, pads, (taps[0], taps[1]), a, row, column, a_index, w,
            w_index, dtype, accumulator, self.epilogue(path), rows_together,
        )  # fmt: skip

    def attention(self, path: Path) -> Attention:
        """One head for a block of queries."""
        reader = self.reader
        query, queries, query_start = (
            self.name("query"),
            self.dim("queries"),
            self.dim("query_start"),
        )
        query_block, key, keys = self.integer("query_block"), self.name("key"), self.dim("keys")
        depth, depth_extent, value = (
            self.name("depth"),
            self.integer("depth_extent"),
            self.name("value"),
        )
        value_extent, group = self.integer("value_extent"), self.dim("group")
        (q, q_index), (k, k_index), (v, v_index) = (
            self.access("q"),
            self.access("k"),
            self.access("v"),
        )
        reader.expect("scale", "=")
        scale = read_float(reader)
        reader.expect("mask", "=")
        mask = None if reader.accept("None") else _read_value(reader)
        causal, offset = self.python_flag("causal"), self.dim("causal_offset")
        nan_to_zero, accumulator = self.python_flag("nan_to_zero"), reader.name()
        reader.expect(":", "f32")
        return Attention(
            query, queries, query_start, query_block, key, keys, depth, depth_extent, value, value_extent, group, q, q_index,
            k, k_index, v, v_index, scale, mask, causal, offset, nan_to_zero, accumulator, self.epilogue(path),
        )  # fmt: skip

    def transpose(self, path: Path) -> Transpose:
        """A block whose operands and results are contiguous along different axes."""
        row, rows, row_start = self.name("row"), self.dim("rows"), self.dim("row_start")
        row_block, column, columns = (
            self.integer("row_block"),
            self.name("column"),
            self.dim("columns"),
        )
        column_start, column_block = self.dim("column_start"), self.integer("column_block")
        values: list[tuple[str, int, Dim]] = []
        while not self.reader.at("->"):
            name = self.reader.name()
            self.reader.expect("=")
            values.append((name, *_access(self.reader)))
        return Transpose(
            row, rows, row_start, row_block, column, columns, column_start, column_block, tuple(values),
            self.epilogue(path),
        )  # fmt: skip

    # -- fields ------------------------------------------------------------------------------------

    def epilogue(self, path: Path) -> tuple[Statement, ...]:
        """``-> { ... }``."""
        self.reader.expect("->")
        return self.block(path)

    def name(self, name: str) -> str:
        """``row=i``."""
        self.reader.expect(name, "=")
        return self.reader.name()

    def dim(self, name: str) -> Dim:
        """``rows=2*s0``."""
        self.reader.expect(name, "=")
        return read_dim(self.reader)

    def integer(self, name: str) -> int:
        """``row_block=4``."""
        self.reader.expect(name, "=")
        return self.reader.integer()

    def python_flag(self, name: str) -> bool:
        """``padded=True``."""
        self.reader.expect(name, "=")
        return self.reader.choice(("True", "False")) == "True"

    def pair(self, name: str) -> tuple[int, int]:
        """``image=(3, 4)``."""
        self.reader.expect(name, "=", "(")
        first = self.reader.integer()
        self.reader.expect(",")
        second = self.reader.integer()
        self.reader.expect(")")
        return first, second

    def access(self, name: str) -> tuple[int, Dim]:
        """``a=b0[INDEX]``."""
        self.reader.expect(name, "=")
        return _access(self.reader)

    def range(self) -> tuple[str, Dim]:
        """``i in EXTENT``."""
        name = self.reader.name()
        self.reader.expect("in")
        return name, read_dim(self.reader)

    def taps(self) -> tuple[tuple[str, Dim], ...]:
        """``taps=(y in 3, x in 3)``."""
        self.reader.expect("taps", "=", "(")
        return self.reader.items(self.range, ")")

    def fixed_taps(self) -> tuple[tuple[str, int], ...]:
        """The same, with numbers alone."""
        return tuple((name, self.fixed(extent)) for name, extent in self.taps())

    def fixed(self, extent: Dim) -> int:
        """A number."""
        if not isinstance(extent, int):
            raise self.reader.fail(f"expected taps of fixed extents, got {extent}")
        return extent


_READERS: Mapping[str, Callable[[_Statements, Path], Statement]] = {
    "serial": lambda statements, path: statements.loop("serial", path),
    "vector": lambda statements, path: statements.loop("vector", path),
    "unroll": lambda statements, path: statements.loop("unroll", path),
    "index": _Statements.let_index,
    "require": _Statements.require,
    "if": _Statements.branch,
    "contraction": _Statements.contraction,
    "depthwise": _Statements.depthwise,
    "attention": _Statements.attention,
    "transpose": _Statements.transpose,
}

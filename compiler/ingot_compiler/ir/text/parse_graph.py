"""Reads the text form of a graph.

In: text, as ``print_graph`` writes it or by hand (``#`` starts a comment). Out: a ``Graph`` that
``verify`` accepts, or ``ModelError`` with line, column and the line itself. Not done here: names.

::

    graph(%0: f32[s0, 3], ...) {
      %1, %2 = op(%0, ...) {attribute=value, ...} {(%1: f32[3]) REGION'S BODY } : TYPE, TYPE
      @[ORDINAL, ...] on "MARK" return %1, ...
    }

Everything behind the parentheses of a node is left out where there is none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.problem import Path
from ingot_compiler.ir.text.read_terms import read_attribute, read_type
from ingot_compiler.ir.text.text_reader import Reader, Token
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.verify import find_problems

Places = dict[Path, Token]
"""The token where each part of a stage begins."""


def parse_graph(text: str, stage: str = "graph") -> Graph:
    """The graph that ``text`` writes down; ``parse_graph(print_graph(g)) == g``."""
    reader, places = Reader(stage, text), Places()
    graph = read_graph(reader, places)
    reader.end()
    reader.check(find_problems(graph), places)
    return graph


def parse_structure(text: str) -> Graph:
    """The graph, its ops and types unchecked."""
    reader = Reader("graph", text)
    graph = read_graph(reader, {})
    reader.end()
    return graph


def read_graph(reader: Reader, places: Places, path: Path = ()) -> Graph:
    """The graph that comes next, its ops and types unchecked; where its nodes stand goes into
    ``places``, below ``path``."""
    reader.expect("graph")
    return _graph(reader, [], places, path, "{")


def read_source(reader: Reader) -> tuple[int, ...]:
    """``@[1, 2]``, or nothing: ordinals of imported nodes."""
    if not reader.accept("@"):
        return ()
    reader.expect("[")
    return reader.items(reader.integer, "]")


def _graph(
    reader: Reader, visible: Sequence[TensorType], places: Places, path: Path, opening: str = ""
) -> Graph:
    """From the parameters on; ``opening`` stands before the nodes."""
    types = list(visible)
    reader.expect("(")
    inputs = reader.items(lambda: _parameter(reader, types), ")")
    if opening:
        reader.expect(opening)
    nodes: list[Node] = []
    while not reader.accept("return"):
        nodes.append(_node(reader, types, places, (*path, len(nodes))))
    outputs = reader.items(lambda: _operand(reader, types), "}")
    return Graph(inputs, tuple(nodes), outputs, tuple(types))


def _parameter(reader: Reader, types: list[TensorType]) -> int:
    start = reader.token
    number = reader.value()
    reader.expect(":")
    return _define(reader, start, number, read_type(reader), types)


def _define(
    reader: Reader, token: Token, number: int, type_: TensorType, types: list[TensorType]
) -> int:
    """Give the next id, which the text must state."""
    if number != len(types):
        raise reader.fail(
            f"expected %{len(types)} next (values are numbered in order), got %{number}", token
        )
    types.append(type_)
    return number


def _operand(reader: Reader, types: Sequence[TensorType]) -> int:
    token = reader.token
    number = reader.value()
    if number >= len(types):
        raise reader.fail(f"expected a value that is defined before, got %{number}", token)
    return number


def _node(reader: Reader, types: list[TensorType], places: Places, path: Path) -> Node:
    def region(number: int) -> Graph:
        with reader.nested():
            return _graph(reader, types, places, (*path, number))

    def define(token: Token, number: int, type_: TensorType) -> int:
        return _define(reader, token, number, type_, types)

    return read_node(reader, places, path, lambda: _operand(reader, types), define, region)


def read_node(
    reader: Reader,
    places: Places,
    path: Path,
    operand: Callable[[], int],
    define: Callable[[Token, int, TensorType], int],
    region: Callable[[int], Graph],
) -> Node:
    """One node; ``operand`` reads a value, ``define`` is told of a result, ``region`` reads the one
    of a number, behind its brace."""
    results: tuple[tuple[Token, int], ...] = ()
    if reader.token.kind == "VALUE":
        results = reader.listed(lambda: (reader.token, reader.value()))
        reader.expect("=")
    op = places[path] = reader.token
    name = reader.name("an op")
    reader.expect("(")
    operands = reader.items(operand, ")")
    attributes = read_attributes(reader)
    regions: list[Graph] = []
    while reader.accept("{"):
        regions.append(region(len(regions)))
    written = reader.listed(lambda: read_type(reader)) if reader.accept(":") else ()
    source = read_source(reader)
    mark = reader.string() if reader.accept("on") else ""
    if len(results) != len(written):
        raise reader.fail(f"expected {len(results)} result types, got {len(written)}", op)
    defined = tuple(define(*result, type_) for result, type_ in zip(results, written, strict=True))
    return Node(cast("OpName", name), operands, defined, attributes, tuple(regions), source, mark)


def read_attributes(reader: Reader) -> tuple[tuple[str, Attribute], ...]:
    """``{name=value, ...}``, or nothing."""
    table: dict[str, Attribute] = {}
    if reader.at("{") and reader.ahead() != "(":
        reader.expect("{")
        reader.items(lambda: _attribute(reader, table), "}")
    return make_attributes(table)


def _attribute(reader: Reader, table: dict[str, Attribute]) -> None:
    start = reader.token
    name = reader.name("the name of an attribute")
    if name in table:
        raise reader.fail(f"expected every attribute once, got {name} twice", start)
    reader.expect("=")
    table[name] = read_attribute(reader)

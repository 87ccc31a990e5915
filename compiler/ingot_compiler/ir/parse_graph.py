"""Reads the text form of a graph; the grammar is ``graph.lark``.

In: text, as ``print_graph`` writes it or by hand (``#`` starts a comment). Out: a ``Graph`` that ``verify`` accepts, or
``ModelError`` with line, column and the line itself. Not done here: names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import FUNCTIONS, Dim, dim_add, dim_mul, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import DTYPES, TensorType
from ingot_compiler.ir.verify import Path, find_problems

Item = Token | Tree[Token]
"""What lark gives; an absent optional part is None in a tree's children."""


def parse_graph(text: str) -> Graph:
    """The graph that ``text`` writes down; ``parse_graph(print_graph(g)) == g``."""
    graph, places = parse_structure(text)
    for problem in find_problems(graph):
        why = f"expected {problem.expected}, got {problem.got}"
        raise _error(text, *places.get(problem.path, (1, 1)), f"{problem.op}: {why}")
    return graph


def parse_structure(text: str) -> tuple[Graph, dict[Path, tuple[int, int]]]:
    """The graph, its ops and types unchecked, and (line, column) of every node, both from 1."""
    reader = _Reader(text)
    try:
        tree: Tree[Token] = _parser().parse(text)  # pyright: ignore[reportUnknownMemberType]  # half typed
    except UnexpectedInput as error:
        raise _error(text, *_place(error, text), _unexpected(error)) from None
    parameters, body = tree.children
    try:
        return reader.graph(parameters, body, [], ()), reader.places
    except RecursionError:
        raise _error(text, 1, 1, "expressions, lists or regions are nested too deeply") from None


@cache
def _parser() -> Lark:
    grammar = files("ingot_compiler.ir").joinpath("graph.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _error(text: str, line: int, column: int, why: str) -> ModelError:
    lines = text.splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1].strip()
    return ModelError(
        "cannot read the graph",
        f"line {line}, column {column}: {shown}",
        why,
        "compare with the output of --to graph; the grammar is ingot_compiler/ir/graph.lark",
    )


def _place(error: UnexpectedInput, text: str) -> tuple[int, int]:
    at_end = isinstance(error, UnexpectedToken) and not _token(error)
    if error.line > 0 and error.column > 0 and not at_end:
        return error.line, error.column
    lines = text.rstrip().splitlines() or [""]
    return len(lines), len(lines[-1]) + 1


def _token(error: UnexpectedToken) -> str:
    """The token's text, "" at the end of the input."""
    return str(error.token)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # half typed


def _unexpected(error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedToken):
        got = repr(_token(error)) if _token(error) else "the end of the text"
        return f"expected {_readable(error.expected)}, got {got}"
    if isinstance(error, UnexpectedCharacters):
        char = str(error.char)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # half typed
        return f"expected {_readable(error.allowed or ())}, got {char!r}"
    return str(error)


def _readable(terminals: Sequence[str] | set[str]) -> str:
    """``"," or "}"`` for lark's ``COMMA RBRACE``."""
    plain = {
        "VALUE": "a value (%0)",
        "NAME": "a name",
        "INTEGER": "an integer",
        "FLOAT": "a float",
        "STRING": "a string",
    }
    texts = {definition.name: str(definition.pattern.value) for definition in _parser().terminals}
    hidden = {"WHITESPACE", "COMMENT"}
    shown = [plain.get(name, json.dumps(texts.get(name, name))) for name in sorted(terminals) if name not in hidden]
    return " or ".join(shown)


def _children(tree: Item | None) -> list[Item | None]:
    """Children of an optional tree; none for an absent one."""
    return list(tree.children) if isinstance(tree, Tree) else []


def _present(tree: Item | None) -> Iterator[Item]:
    return (child for child in _children(tree) if child is not None)


@dataclass(slots=True)
class _Reader:
    """Turns trees into the graph; remembers where every node stands."""

    text: str
    places: dict[Path, tuple[int, int]] = field(default_factory=dict[Path, tuple[int, int]])

    def fail(self, item: Item, why: str) -> ModelError:
        at = item if isinstance(item, Token) else item.meta
        return _error(self.text, at.line or 1, at.column or 1, why)

    def graph(self, parameters: Item | None, body: Item | None, visible: list[TensorType], path: Path) -> Graph:
        types = list(visible)
        inputs = tuple(self.parameter(item, types) for item in _present(parameters))
        *nodes, returned = _children(body)
        made = tuple(self.node(node, types, (*path, index)) for index, node in enumerate(nodes) if node is not None)
        return Graph(inputs, made, self.operands(returned, types), tuple(types))

    def parameter(self, item: Item, types: list[TensorType]) -> int:
        value, type_ = _children(item)
        assert value is not None
        assert type_ is not None
        return self.define(value, self.type(type_), types)

    def define(self, value: Item, type_: TensorType, types: list[TensorType]) -> int:
        """Give the next id, which the text must state."""
        number = int(str(value)[1:])
        if number != len(types):
            raise self.fail(value, f"expected %{len(types)} next (values are numbered in order), got {value}")
        types.append(type_)
        return number

    def operands(self, item: Item | None, types: Sequence[TensorType]) -> tuple[int, ...]:
        numbers: list[int] = []
        for value in _present(item):
            numbers.append(int(str(value)[1:]))
            if numbers[-1] >= len(types):
                raise self.fail(value, f"expected a value that is defined before, got {value}")
        return tuple(numbers)

    def node(self, item: Item, types: list[TensorType], path: Path) -> Node:
        results, op, operands, attributes, *rest = _children(item)
        *regions, declared, source, mark = rest
        assert isinstance(op, Token)
        self.places[path] = (op.line or 1, op.column or 1)
        read = self.operands(operands, types)
        inner = tuple(
            self.region(region, types, (*path, index)) for index, region in enumerate(regions) if region is not None
        )
        values = list(_present(next(_present(results), None)))
        written = [self.type(type_) for type_ in _present(declared)]
        if len(values) != len(written):
            raise self.fail(op, f"expected {len(values)} result types, got {len(written)}")
        made = tuple(self.define(value, type_, types) for value, type_ in zip(values, written, strict=True))
        ordinals = tuple(int(str(ordinal)) for ordinal in _present(source))
        placed = next((self.string(child) for child in _present(mark)), "")
        return Node(cast("OpName", str(op)), read, made, self.attributes(attributes), inner, ordinals, placed)

    def region(self, item: Item, types: list[TensorType], path: Path) -> Graph:
        parameters, body = _children(item)
        return self.graph(parameters, body, types, path)

    def attributes(self, item: Item | None) -> tuple[tuple[str, Attribute], ...]:
        table: dict[str, Attribute] = {}
        for attribute in _present(item):
            name, value = _present(attribute)
            if str(name) in table:
                raise self.fail(name, f"expected every attribute once, got {name} twice")
            table[str(name)] = self.value(value)
        return make_attributes(table)

    def type(self, item: Item) -> TensorType:
        name, *dims = _present(item)
        for dtype in DTYPES:
            if dtype == str(name):
                return TensorType(dtype, tuple(map(self.dim, dims)))
        raise self.fail(name, f"expected an element type out of {' '.join(DTYPES)}, got {name}")

    def value(self, item: Item) -> Attribute:
        assert isinstance(item, Tree)
        kind, inner = str(item.data), list(_present(item))
        if kind in ("true", "false"):
            return kind == "true"
        if kind in ("float", "negative_float"):
            return float(str(inner[0])) * (-1.0 if kind == "negative_float" else 1.0)
        if kind == "string":
            return self.string(inner[0])
        return tuple(map(self.value, inner)) if kind == "list" else self.dim(item)

    def string(self, item: Item) -> str:
        try:
            return str(json.loads(str(item)))
        except ValueError as error:
            raise self.fail(item, f"expected a string with JSON escapes, got {item} ({error})") from None

    def dim(self, item: Item) -> Dim:
        assert isinstance(item, Tree)
        first, *others = _present(item)
        total = self.product(first)
        if item.data == "negative_dim":
            total = dim_mul(total, -1)
        for other in others:
            (product,) = _present(other)
            assert isinstance(other, Tree)
            total = dim_add(total, dim_mul(self.product(product), 1 if other.data == "plus" else -1))
        return total

    def product(self, item: Item) -> Dim:
        total: Dim = 1
        for factor in _present(item):
            total = dim_mul(total, self.factor(factor))
        return total

    def factor(self, item: Item) -> Dim:
        assert isinstance(item, Tree)
        if item.data in ("dim", "negative_dim"):
            return self.dim(item)
        name, *arguments = _present(item)
        if item.data == "integer":
            return int(str(name))
        if item.data == "symbol":
            return symbol(str(name))
        if str(name) not in FUNCTIONS:
            raise self.fail(name, f"expected a function out of {' '.join(sorted(FUNCTIONS))}, got {name}")
        return FUNCTIONS[str(name)](self.dim(arguments[0]), self.dim(arguments[1]))

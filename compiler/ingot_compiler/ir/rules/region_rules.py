"""Pieces that the type rules of ``if`` and ``loop`` share: which symbols a region binds, which
sizes can be said outside.

In: regions, attribute tables. Out: names, result types, or ``OpTypeError``. Not done here:
execution (``interpret``).

An op with regions binds the symbols of its attribute ``symbols`` when it has run: the sizes of its
results that cannot be written in what is known before it. They are taken in the order of the
results and of their axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_strs
from ingot_compiler.ir.dims import Dim, symbol, symbols_of
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.types import TensorType

HOLE = None
"""A size that only the run decides."""
HoledType = tuple[TensorType, tuple[Dim | None, ...]]
"""A type whose shape is replaced by sizes and holes."""


def bound_symbols(node: Node) -> tuple[str, ...]:
    """The symbols that a node binds when it has run: those of ``read_dim``, ``if`` and ``loop``;
    all fresh."""
    if not node.regions and node.op != "read_dim":
        return ()
    for name, value in node.attributes:
        if node.op == "read_dim" and name == "symbol":
            return (str(value),)
        if node.regions and name == "symbols" and isinstance(value, tuple):
            return tuple(map(str, value))
    return ()


def inner_symbols(region: Graph) -> frozenset[str]:
    """Symbols that the nodes of a region bind, which nobody outside may use."""
    nested = (
        name for node in region.nodes for inner in node.regions for name in inner_symbols(inner)
    )
    return frozenset((*(name for node in region.nodes for name in bound_symbols(node)), *nested))


def output_types(region: Graph) -> tuple[TensorType, ...]:
    """The types of what a region returns."""
    return tuple(region.types[value] for value in region.outputs)


def visible_sizes(shape: Sequence[Dim], hidden: frozenset[str]) -> tuple[Dim | None, ...]:
    """Sizes; a hole where one needs a hidden symbol."""
    return tuple(HOLE if hidden & set(symbols_of(dim)) else dim for dim in shape)


def hole_count(types: Sequence[HoledType]) -> int:
    """How many symbols an op with these results binds."""
    return sum(dims.count(HOLE) for _, dims in types)


def fill_holes(types: Sequence[HoledType], names: Sequence[str]) -> tuple[TensorType, ...]:
    """Types whose holes are symbols; OpTypeError unless there is exactly one name for each."""
    require(
        len(names) == hole_count(types),
        f"{hole_count(types)} symbols for sizes known at run time",
        len(names),
    )
    waiting = iter(names)
    return tuple(
        TensorType(
            tensor_type.dtype, tuple(symbol(next(waiting)) if dim is None else dim for dim in dims)
        )
        for tensor_type, dims in types
    )


def symbol_names(attributes: Attributes) -> tuple[str, ...]:
    """Attribute ``symbols``."""
    names = attribute_strs(attributes, "symbols")
    require(len(names) == len(set(names)), "symbols to be different names", repr(names))
    return names


def own_symbols(dims: Sequence[Dim], wanted: Sequence[Dim]) -> Iterator[str]:
    """Names of those ``dims`` that differ from ``wanted``; each must be a bare symbol, which the
    region's entry binds."""
    for dim, outside in zip(dims, wanted, strict=True):
        if dim == outside:
            continue
        name = bare_symbol(dim)
        if name is None:
            raise OpTypeError(message(outside, ", or a fresh symbol"), dim)
        yield name

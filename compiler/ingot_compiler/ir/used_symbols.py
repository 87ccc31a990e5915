"""Which symbols the sizes in an attribute, a type or a graph use.

In: parts of graphs. Out: names. Not done here: which of them are bound (``verify``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Sum, symbols_of
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.types import TensorType

_CACHED_MAX = 1 << 14


def symbols_in(value: Attribute) -> Iterator[str]:
    """Names in the value of an attribute, or in one size, with repetition."""
    if isinstance(value, tuple):
        for item in value:
            yield from symbols_in(item)
    elif isinstance(value, Sum):
        yield from symbols_of(value)


@lru_cache(maxsize=_CACHED_MAX)  # every pass asks for the same ones
def attribute_symbols(attributes: tuple[tuple[str, Attribute], ...]) -> frozenset[str]:
    """Names in all attributes of a node."""
    return frozenset(name for _, value in attributes for name in symbols_in(value))


def type_symbols(tensor: TensorType) -> Iterator[str]:
    """Names in the shape of a tensor, with repetition."""
    return symbols_in(tensor.shape)


def graph_symbols(graph: Graph) -> Iterator[str]:
    """Names in the attributes and in the types of a graph's own values, with repetition."""
    for node in graph.nodes:
        yield from attribute_symbols(node.attributes)
        for region in node.regions:
            yield from graph_symbols(region)
    for value in (*graph.inputs, *(result for node in graph.nodes for result in node.results)):
        yield from type_symbols(graph.types[value])

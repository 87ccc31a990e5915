"""Text form of a graph, for goldens, ``--to`` and digests; ``parse_graph`` reads it back.

In: a ``Graph``. Out: text that ends with a newline, one node a line. Not done here: names (they are
beside the graph), checking (``verify``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Sum, format_dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.types import TensorType


def print_graph(graph: Graph, with_source: bool = True) -> str:
    """The canonical text; without ``with_source`` it leaves out the ordinals ``@[..]``."""
    lines = [f"graph({_parameters(graph)}) {{"]
    _print_body(graph, "  ", lines, with_source)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _parameters(graph: Graph) -> str:
    return ", ".join(f"%{value}: {graph.types[value]}" for value in graph.inputs)


def _values(values: Sequence[int]) -> str:
    return ", ".join([f"%{value}" for value in values])


def _print_body(graph: Graph, indent: str, lines: list[str], with_source: bool) -> None:
    for node in graph.nodes:
        print_node(node, graph.types, indent, lines, with_source)
    lines.append(f"{indent}return {_values(graph.outputs)}".rstrip())


def print_node(
    node: Node,
    types: Sequence[TensorType] | Mapping[int, TensorType],
    indent: str,
    lines: list[str],
    with_source: bool = True,
) -> None:
    """Append the lines of a node; ``types`` by value."""
    text = f"{indent}{_values(node.results)} = " if node.results else indent
    text += f"{node.op}({_values(node.operands)})"
    if node.attributes:
        items = [f"{name}={format_attribute(value)}" for name, value in node.attributes]
        text += f" {{{', '.join(items)}}}"
    for region in node.regions:
        lines.append(f"{text} {{({_parameters(region)})")
        _print_body(region, indent + "  ", lines, with_source)
        text = f"{indent}}}"
    if node.results:
        text += f" : {', '.join([str(types[result]) for result in node.results])}"
    if with_source and node.source:
        text += f" @[{', '.join(map(str, node.source))}]"
    if node.mark:
        text += f" on {json.dumps(node.mark)}"
    lines.append(text)


@lru_cache(maxsize=1 << 10)  # names of types and functions, mostly
def _quoted(text: str) -> str:
    return json.dumps(text)


def format_attribute(value: Attribute) -> str:
    """``true``, ``1.5`` (repr: exact), ``"text"`` (JSON escapes), ``2*s0 + 1``, ``[..]``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (int, Sum)):
        return format_dim(value)
    return f"[{', '.join(map(format_attribute, value))}]"

"""Gradient nodes of the training preview, as the nodes of the derivative.

In: a graph. Out: the same without Gradients whose function is made of the ops below, applied to the
tensors that they name. Not done here: other ops, other operands, control flow (such a node stays, and
is refused by name).

Backwards from ``y``, each node adds what its result contributes to the derivative of each operand. A
``Reshape`` to the operand's shape refuses operands that broadcasting has made larger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import GraphProto, NodeProto, helper

from ingot_compiler.frontend.model.sort_nodes import regions_of

_DOMAIN = "ai.onnx.preview.training"
Rule = Callable[[str, Sequence[str]], Sequence[tuple[str, tuple[str, ...]]]]
"""The derivative of the result and the operands -> of each operand, the op and the operands that give
its part."""


def _mul(of_result: str, operands: Sequence[str]) -> Sequence[tuple[str, tuple[str, ...]]]:
    left, right = operands
    return [("Mul", (of_result, right)), ("Mul", (of_result, left))]


_RULES: Mapping[str, Rule] = {
    "Add": lambda of_result, _: [("Identity", (of_result,)), ("Identity", (of_result,))],
    "Sub": lambda of_result, _: [("Identity", (of_result,)), ("Neg", (of_result,))],
    "Mul": _mul,
    "Neg": lambda of_result, _: [("Neg", (of_result,))],
    "Identity": lambda of_result, _: [("Identity", (of_result,))],
}


def expand_gradients(graph: GraphProto) -> None:
    """Replace the Gradients of a graph that can be."""
    found = [node for node in graph.node if (node.domain, node.op_type) == (_DOMAIN, "Gradient")]
    if not found:
        return
    nodes: list[NodeProto] = []
    for node in graph.node:
        made = _derivative(graph, node) if node in found else None
        nodes += [node] if made is None else made
    kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)


def _derivative(graph: GraphProto, gradient: NodeProto) -> list[NodeProto] | None:
    """The nodes in the place of a Gradient; None where there are no rules."""
    named = {
        each.name: [text.decode() for text in each.strings] or [each.s.decode()]
        for each in gradient.attribute
    }
    xs, y = named.get("xs", []), named.get("y", [""])[0]
    if list(gradient.input) != xs + named.get("zs", []):
        return None
    path = _path(graph, set(xs), y)
    if path is None:
        return None
    builder = _Builder(gradient.name or gradient.output[0])
    parts: dict[str, list[str]] = {y: [builder.ones(y)]}
    for node in reversed(path):
        own = builder.total(parts.get(node.output[0], []))
        contributions = _RULES[node.op_type](own, list(node.input)) if own else ()
        for operand, (op, operands) in zip(node.input, contributions, strict=False):
            part = builder.node(
                "Reshape", builder.node(op, *operands), builder.node("Shape", operand)
            )
            parts.setdefault(operand, []).append(part)
    for x, output in zip(xs, gradient.output, strict=False):
        own = builder.total(parts.get(x, []))
        builder.node("Identity" if own else "Sub", *((own,) if own else (x, x)), output=output)
    return builder.nodes


def _path(graph: GraphProto, xs: set[str], y: str) -> list[NodeProto] | None:
    """The nodes from ``xs`` to ``y``, in order; None where one of them has no rule."""
    reached = set(xs)
    found: list[NodeProto] = []
    for node in graph.node:
        if not reached.isdisjoint(node.input) and not reached.issuperset(node.output):
            if node.domain == _DOMAIN:
                continue
            if node.domain or node.op_type not in _RULES or regions_of(node):
                return None
            reached.update(node.output)
            found.append(node)
    return found if y in reached else None


class _Builder:
    """Makes nodes with names of their own."""

    def __init__(self, name: str) -> None:
        self.nodes: list[NodeProto] = []
        self._name = name

    def node(self, op: str, *operands: str, output: str = "") -> str:
        """One more; the name of its result."""
        name = f"{self._name} {len(self.nodes)}"
        output = output or f"derivative of {name}"
        self.nodes.append(helper.make_node(op, operands, [output], name))
        return output

    def ones(self, tensor: str) -> str:
        """Ones in the shape of a tensor."""
        return self.node("Exp", self.node("Sub", tensor, tensor))

    def total(self, parts: Sequence[str]) -> str:
        """The sum of parts; "" of none."""
        found = parts[0] if parts else ""
        for part in parts[1:]:
            found = self.node("Add", found, part)
        return found

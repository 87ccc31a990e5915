"""Plug-ins that do what they may, each in its own way.

In: nothing. Out: targets. Not done here: asking anything of them (``test_plugins``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.backends.host.hooks import compile_kernel, lower_group
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.loops.loop_values import Apply
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Statement
from ingot_compiler.plugins.claim import Offer, OpClaim
from ingot_compiler.plugins.compile_c import compile_c, image_object
from ingot_compiler.plugins.extern_call import extern_call
from ingot_compiler.plugins.plugin import Pass, Plugin
from ingot_compiler.plugins.settings import PluginSettings


def _claim(op: str, cost_ns: int | None = None) -> Callable[[Offer], list[OpClaim]]:
    def found(offer: Offer) -> list[OpClaim]:
        nodes = offer.graph.nodes
        return [OpClaim(op, (at,), cost_ns) for at in offer.nodes if nodes[at].op == op]

    return found


def claim_relu(offer: Offer) -> list[OpClaim]:
    """Every relu, at no cost."""
    return _claim("relu")(offer)


def claim_sub(offer: Offer) -> list[OpClaim]:
    """Every difference."""
    return _claim("sub")(offer)


def claim_dear(offer: Offer) -> list[OpClaim]:
    """Every relu, at a cost that is never worth it."""
    return _claim("relu", 10**9)(offer)


def claim_chain(offer: Offer) -> list[OpClaim]:
    """All that is offered, as one kernel."""
    return [OpClaim("chain", offer.nodes)]


# ---- a rewriting of the graph --------------------------------------------------------------------


def subtract(graph: Graph, settings: PluginSettings) -> Graph:
    """Every sum becomes a difference, and that less ``example_attribute``."""
    number = settings["example_attribute"]
    assert isinstance(number, int)
    nodes: list[Node] = []
    types = list(graph.types)
    for node in graph.nodes:
        if node.op != "add":
            nodes.append(node)
            continue
        kind = graph.types[node.results[0]]
        literal, inner = len(types), len(types) + 1
        types += [replace(kind, shape=()), kind]
        value = make_attributes({"dtype": kind.dtype, "shape": (), "value": (float(number),)})
        nodes.append(Node("literal", (), (literal,), value))
        nodes.append(replace(node, op="sub", results=(inner,)))
        nodes.append(replace(node, op="sub", operands=(inner, literal)))
    return _dense(Graph(graph.inputs, tuple(nodes), graph.outputs, tuple(types)))


def tanh_as_relu(graph: Graph, _: PluginSettings) -> Graph:
    """relu in the place of tanh."""
    nodes = (replace(node, op="relu") if node.op == "tanh" else node for node in graph.nodes)
    return replace(graph, nodes=tuple(nodes))


def relu_of_negation(graph: Graph, _: PluginSettings) -> Graph:
    """relu(-x) in the place of relu(x)."""
    nodes: list[Node] = []
    types = list(graph.types)
    for node in graph.nodes:
        if node.op == "relu":
            types.append(graph.types[node.results[0]])
            nodes.append(replace(node, op="neg", results=(len(types) - 1,)))
            node = replace(node, operands=(len(types) - 1,))  # noqa: PLW2901
        nodes.append(node)
    return _dense(Graph(graph.inputs, tuple(nodes), graph.outputs, tuple(types)))


def _dense(graph: Graph) -> Graph:
    from ingot_compiler.ir.renumber import compact

    return compact(graph)


# ---- its own code generation ---------------------------------------------------------------------


def lower_by_host(group: Group, target: str, _: PluginSettings) -> LoweredGroup:
    """The loops that the host has for elementwise ops."""
    return lower_group(replace(group, method=Method("pointwise")), target)


def compile_product(program: LoopProgram, target: str, _: PluginSettings) -> tuple[str, bytes]:
    """Code that multiplies where the loops subtract."""
    return compile_kernel(replace(program, body=_products(program.body)), target)


def multiply_loops(program: LoopProgram, _target: str, _: PluginSettings) -> LoopProgram:
    """Loops that multiply where they subtract."""
    return replace(program, body=_products(program.body))


def _products(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    return tuple(map(_product, body))


def _product(statement: Statement) -> Statement:
    match statement:
        case For():
            return replace(statement, body=_products(statement.body))
        case Let(name, Apply("sub", arguments, dtype)):
            return Let(name, Apply("mul", arguments, dtype))
        case _:
            return statement


# ---- libraries -----------------------------------------------------------------------------------

RELU_SOURCE = """
#include <stdint.h>
int FUNCTION(const float *x, float *y, int64_t count, double limit) {
    for (int64_t i = 0; i < count; i++) {
        if (limit > 0 && x[i] > limit) return 7;
        y[i] = x[i] < 0 ? 0 : x[i];
    }
    return 0;
}
"""


def call_relu(group: Group, _target: str, settings: PluginSettings) -> LoweredGroup:
    """One call, with a number besides."""
    limit = settings["limit"]
    assert isinstance(limit, int)
    count = group.results[0].type.element_count
    return extern_call(group, f"{settings.plugin}_relu", [count, float(limit)])


def relu_library(target: str, settings: PluginSettings) -> list[tuple[str, bytes]]:
    """The function, from C."""
    source = RELU_SOURCE.replace("FUNCTION", f"{settings.plugin}_relu")
    return [("relu.c", compile_c(source, target))]


def call_image(group: Group, _target: str, _: PluginSettings) -> LoweredGroup:
    """One call of a function of an image."""
    return extern_call(group, "image_nothing")


def image_library(target: str, _: PluginSettings) -> list[tuple[str, bytes]]:
    """An image of x86-64 code, ``xor eax, eax; ret`` behind eight other bytes."""
    return [("image", image_object(b"\xcc" * 8 + b"\x31\xc0\xc3", {"image_nothing": 8}, target))]


RELU = Plugin(
    "relu", claim=claim_relu, lower=call_relu, library=relu_library, attributes={"limit": 0}
)
OTHER = Plugin(
    "other", claim=claim_relu, lower=call_relu, library=relu_library, attributes={"limit": 0}
)
DEAR = Plugin("dear", claim=claim_dear, lower=lower_by_host)
IMAGE = Plugin("image", claim=claim_relu, lower=call_image, library=image_library)
CHAIN = Plugin("chain", claim=claim_chain, lower=lower_by_host)
SUBTRACT = Plugin("subtract", passes=[Pass("graph", subtract)], attributes={"example_attribute": 0})
PRODUCT = Plugin("product", claim=claim_sub, lower=lower_by_host, compile_kernel=compile_product)
LOOPS = Plugin(
    "loops", claim=claim_sub, lower=lower_by_host, passes=[Pass("loops", multiply_loops)]
)
ATTRIBUTES = Plugin("attributes", attributes={"text": "a", "flag": False, "count": 3})
ORDERED = Plugin("ordered", passes=[Pass("graph", tanh_as_relu), Pass("graph", relu_of_negation)])
REVERSED = Plugin("reversed", passes=[Pass("graph", relu_of_negation), Pass("graph", tanh_as_relu)])

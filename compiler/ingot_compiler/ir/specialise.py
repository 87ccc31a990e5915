"""A graph for given sizes: symbols replaced by integers everywhere.

In: a graph, a profile of some of its input symbols. Out: the same graph with those symbols bound. Not
done here: choosing between the two at run time (``host_program/specialisation``), simplification
(``passes``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, Sum, substitute
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.message import message, nodes_text
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.sizes.profile import Profile, named_profile
from ingot_compiler.ir.types import TensorType


def profile_bindings(profile: Profile) -> dict[str, Dim]:
    """What takes the place of the symbols that a profile names: a number, where it leaves one."""
    return {item.symbol: item.least for item in profile if item.least == item.most}


def specialise(graph: Graph, profile: Profile) -> Graph:
    """Bind symbols; symbols that ``profile`` does not name stay."""
    bindings = profile_bindings(profile)
    return Graph(
        graph.inputs,
        tuple(_node(node, bindings) for node in graph.nodes),
        graph.outputs,
        tuple(_type(tensor_type, bindings) for tensor_type in graph.types),
    )


def check_sizes(graph: Graph, profile: Profile) -> None:
    """Refuse the sizes of a profile that some node can never have.

    Raises:
        UserError: it names the node. What is inside of branches and loops may never run.
    """
    for node in graph.nodes:
        if node.regions:
            continue
        try:
            OPS_BY_NAME[node.op].infer([graph.types[value] for value in node.operands], node.table)
        except OpTypeError as error:
            why = message("with ", named_profile(profile), ": ", error.text)
            do = "give sizes that go together, or ? for those that follow from others"
            what = "a shape contradicts the model"
            raise UserError(what, nodes_text(node.source), why, do) from None


def _node(node: Node, bindings: Mapping[str, Dim]) -> Node:
    attributes = tuple((name, _attribute(value, bindings)) for name, value in node.attributes)
    regions = tuple(
        Graph(
            region.inputs,
            tuple(_node(inner, bindings) for inner in region.nodes),
            region.outputs,
            tuple(_type(tensor_type, bindings) for tensor_type in region.types),
        )
        for region in node.regions
    )
    return replace(node, attributes=attributes, regions=regions)


def _attribute(value: Attribute, bindings: Mapping[str, Dim]) -> Attribute:
    if isinstance(value, tuple):
        return tuple(_attribute(item, bindings) for item in value)
    return substitute(value, bindings) if isinstance(value, Sum) else value


def _type(tensor_type: TensorType, bindings: Mapping[str, Dim]) -> TensorType:
    return replace(tensor_type, shape=tuple(substitute(dim, bindings) for dim in tensor_type.shape))

"""Layouts of constant operands, as expressions that the build folds: data movement only.

In: the expression of a constant. Out: the expression of its packed form. Not done here: evaluating
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.types import FLOATS, DType


def extend(
    expression: Graph,
    op: OpName,
    attributes: Mapping[str, Attribute],
    literals: Sequence[float] = (),
) -> Graph:
    """Apply ``op`` to the expression's output; ``literals`` become further rank-0 operands of its
    dtype."""
    operands = [expression.outputs[0]]
    nodes, types = list(expression.nodes), list(expression.types)
    for number in literals:
        dtype = types[operands[0]].dtype
        table: dict[str, Attribute] = {"dtype": dtype, "shape": (), "value": (number,)}
        operands.append(len(types))
        nodes.append(Node("literal", (), (len(types),), make_attributes(table)))
        types += OPS_BY_NAME["literal"].infer([], table).results
    result = len(types)
    types += OPS_BY_NAME[op].infer([types[operand] for operand in operands], attributes).results
    nodes.append(Node(op, tuple(operands), (result,), make_attributes(attributes)))
    return Graph((), tuple(nodes), (result,), tuple(types))


def _ints(expression: Graph) -> tuple[int, ...]:
    shape = expression.types[expression.outputs[0]].shape
    assert all(isinstance(size, int) for size in shape)
    return tuple(size for size in shape if isinstance(size, int))


def cast_to(expression: Graph, dtype: DType) -> Graph:
    """Convert the element type unless it is right already."""
    if expression.types[expression.outputs[0]].dtype == dtype:
        return expression
    return extend(expression, "cast", {"dtype": dtype})


def pack_panels(expression: Graph, width: int, together: int = 1) -> Graph:
    """[G, K, N] -> [G, ceil(N/width), K, width], zeros after column N: what the contraction kernel
    streams.

    ``together`` rows lie beside each other: [G, ceil(N/width), K/together, width, together].
    """
    groups, depth, columns = _ints(expression)
    panels = -(-columns // width)
    spare = panels * width - columns
    if spare:
        pads: dict[str, Attribute] = {
            "before": (0, 0, 0),
            "after": (0, 0, spare),
            "mode": "constant",
        }
        zero = 0.0 if expression.types[expression.outputs[0]].dtype in FLOATS else 0
        expression = extend(expression, "pad", pads, [zero])
    if together > 1:
        shape = (groups, depth // together, together, panels, width)
        return extend(
            extend(expression, "reshape", {"shape": shape}),
            "transpose",
            {"permutation": (0, 3, 1, 4, 2)},
        )
    expression = extend(expression, "reshape", {"shape": (groups, depth, panels, width)})
    return extend(expression, "transpose", {"permutation": (0, 2, 1, 3)})


def pack_matrix(expression: Graph, width: int, together: int = 1) -> Graph:
    """[K, N] -> panels of one group."""
    depth, columns = _ints(expression)
    return pack_panels(
        extend(expression, "reshape", {"shape": (1, depth, columns)}), width, together
    )


def conv_matrix(expression: Graph, groups: int) -> Graph:
    """[O, C, kernel..] -> [G, kernel.. * C, O/G]: rows in the order in which kernel positions are
    visited."""
    out_channels, channels, *kernel = _ints(expression)
    expression = extend(
        expression, "reshape", {"shape": (groups, out_channels // groups, channels, *kernel)}
    )
    rank = 3 + len(kernel)
    expression = extend(expression, "transpose", {"permutation": (0, *range(3, rank), 2, 1)})
    depth = channels
    for size in kernel:
        depth *= size
    return extend(expression, "reshape", {"shape": (groups, depth, out_channels // groups)})


def depthwise_weights(expression: Graph) -> Graph:
    """[C, 1, kernel..] -> [kernel.., C]."""
    channels, _, *kernel = _ints(expression)
    expression = extend(expression, "reshape", {"shape": (channels, *kernel)})
    return extend(expression, "transpose", {"permutation": (*range(1, 1 + len(kernel)), 0)})

"""Layouts of constant operands, as expressions that the build folds: data movement only.

In: the expression of a constant. Out: the expression of its packed form. Not done here: evaluating
it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.types import FLOATS, HALVES, DType
from ingot_compiler.lowering.constants.constant_expression import extract
from ingot_compiler.lowering.kernel_target import KernelTarget

Shape = tuple[int, ...]


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


def _ints(expression: Graph) -> Shape:
    shape = expression.types[expression.outputs[0]].shape
    assert all(isinstance(size, int) for size in shape)
    return tuple(size for size in shape if isinstance(size, int))


def cast_to(expression: Graph, dtype: DType) -> Graph:
    """Convert the element type unless it is right already."""
    if expression.types[expression.outputs[0]].dtype == dtype:
        return expression
    return extend(expression, "cast", {"dtype": dtype})


_BYTES: tuple[DType, ...] = ("i8", "u8")
_MOVES = ("reshape", "transpose")


def factors_of(expression: Graph, dtype: DType, target: KernelTarget) -> Graph:
    """In ``dtype``, what a contraction sums in; halves and bytes that it widens exactly stay as
    they are. Those of f16 that the model widens itself do only where that is one instruction: ten make a
    product take 1.7 to 3 times as long."""
    own = expression.types[expression.outputs[0]].dtype
    if dtype != "f32" or own in HALVES:
        return expression if dtype == "f32" else cast_to(expression, dtype)
    halves = HALVES if target.widens_f16 else ("bf16",)
    return _without_widening(cast_to(expression, dtype), (*halves, *_BYTES))


def _without_widening(expression: Graph, narrow: Collection[DType]) -> Graph:
    """The numbers in a narrow type, where they are widened from it and then only moved."""
    moves: list[Node] = []
    makers = {node.results[0]: node for node in expression.nodes}
    node = makers[expression.outputs[0]]
    while node.op in _MOVES:
        moves.append(node)
        node = makers[node.operands[0]]
    if node.op != "cast" or expression.types[node.operands[0]].dtype not in narrow:
        return expression
    last = node.operands[0]
    nodes = tuple(item for item in expression.nodes if item.results[0] <= last)
    result = Graph((), nodes, (last,), expression.types[: last + 1])
    for move in reversed(moves):
        result = extend(result, move.op, dict(move.attributes))
    return result


def bytes_and_addends(expression: Graph) -> tuple[Graph, Graph] | None:
    """A matrix of f32 that is the sum of widened bytes and of an i32 for each column, or for all,
    as the two."""
    makers = expression.makers()
    widened = makers[expression.outputs[0]]
    total = makers[widened.operands[0]] if widened.op == "cast" else widened
    if total.op != "add" or expression.types[total.results[0]].dtype != "i32":
        return None
    for numbers, addends in (total.operands, total.operands[::-1]):
        wide = extract(expression, numbers, makers)
        found = _without_widening(wide, _BYTES)
        if found is not wide and all(size == 1 for size in expression.types[addends].shape[:-1]):
            return found, extract(expression, addends, makers)
    return None


def column_vector(expression: Graph, columns: int, width: int) -> Graph:
    """A number for each column, or for all, as [ceil(N/width) * width], zeros behind column N."""
    shape = _ints(expression)
    flat = _reshaped(expression, (math.prod(shape),))
    if shape[-1:] != (columns,):
        flat = extend(flat, "broadcast_to", {"shape": (columns,)})
    return _with_zeros(flat, (-columns % width,))


def pack_panels(
    expression: Graph, width: int, together: int = 1, tap_depth: int | None = None
) -> Graph:
    """[G, K, N] -> [G, ceil(N/width), K, width], zeros after column N: what the contraction kernel
    streams.

    ``together`` rows lie beside each other: [G, ceil(N/width), K/together, width, together], with
    zeros after each ``tap_depth`` of them (None: all).
    """
    groups, depth, columns = _ints(expression)
    panels = -(-columns // width)
    expression = _with_zeros(expression, (0, 0, panels * width - columns))
    if together == 1:
        return _rearranged(expression, (groups, depth, panels, width), (0, 2, 1, 3))
    own = tap_depth or depth or 1
    taps, steps = depth // own, -(-own // together)
    expression = _reshaped(expression, (groups, taps, own, panels * width))
    expression = _with_zeros(expression, (0, 0, steps * together - own, 0))
    shape = (groups, taps * steps, together, panels, width)
    return _rearranged(expression, shape, (0, 3, 1, 4, 2))


def _with_zeros(expression: Graph, after: Shape) -> Graph:
    """Append ``after[axis]`` zeros to each axis."""
    if not any(after):
        return expression
    before = (0,) * len(after)
    pads: dict[str, Attribute] = {"before": before, "after": after, "mode": "constant"}
    zero = 0.0 if expression.types[expression.outputs[0]].dtype in FLOATS else 0
    return extend(expression, "pad", pads, [zero])


def _rearranged(expression: Graph, shape: Shape, permutation: tuple[int, ...]) -> Graph:
    """Reshape, then transpose."""
    return extend(_reshaped(expression, shape), "transpose", {"permutation": permutation})


def _reshaped(expression: Graph, shape: Shape) -> Graph:
    return extend(expression, "reshape", {"shape": shape})


def pack_matrix(expression: Graph, width: int, together: int = 1) -> Graph:
    """[K, N] -> panels of one group."""
    return pack_panels(_reshaped(expression, (1, *_ints(expression))), width, together)


def in_one_matrix(expression: Graph, width: int) -> Graph:
    """[G, N, size] -> [G * ceil(N/width) * width, size]: zeros behind the columns of each."""
    groups, columns, size = _ints(expression)
    left = -columns % width
    padded = _with_zeros(expression, (0, left, 0))
    return _reshaped(padded, (groups * (columns + left), size))


def block_panels(expression: Graph, width: int) -> Graph:
    """[N, bytes] -> [ceil(N/width), bytes/4, width, 4]: a word of each column beside the others."""
    columns, size = _ints(expression)
    return _column_panels(_reshaped(expression, (columns, size // 4, 4)), width)


def parameter_panels(expression: Graph, width: int) -> Graph:
    """[N, blocks] -> [ceil(N/width), blocks, width, 1]."""
    return _column_panels(_reshaped(expression, (*_ints(expression), 1)), width)


def _column_panels(expression: Graph, width: int) -> Graph:
    """[N, K, together] -> [ceil(N/width), K, width, together], zeros behind column N."""
    columns, depth, together = _ints(expression)
    panels = -(-columns // width)
    if panels * width > columns:
        after = (panels * width - columns, 0, 0)
        pads: dict[str, Attribute] = {"before": (0, 0, 0), "after": after, "mode": "constant"}
        zero = 0.0 if expression.types[expression.outputs[0]].dtype in FLOATS else 0
        expression = extend(expression, "pad", pads, [zero])
    return _rearranged(expression, (panels, width, depth, together), (0, 2, 1, 3))


def conv_matrix(expression: Graph, groups: int) -> Graph:
    """[O, C, kernel..] -> [G, kernel.. * C, O/G]: rows in the order in which kernel positions are
    visited."""
    out_channels, channels, *kernel = _ints(expression)
    own = out_channels // groups
    permutation = (0, *range(3, 3 + len(kernel)), 2, 1)
    expression = _rearranged(expression, (groups, own, channels, *kernel), permutation)
    return _reshaped(expression, (groups, channels * math.prod(kernel), own))


def conv_rows_weights(expression: Graph) -> Graph:
    """[O, C, kernel..] -> [O, kernel.., C]."""
    shape = _ints(expression)
    return _rearranged(expression, shape, (0, *range(2, len(shape)), 1))


def depthwise_weights(expression: Graph, together: int = 1) -> Graph:
    """[C, 1, kernel..] -> [kernel.., C]; with ``together`` taps of the first axis beside each
    other, and zeros behind the last, [ceil(k0 / together), k1.., C, together]."""
    channels, _, *kernel = _ints(expression)
    rank = len(kernel)
    if together == 1:
        return _rearranged(expression, (channels, *kernel), (*range(1, 1 + rank), 0))
    first, *inner = kernel
    steps = -(-first // together)
    expression = _reshaped(expression, (channels, *kernel))
    expression = _with_zeros(expression, (0, steps * together - first, *(0 for _ in inner)))
    shape = (channels, steps, together, *inner)
    return _rearranged(expression, shape, (1, *range(3, 2 + rank), 0, 2))

"""Canonical forms of movement ops: those that move nothing, and two in a row that one can do.

In: a rewriter and a node. Out: the value that stands for its result, or None. Not done here:
elementwise ops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ingot_compiler.ir.dims import dim_add, dim_mul, dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import dtype_size_bits
from ingot_compiler.passes.match import scalar
from ingot_compiler.passes.rewrite import Rewriter

MovementRule = Callable[[Rewriter, Node], int | None]
FLATTENED_OPERANDS_MAX = 128  # of a concat that took others in: a dense block has up to 64 layers


def nothing_moves(state: Rewriter, node: Node) -> int | None:
    """A movement op that provably gives its operand back."""
    operand = node.operands[0]
    same_type = state.type_of(operand) == state.type_of(node.results[0])
    return operand if same_type and _keeps_order(state, node) else None


def _keeps_order(state: Rewriter, node: Node) -> bool:
    """Whether the elements stay in order, given that the shape stays."""
    if node.op == "transpose":
        return _moves_no_axis(state, node, node.ints("permutation"))
    if node.op == "slice":
        return _is_zero(node, "starts") and all(step == 1 for step in node.ints("steps"))
    if node.op == "pad":
        return _is_zero(node, "before") and _is_zero(node, "after")
    return node.op != "concat" or len(node.operands) == 1


def _is_zero(node: Node, name: str) -> bool:
    return all(value == 0 for value in node.dims(name))


def _moves_no_axis(state: Rewriter, node: Node, permutation: tuple[int, ...]) -> bool:
    """Whether the axes longer than 1 stay in order."""
    shape = state.shape_of(node.operands[0])
    moved = [axis for axis in permutation if shape[axis] != 1]
    return moved == sorted(moved)


def _second_alone(op: OpName) -> MovementRule:
    """A rule for an op that overrides one of its own kind before it."""

    def rule(state: Rewriter, node: Node) -> int | None:
        inner = state.made_by(node.operands[0], op)
        if inner is None:
            return None
        return state.emit(op, inner.operands, dict(node.attributes), node.source)

    return rule


def reshape_around_transpose(state: Rewriter, node: Node) -> int | None:
    """``reshape(transpose(reshape(x)))`` that only joins the leading axes for the time of a swap of
    the last two."""
    swap = state.made_by(node.operands[0], "transpose")
    joined = state.made_by(swap.operands[0], "reshape") if swap else None
    if swap is None or joined is None or swap.ints("permutation") != (0, 2, 1):
        return None
    shape = state.shape_of(joined.operands[0])
    *lead, rows, columns = shape if len(shape) > 2 else (0, 0, 0)
    joined_shape = (dim_product(tuple(lead)), rows, columns)
    if len(shape) <= 2 or state.shape_of(joined.results[0]) != joined_shape:
        return None
    if state.shape_of(node.results[0]) != (*lead, columns, rows):
        return None
    permutation = (*range(len(lead)), len(lead) + 1, len(lead))
    return state.emit("transpose", joined.operands, {"permutation": permutation}, node.source)


def transpose_of_transpose(state: Rewriter, node: Node) -> int | None:
    """One transpose with the composed permutation."""
    inner = state.made_by(node.operands[0], "transpose")
    if inner is None:
        return None
    first = inner.ints("permutation")
    composed = tuple(first[axis] for axis in node.ints("permutation"))
    return state.emit("transpose", inner.operands, {"permutation": composed}, node.source)


def transpose_as_reshape(state: Rewriter, node: Node) -> int | None:
    """A transpose that only moves axes of length 1 moves no data."""
    if not _moves_no_axis(state, node, node.ints("permutation")):
        return None
    return state.emit(
        "reshape", node.operands, {"shape": state.shape_of(node.results[0])}, node.source
    )


def slice_of_slice(state: Rewriter, node: Node) -> int | None:
    """One slice: starts and steps of the second, counted in elements of the first's operand."""
    inner = state.made_by(node.operands[0], "slice")
    if inner is None:
        return None
    inner_steps, steps = inner.ints("steps"), node.ints("steps")
    starts = tuple(
        dim_add(first, dim_mul(second, step))
        for first, second, step in zip(
            inner.dims("starts"), node.dims("starts"), inner_steps, strict=True
        )
    )
    composed = tuple(one * two for one, two in zip(inner_steps, steps, strict=True))
    attributes = {"starts": starts, "sizes": node.dims("sizes"), "steps": composed}
    return state.emit("slice", inner.operands, attributes, node.source)


def concat_flattened(state: Rewriter, node: Node) -> int | None:
    """Concats of concats along one axis are one concat; operands without elements fall away.

    What stands twice among the operands is not taken apart, nor is anything into a long list: that
    would grow without end.
    """
    axis = node.integer("axis")
    operands: list[int] = []
    counts = Counter(node.operands)
    operands_left = FLATTENED_OPERANDS_MAX - len(node.operands)
    for operand in node.operands:
        inner = state.made_by(operand, "concat") if counts[operand] == 1 else None
        if (
            inner is None
            or inner.integer("axis") != axis
            or len(inner.operands) - 1 > operands_left
        ):
            operands.append(operand)
        else:
            operands += inner.operands
            operands_left -= len(inner.operands) - 1
    filled = [operand for operand in operands if state.shape_of(operand)[axis] != 0] or operands[:1]
    if tuple(filled) == node.operands:
        return None
    if len(filled) == 1:
        return filled[0]
    return state.emit("concat", filled, {"axis": axis}, node.source)


def gather_one(state: Rewriter, node: Node) -> int | None:
    """``gather`` of one literal index out of a fixed length is a slice and a reshape."""
    operand, index = node.operands
    axis, number, shape = node.integer("axis"), scalar(state, index), state.shape_of(operand)
    length, single = shape[axis], all(dim == 1 for dim in state.shape_of(index))
    if not single or number is None or not isinstance(length, int):
        return None
    if not -length <= number < length:
        return None
    position, sizes = int(number) % length, (*shape[:axis], 1, *shape[axis + 1 :])
    starts = tuple(position if other == axis else 0 for other in range(len(shape)))
    attributes = {"starts": starts, "sizes": sizes, "steps": (1,) * len(shape)}
    one = state.emit("slice", (operand,), attributes, node.source)
    return state.emit("reshape", (one,), {"shape": state.shape_of(node.results[0])}, node.source)


def gather_widened(state: Rewriter, node: Node) -> int | None:
    """Rows of a stored table that is widened are read as they are stored, then widened."""
    table, index = node.operands
    cast = state.made_by(table, "cast")
    if cast is None or state.made_by(cast.operands[0], "constant") is None:
        return None
    dtype, stored = state.type_of(table).dtype, state.type_of(cast.operands[0]).dtype
    if dtype_size_bits(stored) >= dtype_size_bits(dtype):
        return None
    rows = state.emit("gather", (cast.operands[0], index), dict(node.attributes), node.source)
    return state.emit("cast", (rows,), {"dtype": dtype}, node.source)


def fixed_dim_values(state: Rewriter, node: Node) -> int | None:
    """``dim_values`` without symbols is a literal."""
    values = node.dims("values")
    if not all(isinstance(value, int) for value in values):
        return None
    return state.emit(
        "literal", (), {"dtype": "i64", "shape": (len(values),), "value": values}, node.source
    )


RULES: Mapping[str, tuple[MovementRule, ...]] = {
    "reshape": (nothing_moves, _second_alone("reshape"), reshape_around_transpose),
    "transpose": (nothing_moves, transpose_of_transpose, transpose_as_reshape),
    "slice": (nothing_moves, slice_of_slice),
    "broadcast_to": (nothing_moves, _second_alone("broadcast_to")),
    "concat": (nothing_moves, concat_flattened),
    "pad": (nothing_moves,),
    "gather": (gather_one, gather_widened),
    "dim_values": (fixed_dim_values,),
}

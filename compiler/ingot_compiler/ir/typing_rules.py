"""Pieces that the type rules of the core ops share: reading attributes, unifying dimensions, elementwise rules.

In: operand types and attribute tables. Out: result types, or ``OpTypeError`` (expected, got). Not done here: windows of
convolutions and pools (``window_rules``), values (``reference_rules``).

Two dimensions that may be equal at run time are accepted; the run-time check is the frontend's task.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_axis, attribute_bool, attribute_float, require_attributes
from ingot_compiler.ir.dims import Dim, dim_max, format_dim
from ingot_compiler.ir.op import TypeRule
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import DTYPES, FLOATS, SIGNED, UNSIGNED, DType, TensorType

INTEGERS: frozenset[DType] = SIGNED | UNSIGNED
NUMBERS: frozenset[DType] = FLOATS | INTEGERS
BOOLS: frozenset[DType] = frozenset(("bool",))
ANY: frozenset[DType] = frozenset(DTYPES)


def format_shape(shape: Sequence[Dim]) -> str:
    """``[1, s0, 3]``."""
    return f"[{', '.join(map(format_dim, shape))}]"


def require_operands(types: Sequence[TensorType], count: int, count_max: int | None = None) -> None:
    """Demand ``count`` operands, or between ``count`` and ``count_max``."""
    text = f"{count} operands" if count_max is None else f"{count} to {count_max} operands"
    require(count <= len(types) <= (count if count_max is None else count_max), text, len(types))


def require_dtype(tensor: TensorType, allowed: Collection[DType]) -> None:
    """Demand one of ``allowed`` as element type."""
    require(tensor.dtype in allowed, f"an element type out of {' '.join(sorted(allowed))}", tensor.dtype)


def require_same_dtype(types: Sequence[TensorType]) -> None:
    """Demand one element type for all operands."""
    require(len({tensor.dtype for tensor in types}) <= 1, "operands of one element type", " ".join(map(str, types)))


def require_rank(tensor: TensorType, rank: int) -> None:
    """Demand exactly ``rank`` dimensions."""
    require(tensor.rank == rank, f"rank {rank}", tensor)


def require_sizes(shape: Sequence[Dim], what: str) -> None:
    """Demand that no dimension is a negative integer."""
    require(all(not isinstance(dim, int) or dim >= 0 for dim in shape), f"{what} >= 0", format_shape(shape))


def unify(left: Dim, right: Dim, what: str) -> Dim:
    """The common value of two dimensions that must be equal at run time; an integer wins over an expression."""
    if left == right or (isinstance(left, int) and not isinstance(right, int)):
        return left
    require(not (isinstance(left, int) and isinstance(right, int)), f"equal {what}", f"{left} and {right}")
    return right if isinstance(right, int) else left


def unify_shapes(left: Sequence[Dim], right: Sequence[Dim], what: str) -> tuple[Dim, ...]:
    """``unify`` per dimension."""
    require(len(left) == len(right), f"equal {what}", f"{format_shape(left)} and {format_shape(right)}")
    return tuple(unify(a, b, what) for a, b in zip(left, right, strict=True))


def broadcast_dims(left: Dim, right: Dim) -> Dim:
    """Broadcast one dimension.

    Of an integer above 1 and an expression the integer is taken; of two different expressions, ``max``: at run time
    they are equal or one is 1, which the frontend checks. An expression against 0 gives 0.
    """
    if right in (left, 1):
        return left
    if left == 1:
        return right
    if isinstance(left, int) and isinstance(right, int):
        raise OpTypeError("equal dimensions, or 1", f"{left} and {right}")
    if isinstance(left, int):
        return left
    return right if isinstance(right, int) else dim_max(left, right)


def broadcast_shapes(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Broadcast any number of shapes as numpy does, aligned at the last dimension."""
    rank = max(map(len, shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for index, dim in enumerate(shape, rank - len(shape)):
            result[index] = broadcast_dims(result[index], dim)
    return tuple(result)


def require_broadcasts_to(shape: Sequence[Dim], target: Sequence[Dim]) -> None:
    """Demand that ``shape`` broadcasts to ``target`` without changing it (as far as integers show)."""
    fits = len(shape) <= len(target) and all(
        from_ in (1, to) or not (isinstance(from_, int) and isinstance(to, int))
        for from_, to in zip(reversed(shape), reversed(target), strict=False)
    )
    require(fits, f"a shape that broadcasts to {format_shape(target)}", format_shape(shape))


def unary(allowed: Collection[DType], result: DType | None = None, names: Sequence[str] = ()) -> TypeRule:
    """Rule of a unary elementwise op: keeps the shape, and the element type unless ``result`` is given."""

    def infer(types: Sequence[TensorType], attributes: Attributes) -> tuple[TensorType, ...]:
        require_attributes(attributes, *names)
        require_operands(types, 1)
        require_dtype(types[0], allowed)
        return (TensorType(result or types[0].dtype, types[0].shape),)

    return infer


def binary(allowed: Collection[DType], result: DType | None = None) -> TypeRule:
    """Rule of a binary elementwise op: both operands of one element type, shapes broadcast."""

    def infer(types: Sequence[TensorType], attributes: Attributes) -> tuple[TensorType, ...]:
        require_attributes(attributes)
        require_operands(types, 2)
        require_same_dtype(types)
        require_dtype(types[0], allowed)
        return (TensorType(result or types[0].dtype, broadcast_shapes(types[0].shape, types[1].shape)),)

    return infer


SCATTER_REDUCTIONS = ("none", "add", "mul", "min", "max")


def require_element_indices(x: TensorType, indices: TensorType, axis: int) -> None:
    """Demand integers of x's rank, beside ``axis`` not larger than x."""
    require_dtype(indices, INTEGERS)
    require(indices.rank == x.rank, f"indices of rank {x.rank}", indices)
    for other, (size, index_size) in enumerate(zip(x.shape, indices.shape, strict=True)):
        fits = not (isinstance(size, int) and isinstance(index_size, int)) or index_size <= size
        require(other == axis or fits, f"indices not larger than {x} beside axis {axis}", indices)


def reduced_shape(shape: Sequence[Dim], axes: Collection[int], keepdims: bool) -> tuple[Dim, ...]:
    """``shape`` with ``axes`` gone, or of size 1 when ``keepdims``."""
    if keepdims:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


def infer_arg_extreme(types: Sequence[TensorType], attributes: Attributes) -> tuple[TensorType, ...]:
    """Rule of ``argmax`` and ``argmin``."""
    require_attributes(attributes, "axis", "keepdims", "select_last")
    require_operands(types, 1)
    require_dtype(types[0], NUMBERS)
    attribute_bool(attributes, "select_last")
    axis = attribute_axis(attributes, types[0].rank)
    require(types[0].shape[axis] != 0, "elements along the axis", types[0])
    return (TensorType("i64", reduced_shape(types[0].shape, (axis,), attribute_bool(attributes, "keepdims"))),)


def infer_norm_over_tail(types: Sequence[TensorType], attributes: Attributes, count: int) -> tuple[TensorType, ...]:
    """Rule of ``layer_norm`` and ``rms_norm``: x, then ``count`` - 1 operands of shape x.shape[axis:]."""
    require_attributes(attributes, "axis", "epsilon")
    require_operands(types, count)
    require_same_dtype(types)
    require_dtype(types[0], FLOATS)
    attribute_float(attributes, "epsilon")
    tail = types[0].shape[attribute_axis(attributes, types[0].rank) :]
    for tensor in types[1:]:
        unify_shapes(tail, tensor.shape, "shapes of x[axis:] and its parameters")
    return (types[0],)


def require_channel_vectors(x: TensorType, vectors: Sequence[TensorType]) -> None:
    """Demand x[N, C, ..] of floats and vectors [C] of its element type."""
    require_dtype(x, FLOATS)
    require_same_dtype((x, *vectors))
    require(x.rank >= 2, "rank >= 2", x)
    for vector in vectors:
        unify_shapes((x.shape[1],), vector.shape, "shapes of channels and their parameters")

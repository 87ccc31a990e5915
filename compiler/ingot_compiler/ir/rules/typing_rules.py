"""Pieces that the type rules of the core ops share: demands on operands, rules that several ops
have.

In: operand types and attribute tables. Out: result types and shape constraints, or ``OpTypeError``
(expected, got). Not done here: constraints of sizes (``make_shape_constraints``), windows of
convolutions and pools (``window_rules``), values (``reference_rules``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_bool,
    attribute_float,
    require_attributes,
)
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.message import joined, message
from ingot_compiler.ir.op import Inferred, TypeRule
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.make_shape_constraints import (
    broadcast_together,
    elements_along,
    equal,
    equal_shapes,
    not_above,
    sizes_of,
)
from ingot_compiler.ir.rules.shapes import reduced_shape
from ingot_compiler.ir.shape_constraints import ShapeConstraint
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import (
    COMPUTED_DTYPES,
    FLOATS,
    LOW_BITS,
    SIGNED,
    UNSIGNED,
    DType,
    TensorType,
)

INTEGERS: frozenset[DType] = SIGNED | UNSIGNED
NUMBERS: frozenset[DType] = FLOATS | INTEGERS
BOOLS: frozenset[DType] = frozenset(("bool",))
ANY: frozenset[DType] = frozenset(COMPUTED_DTYPES)


def require_operands(types: Sequence[TensorType], count: int, count_max: int | None = None) -> None:
    """Demand ``count`` operands, or between ``count`` and ``count_max``."""
    text = f"{count} operands" if count_max is None else f"{count} to {count_max} operands"
    require(count <= len(types) <= (count if count_max is None else count_max), text, len(types))


def require_computable(types: Sequence[TensorType], traits: Trait, attributes: Attributes) -> None:
    """Demand operands of types that are computed in, of every op that does not just move them."""
    narrow = [tensor for tensor in types if tensor.dtype in LOW_BITS]
    if not narrow or (traits & _MOVES and attributes.get("reduction", "none") == "none"):
        return
    raise OpTypeError("an element type that is computed in; convert it first", narrow[0])


_MOVES = Trait.MOVEMENT | Trait.INDEXED | Trait.CODES


def require_dtype(tensor: TensorType, allowed: Collection[DType]) -> None:
    """Demand one of ``allowed`` as element type."""
    if tensor.dtype not in allowed:
        raise OpTypeError(f"an element type out of {' '.join(sorted(allowed))}", tensor.dtype)


def require_same_dtype(types: Sequence[TensorType]) -> None:
    """Demand one element type for all operands."""
    if len({tensor.dtype for tensor in types}) > 1:
        raise OpTypeError("operands of one element type", joined(" ", types))


def require_rank(tensor: TensorType, rank: int) -> None:
    """Demand exactly ``rank`` dimensions."""
    require(tensor.rank == rank, f"rank {rank}", tensor)


def require_sizes(shape: Sequence[Dim], what: str) -> None:
    """Demand that no dimension is a negative integer."""
    require(all(not isinstance(dim, int) or dim >= 0 for dim in shape), f"{what} >= 0", list(shape))


def unary(
    allowed: Collection[DType], result: DType | None = None, names: Sequence[str] = ()
) -> TypeRule:
    """Rule of a unary elementwise op: keeps the shape, and the element type unless ``result`` is
    given."""

    def infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
        require_attributes(attributes, *names)
        require_operands(types, 1)
        require_dtype(types[0], allowed)
        return Inferred((TensorType(result or types[0].dtype, types[0].shape),))

    return infer


def broadcast_result(dtype: DType, types: Sequence[TensorType]) -> Inferred:
    """A result of the shape that all operands broadcast to."""
    together = broadcast_together(tensor.shape for tensor in types)
    return Inferred((TensorType(dtype, together.target),), (together,))


def binary(allowed: Collection[DType], result: DType | None = None) -> TypeRule:
    """Rule of a binary elementwise op: both operands of one element type, shapes broadcast."""

    def infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
        require_attributes(attributes)
        require_operands(types, 2)
        require_same_dtype(types)
        require_dtype(types[0], allowed)
        return broadcast_result(result or types[0].dtype, types)

    return infer


def matrix_product(types: Sequence[TensorType], dtype: DType) -> Inferred:
    """Rule of a[.., M, K] times b[.., K, N] with results of ``dtype``: leading axes broadcast."""
    a, b = types
    if a.rank < 2 or b.rank < 2:
        raise OpTypeError("ranks >= 2", message(a, " and ", b))
    inner = equal("inner sizes", sizes_of(types, 0)[-1], sizes_of(types, 1)[-2])
    batch = broadcast_together((a.shape[:-2], b.shape[:-2]))
    return Inferred((TensorType(dtype, (*batch.target, a.shape[-2], b.shape[-1])),), (inner, batch))


SCATTER_REDUCTIONS = ("none", "add", "mul", "min", "max")


def infer_arg_extreme(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    """Rule of ``argmax`` and ``argmin``."""
    require_attributes(attributes, "axis", "keepdims", "select_last")
    require_operands(types, 1)
    require_dtype(types[0], NUMBERS)
    attribute_bool(attributes, "select_last")
    axis = attribute_axis(attributes, types[0].rank)
    require(types[0].shape[axis] != 0, "elements along the axis", types[0])
    shape = reduced_shape(types[0].shape, (axis,), attribute_bool(attributes, "keepdims"))
    return Inferred((TensorType("i64", shape),))


def infer_scattered_elements(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    """Rule of ``gather_elements`` and ``scatter_elements``: x, and integers of x's rank, beside
    ``axis`` not larger than x."""
    x, indices, *updates = types
    axis = attribute_axis(attributes, x.rank)
    require_dtype(indices, INTEGERS)
    require(indices.rank == x.rank, f"indices of rank {x.rank}", indices)
    constraints: list[ShapeConstraint] = []
    for other, (size, index_size) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if other != axis:
            constraints += not_above(index_size, size, f"size of the indices at axis {other}")
    constraints += elements_along(x.shape[axis], indices.shape)
    for tensor in updates:
        require_same_dtype((x, tensor))
        constraints += equal_shapes("sizes of indices and updates", indices.shape, tensor.shape)
    return Inferred((x if updates else TensorType(x.dtype, indices.shape),), tuple(constraints))


def infer_norm_over_tail(
    types: Sequence[TensorType], attributes: Attributes, count: int
) -> Inferred:
    """Rule of ``layer_norm`` and ``rms_norm``: x, then ``count`` - 1 operands of shape
    x.shape[axis:]."""
    require_attributes(attributes, "axis", "epsilon")
    require_operands(types, count)
    require_same_dtype(types)
    require_dtype(types[0], FLOATS)
    attribute_float(attributes, "epsilon")
    axis = attribute_axis(attributes, types[0].rank)
    x, *parameters = (sizes_of(types, operand) for operand in range(count))
    return Inferred(
        (types[0],), equal_shapes("sizes of x[axis:] and its parameters", x[axis:], *parameters)
    )


def channel_vectors(types: Sequence[TensorType]) -> tuple[ShapeConstraint, ...]:
    """Demand x[N, C, ..] of floats and vectors [C] of its element type."""
    require_dtype(types[0], FLOATS)
    require_same_dtype(types)
    require(types[0].rank >= 2, "rank >= 2", types[0])
    x, *vectors = (sizes_of(types, operand) for operand in range(len(types)))
    return equal_shapes("numbers of channels", x[1:2], *vectors)

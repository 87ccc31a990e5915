"""Core ops that write at computed positions.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_bool,
    attribute_int,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.make_shape_constraints import (
    elements_along,
    equal,
    equal_shapes,
    sizes_of,
)
from ingot_compiler.ir.rules.reference_rules import element_index, open_grid, scatter
from ingot_compiler.ir.rules.typing_rules import (
    INTEGERS,
    SCATTER_REDUCTIONS,
    infer_scattered_elements,
    require_dtype,
    require_operands,
    require_same_dtype,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType


def _infer_scatter_elements(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis", "reduction")
    require_operands(types, 3)
    attribute_str(attributes, "reduction", SCATTER_REDUCTIONS)
    return infer_scattered_elements(types, attributes)


def _reference_scatter_elements(
    operands: Sequence[Array], attributes: Attributes
) -> tuple[Array, ...]:
    x, indices, updates = operands
    index = element_index(indices, attribute_int(attributes, "axis"))
    return (scatter(x, index, updates, attribute_str(attributes, "reduction")),)


SCATTER_ELEMENTS = CoreOp(
    "scatter_elements", _infer_scatter_elements, _reference_scatter_elements, traits=Trait.INDEXED
)
"""``scatter_elements(x, indices, updates){axis, reduction}``: x with single elements replaced
or combined (ONNX ScatterElements-18).

In: a tensor, integers in [-d, d) of the same rank, updates of x's element type and indices' shape.
Out: x's type. result[.., indices[.., i, ..], ..] takes updates[.., i, ..]; with "none" the last
update in row-major order wins.
"""


def _infer_scatter_nd(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "reduction")
    require_operands(types, 3)
    x, indices, updates = types
    require_dtype(indices, INTEGERS)
    require_same_dtype((x, updates))
    require(indices.rank >= 1, "indices of rank >= 1", indices)
    depth = indices.shape[-1]
    if not isinstance(depth, int) or not 1 <= depth <= x.rank:
        raise OpTypeError(f"index vectors of 1 to {x.rank} elements", indices)
    of_x, of_indices, of_updates = (sizes_of(types, operand) for operand in range(3))
    slices = (*of_indices[:-1], *of_x[depth:])
    same = equal_shapes("sizes of the picked slices and updates", slices, of_updates)
    attribute_str(attributes, "reduction", SCATTER_REDUCTIONS)
    picked = (bound for size in x.shape[:depth] for bound in elements_along(size, updates.shape))
    return Inferred((x,), (*same, *picked))


def _reference_scatter_nd(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices, updates = operands
    depth = indices.shape[-1]
    inner = x.shape[depth:]
    # Index every element of the picked slices, so that repeated indices combine in row-major order.
    picked = [
        indices[..., column].astype(np.int64).reshape(*indices.shape[:-1], *[1] * len(inner))
        for column in range(depth)
    ]
    index = tuple(np.broadcast_to(part, updates.shape) for part in (*picked, *open_grid(inner)))
    return (scatter(x, index, updates, attribute_str(attributes, "reduction")),)


SCATTER_ND = CoreOp("scatter_nd", _infer_scatter_nd, _reference_scatter_nd, traits=Trait.INDEXED)
"""``scatter_nd(x, indices, updates){reduction}``: x with slices replaced or combined (ONNX
ScatterND-18).

In: x[d..], integers [i.., k] (k a fixed integer in [1, rank]), updates[i.., d[k:]] of x's element
type. Out: x's type. With "none" the last update in row-major order wins.
"""


_PLACES: tuple[DType, ...] = ("i64",)


def _infer_write_rows(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis", "held")
    require_operands(types, 3)
    past, places, rows = types
    axis = attribute_axis(attributes, past.rank)
    attribute_bool(attributes, "held")
    require_dtype(places, _PLACES)
    require_same_dtype((past, rows))
    require(places.rank == 2, "places of rank 2", places)
    require(rows.rank == past.rank, "rows of the rank of what they are written into", rows)
    require(axis > 0 or places.shape[0] == 1, "one list of places", places)
    of_past, of_places, of_rows = (sizes_of(types, operand) for operand in range(3))
    wanted = (*of_past[:axis], of_places[1], *of_past[axis + 1 :])
    same = equal_shapes("sizes of a cache and of the rows that are written", wanted, of_rows)
    own = (equal("lists of places", of_places[0], of_past[0]),) if places.shape[0] != 1 else ()
    return Inferred((past,), (*same, *own, *elements_along(past.shape[axis], rows.shape)))


def _reference_write_rows(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    past, places, rows = operands
    axis = attribute_int(attributes, "axis")
    result = past.copy()
    into, what = np.moveaxis(result, axis, 0), np.moveaxis(rows, axis, 0)
    for number in range(places.shape[1]):
        for entry, place in enumerate(places[:, number]):
            of = (slice(None),) if len(places) == 1 else (entry,)
            into[(place, *of)[: into.ndim]] = what[(number, *of)[: into.ndim]]
    return (result,)


WRITE_ROWS = CoreOp("write_rows", _infer_write_rows, _reference_write_rows, traits=Trait.INDEXED)
"""``write_rows(past, places, rows){axis, held}``: past with some rows replaced: a cache of fixed
length.

In: past[B.., L, D..], its length along ``axis``; i64 places [B or 1, N] in [-L, L), for each entry
of the first axis its own, or one list for all (the only choice where ``axis`` is the first); rows
[B.., N, D..] of past's element type. Out: past's type: place ``places[b, i]`` has ``rows[b, ..,
i]``, the last of several at one place. ``held``: the result may lie where past does, from call to
call (``passes.hold_rows``).
"""


OPS = (
    SCATTER_ELEMENTS,
    SCATTER_ND,
    WRITE_ROWS,
)

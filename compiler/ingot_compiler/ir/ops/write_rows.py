"""``write_rows(past, places, rows){axis, held}``: past with some rows replaced: a cache of fixed length.

In: past[B.., L, D..], its length along ``axis``; i64 places [B or 1, N] in [-L, L), for each entry of
the first axis its own, or one list for all (the only choice where ``axis`` is the first); rows
[B.., N, D..] of past's element type. Out: past's type: place ``places[b, i]`` has ``rows[b, .., i]``,
the last of several at one place. ``held``: the result may lie where past does, from call to call
(``passes.hold_rows``). Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_bool,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import (
    elements_along,
    equal,
    equal_shapes,
    sizes_of,
)
from ingot_compiler.ir.rules.typing_rules import require_dtype, require_operands, require_same_dtype
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType

_PLACES: tuple[DType, ...] = ("i64",)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
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


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    past, places, rows = operands
    axis = attribute_int(attributes, "axis")
    result = past.copy()
    into, what = np.moveaxis(result, axis, 0), np.moveaxis(rows, axis, 0)
    for number in range(places.shape[1]):
        for entry, place in enumerate(places[:, number]):
            of = (slice(None),) if len(places) == 1 else (entry,)
            into[(place, *of)[: into.ndim]] = what[(number, *of)[: into.ndim]]
    return (result,)


OP = CoreOp("write_rows", _infer, _reference, traits=Trait.INDEXED)

"""``walk_trees{depth, features, leaves}``: what the leaf says in which each row ends in each
decision tree (what ONNX ai.onnx.ml TreeEnsemble-5 and its older forms are made of).

In: x[rows, n] of u32 or u64, n >= features; nodes[m, 4] of the same type: a column, a limit, and
where the rows of two nodes begin in the table, the one to go on to if ``x[column] <= limit``, and
the other; u32 roots[trees], likewise. The first ``leaves`` nodes are leaves: they go on to
themselves, and their second number is what they say. No way is longer than ``depth``. Out: [trees,
rows] of the same type. Not done here: the tables (the frontend makes them), what a leaf stands for,
lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_int, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import not_above
from ingot_compiler.ir.rules.typing_rules import require_dtype, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType

FIELDS = 4
"""Numbers of a node."""
_KEYS: frozenset[DType] = frozenset(("u32", "u64"))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "depth", "features", "leaves")
    require_operands(types, 3)
    x, nodes, roots = types
    require_dtype(x, _KEYS)
    require(x.rank == 2, "x[rows, n]", x)
    is_table = nodes.dtype == x.dtype and nodes.shape[1:] == (FIELDS,)
    require(is_table, f"{x.dtype}[m, {FIELDS}]", nodes)
    require(roots.dtype == "u32" and roots.rank == 1, "u32[trees]", roots)
    leaves, depth = (attribute_int(attributes, name) for name in ("leaves", "depth"))
    require(leaves >= 1 and depth >= 0, "a leaf, and no negative depth", f"{leaves} and {depth}")
    fits = not_above(attribute_int(attributes, "features"), x.shape[1], "the features of trees")
    return Inferred((TensorType(x.dtype, (roots.shape[0], x.shape[0])),), fits)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, nodes, roots = operands
    rows, place = np.arange(len(x)), np.empty((len(roots), len(x)), np.int64)
    place[...] = roots[:, None] // FIELDS
    for _ in range(attribute_int(attributes, "depth")):
        goes_first = x[rows, nodes[place, 0].astype(np.int64)] <= nodes[place, 1]
        place[...] = np.where(goes_first, nodes[place, 2], nodes[place, 3]) // FIELDS
    return (nodes[place, 1],)


OPS = (CoreOp("walk_trees", _infer, _reference, traits=Trait.EXACT),)

"""``walk_trees{depth, features, leaves}``: in which leaf of each decision tree each row ends (what
ONNX ai.onnx.ml TreeEnsemble-5 and its older forms are made of).

In: x[rows, n] of f32 or f64, n >= features; nodes[m, 4], integers as wide: a feature, the bits of a
threshold, and the nodes where it goes on if ``feature <= threshold``, and otherwise (NaN is not);
i32 roots[trees]. Nodes below ``leaves`` are leaves, and go on to themselves. No way is longer than
``depth``. Out: i32[trees, rows]. Not done here: the tables (the frontend makes them), what a leaf
stands for, lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_int, require_attributes
from ingot_compiler.ir.make_shape_constraints import not_above
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.ir.typing_rules import require_dtype, require_operands

NODE_DTYPES: dict[DType, DType] = {"f32": "i32", "f64": "i64"}
"""Element type of the features -> that of the nodes."""


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "depth", "features", "leaves")
    require_operands(types, 3)
    x, nodes, roots = types
    require_dtype(x, frozenset(NODE_DTYPES))
    require(x.rank == 2, "x[rows, n]", x)
    wide = NODE_DTYPES[x.dtype]
    require(nodes.dtype == wide and nodes.shape[1:] == (4,), f"{wide}[m, 4]", nodes)
    require(roots.dtype == "i32" and roots.rank == 1, "i32[trees]", roots)
    leaves, depth = (attribute_int(attributes, name) for name in ("leaves", "depth"))
    require(leaves >= 1 and depth >= 0, "a leaf, and no negative depth", f"{leaves} and {depth}")
    fits = not_above(attribute_int(attributes, "features"), x.shape[1], "the features of trees")
    return Inferred((TensorType("i32", (roots.shape[0], x.shape[0])),), fits)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, nodes, roots = operands
    thresholds, rows = nodes[:, 1].copy().view(x.dtype), np.arange(len(x))
    place = np.empty((len(roots), len(x)), np.int64)
    place[...] = roots[:, None]
    for _ in range(attribute_int(attributes, "depth")):
        goes_first = x[rows, nodes[place, 0]] <= thresholds[place]
        place[...] = np.where(goes_first, nodes[place, 2], nodes[place, 3])
    return (place.astype(np.int32),)


OP = CoreOp("walk_trees", _infer, _reference, traits=Trait.EXACT)

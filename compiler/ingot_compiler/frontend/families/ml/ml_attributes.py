"""Attributes of ai.onnx.ml nodes, which hold what a model has learnt: stored as weights are.

In: a node, where arrays are stored. Out: attributes by name, as an ``ImportedNode`` has them. Not
done here: what they mean (``ops/ml``), trees (``trees``).

Lists of floats and long lists of integers become tensors. A tree ensemble becomes tables, in the
place of the lists that say the same (``TREE_PREFIX``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, NodeProto, TensorProto

from ingot_compiler.frontend.families.trees.ensemble import TreeError
from ingot_compiler.frontend.families.trees.tables import TREE_OPS, tree_tables
from ingot_compiler.frontend.model.imported import ImportedAttribute, ImportedNode
from ingot_compiler.frontend.model.sort_nodes import describe_node
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import ConstantSource

DOMAIN = "ai.onnx.ml"
TREE_PREFIX = "tree_"
_KEPT_OF_TREES = (
    "aggregate_function", "classlabels_int64s", "classlabels_strings", "post_transform",
)  # fmt: skip
_LEARNT = ("TfIdfVectorizer",)
"""Ops of ONNX's own domain whose floats a model has learnt."""
_INTS_MAX = 64  # of a list that stays one

ArrayStore = Callable[[npt.NDArray[Any], str], ConstantSource]
"""Stores an array; what the file calls it."""


def has_tables(node: ImportedNode) -> bool:
    """Whether tables stand for the attributes that the schema of the op asks for."""
    is_tree = node.domain == DOMAIN and node.op in TREE_OPS
    return is_tree and any(name.startswith(TREE_PREFIX) for name, _ in node.attributes)


def is_tree(node: NodeProto) -> bool:
    """Whether a node is a tree ensemble."""
    return node.domain == DOMAIN and node.op_type in TREE_OPS


def makes_wide(nodes: Iterable[NodeProto]) -> bool:
    """Whether some node has a tensor of f64, or casts to that."""
    return any(
        attribute.t.data_type == TensorProto.DOUBLE
        or (attribute.name == "to" and attribute.i == TensorProto.DOUBLE)
        for node in nodes
        for attribute in node.attribute
    )


def stored_list(
    node: NodeProto, attribute: AttributeProto, store: ArrayStore
) -> ConstantSource | None:
    """A long list of a node as a tensor; None for what stays in the node."""
    name, is_ml = f"{describe_node(node)}, attribute {attribute.name!r}", node.domain == DOMAIN
    if attribute.type == AttributeProto.FLOATS and (is_ml or node.op_type in _LEARNT):
        return store(np.array(attribute.floats, np.float32), name)
    if attribute.type == AttributeProto.INTS and is_ml and len(attribute.ints) > _INTS_MAX:
        return store(np.array(attribute.ints, np.int64), name)
    return None


def kept_of_tree(attribute: AttributeProto) -> bool:
    """Whether an attribute of a tree ensemble says more than its tables do."""
    return attribute.name in _KEPT_OF_TREES or attribute.name.startswith("base_values")


def tree_attributes(
    node: NodeProto, store: ArrayStore, *, has_wide: bool
) -> list[tuple[str, ImportedAttribute]]:
    """The tables of a tree ensemble; ``has_wide``: the model has f64 values.

    Raises:
        ModelError: attributes that are no trees.
    """
    where = describe_node(node)
    try:
        tables = tree_tables(node, _empty(node), has_wide=has_wide)
    except TreeError as error:
        what, do = "the attributes of a tree ensemble contradict each other", "export it again"
        raise ModelError(what, where, str(error), do) from None
    found: list[tuple[str, ImportedAttribute]] = [
        ("added", tuple(tables.added.tolist()) if len(tables.added) == 1 else ()),
        ("depth", tables.depth),
        ("features", tables.features),
        ("kinds", tables.kinds),
        ("leaves", tables.leaves),
        ("positive", int(tables.all_positive)),
        ("targets", tables.targets),
        ("trees", tables.trees),
        ("wide_weights", int(tables.has_wide_weights)),
    ]
    arrays = {
        "nodes": tables.nodes, "roots": tables.roots, "weights": tables.weights,
        "wide_nodes": tables.wide_nodes,
    }  # fmt: skip
    found += [
        (name, store(array, f"{where}, table of {name}"))
        for name, array in arrays.items()
        if array is not None
    ]
    return [(TREE_PREFIX + name, value) for name, value in found]


def _empty(node: NodeProto) -> float:
    """What a target has to which no leaf adds, under the aggregate function."""
    found = [item for item in node.attribute if item.name == "aggregate_function"]
    name = found[0].s.decode("utf-8", "replace") or int(found[0].i) if found else ""
    return {"MIN": np.inf, 2: np.inf, "MAX": -np.inf, 3: -np.inf}.get(name, 0.0)

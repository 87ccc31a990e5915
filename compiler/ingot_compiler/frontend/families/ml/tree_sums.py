"""What the leaves in which a row ends add up to.

In: a context of a tree ensemble, whose attributes are tables. Out: scores [N, targets]. Not done
here: the tables (``trees``), base values, transforms, labels (``ml_scores``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    as_vector,
    binary_scalar,
    cast,
    range_mask,
    reduce,
    reshape,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.families.ml.ml_attributes import TREE_PREFIX
from ingot_compiler.frontend.families.ml.ml_scores import as_rows, vector_of
from ingot_compiler.frontend.families.tensors.selection import sort_keys
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import DType

_FUNCTIONS = {"SUM": "sum", "AVERAGE": "sum", "MIN": "min", "MAX": "max"}


def leaf_sums(context: OpContext, function: str = "SUM") -> int:
    """Scores [N, targets] in the element type of the weights; ``function``: SUM, AVERAGE, MIN or
    MAX over the trees."""
    leaves, weights = _walked(context), _table(context, "weights")
    targets, (tree_count, rows) = tree_number(context, "targets"), context.shape_of(leaves)
    assert isinstance(tree_count, int)
    is_apart = weights is None or context.rank_of(weights) == 1
    if is_apart:
        leaves = reshape(context, leaves, (targets, tree_count // targets, rows))
    added = _added(context, leaves) if weights is None else _looked_up(context, weights, leaves)
    total = reduce(context, added, _FUNCTIONS[function], (int(is_apart),))
    if is_apart:
        total = transpose(context, total, (1, 0))
    if function == "AVERAGE":
        total = binary_scalar(context, "div", total, tree_number(context, "trees"))
    return total


def _looked_up(context: OpContext, weights: int, leaves: int) -> int:
    """What leaves add, by their numbers."""
    return context.add("gather", weights, cast(context, leaves, "i64"), axis=0)


def _added(context: OpContext, leaves: int) -> int:
    """What leaves add, by its bits."""
    real: DType = "f32" if context.dtype_of(leaves) == "u32" else "f64"
    added = context.add("bit_cast", leaves, dtype=real)
    return added if tree_number(context, "wide_weights") else cast(context, added, "f32")


def tree_number(context: OpContext, name: str) -> int:
    """What the tables say beside arrays."""
    return context.int_attribute(TREE_PREFIX + name, 0)


def _table(context: OpContext, name: str) -> int | None:
    source = context.attributes.get(TREE_PREFIX + name)
    return context.constant(source) if isinstance(source, ConstantSource) else None


def _walked(context: OpContext) -> int:
    """What the leaf of each tree for each row says: u32 or u64[trees, rows]."""
    x = as_rows(context, context.operand(0))
    if context.dtype_of(x) != "f64":
        x = cast(context, x, "f32")
    roots = _table(context, "roots")
    if roots is None:
        raise OpTypeError("tables of trees", "none")
    nodes = _table(context, "wide_nodes" if context.dtype_of(x) == "f64" else "nodes")
    if nodes is None and context.dtype_of(x) == "f32":
        x, nodes = cast(context, x, "f64"), _table(context, "wide_nodes")
    if nodes is None:
        raise Unsupported("features of f64 in a model whose types do not say so before")
    x, features = _columns(context, x)
    numbers = {name: tree_number(context, name) for name in ("depth", "leaves")}
    return context.add("walk_trees", x, nodes, roots, features=features, **numbers)


def _columns(context: OpContext, x: int) -> tuple[int, int]:
    """The keys of which branches ask, and how many: with NaN as the greatest number, as the least
    one, or both (``node_table``)."""
    features, kinds = tree_number(context, "features"), tree_number(context, "kinds")
    if kinds == 1:
        return sort_keys(context, x), features
    if kinds == 2:
        return binary_scalar(context, "add", sort_keys(context, x), 1), features
    rows = context.shape_of(x)[0]
    x = reshape(context, slice_axis(context, x, 1, 0, features), (rows, 1, features))
    keys = sort_keys(context, x)
    more = cast(context, range_mask(context, (rows, 2, features), 1), context.dtype_of(keys))
    both = context.add("add", keys, more)
    return reshape(context, both, (rows, 2 * features)), 2 * features


def base_values(context: OpContext) -> int | None:
    """The attribute ``base_values``, in either form."""
    tensor = context.attributes.get("base_values_as_tensor")
    if isinstance(tensor, ConstantSource):
        return as_vector(context, context.constant(tensor))
    return vector_of(context, "base_values")


def based(context: OpContext, total: int) -> int:
    """Scores with the base values of the targets."""
    base = base_values(context)
    if base is None:
        return total
    count = context.shape_of(base)[0]
    targets = tree_number(context, "targets")
    require(count in (1, targets), f"{targets} base values", count)
    return context.add("add", total, cast(context, base, context.dtype_of(total)))

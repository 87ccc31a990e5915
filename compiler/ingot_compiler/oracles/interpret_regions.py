"""Runs ``if`` and ``loop`` for the interpreter: which region, how often, and the symbols that the
results bind.

In: a node, its operands, a function that runs a region. Out: the results; symbols are added to the
bindings. Not done here: nodes without regions (``interpret``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ingot_compiler.ir.dims import Dim, evaluate, symbols_of
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.ops.loop import CONTROL, counted_before
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.types import TensorType

RunRegion = Callable[[Graph, Sequence[Array], dict[str, int]], tuple[Array, ...]]
"""(region, arrays for its inputs, symbols that may be added to) -> its outputs."""


def run_if(
    node: Node, operands: Sequence[Array], bindings: dict[str, int], run: RunRegion
) -> tuple[Array, ...]:
    """The results of the branch that the condition chooses."""
    return run(node.regions[0 if bool(operands[0]) else 1], (), dict(bindings))


def run_loop(
    node: Node,
    types: Sequence[TensorType],
    operands: Sequence[Array],
    bindings: dict[str, int],
    run: RunRegion,
) -> tuple[Array, ...]:
    """The results of all iterations. ``types``: of the node's results."""
    (body,) = node.regions
    known = counted_before(dict(node.attributes))
    iterations = node.dim("iterations")
    count = evaluate(iterations, bindings) if known else int(operands[0])
    going = known or bool(operands[1])
    carried = tuple(operands[CONTROL:])
    rows: list[tuple[Array, ...]] = []
    while going and len(rows) < count:
        inner = dict(bindings)
        inputs = (np.array(len(rows), np.int64), np.array(True), *carried)
        for value, array in zip(body.inputs, inputs, strict=True):
            bind_sizes(body.types[value], array, inner)
        condition, *made = run(body, inputs, inner)
        going = known or bool(condition)
        carried = tuple(made[: len(carried)])
        rows.append(tuple(made[len(carried) :]))
    if not known:
        bindings[next(iter(symbols_of(iterations)))] = len(rows)
    scans = [
        _stacked([row[at] for row in rows], kind, bindings)
        for at, kind in enumerate(types[len(carried) :])
    ]
    return (*carried, *scans)


def _stacked(rows: Sequence[Array], tensor_type: TensorType, bindings: Mapping[str, int]) -> Array:
    """Rows on a new first axis; sizes that no iteration has told are 0."""
    if not rows:
        return np.zeros(
            (0, *(_size(dim, bindings) for dim in tensor_type.shape[1:])),
            STORAGE_DTYPES[tensor_type.dtype],
        )
    if len({row.shape for row in rows}) > 1:
        shapes = ", ".join(str(list(row.shape)) for row in rows)
        raise ModelError(
            "the iterations of a loop give results of different sizes",
            "loop",
            f"expected one, got {shapes}",
        )
    return np.stack(rows)


def _size(dim: Dim, bindings: Mapping[str, int]) -> int:
    try:
        return evaluate(dim, bindings)
    except KeyError:
        return 0


def bind_sizes(tensor_type: TensorType, array: Array, bindings: dict[str, int]) -> None:
    """Bind the symbols that are a dimension of ``kind`` and not bound yet."""
    for dim, size in zip(tensor_type.shape, array.shape, strict=True):
        name = bare_symbol(dim)
        if name is not None:
            bindings.setdefault(name, size)

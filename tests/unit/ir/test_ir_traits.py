"""Traits say what is true of each op: the references and type rules bear them out, for every op
that has one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType

SOURCES: dict[str, dict[str, Any]] = {
    "constant": {"dtype": "f32", "shape": (2,), "weight": "0"},
    "literal": {"dtype": "i64", "shape": (1,), "value": (1,)},
    "dim_values": {"values": (3, 4)},
    "iota": {"dtype": "i64", "length": 3},
}
X = np.arange(6, dtype=np.float32).reshape(2, 3)
MOVEMENTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "broadcast_to": ([X], {"shape": (2, 2, 3)}),
    "append": ([X, X + 10], {"axis": 0}),
    "concat": ([X, X + 10], {"axis": 0}),
    "copy": ([X], {"destination": "acc"}),
    "reshape": ([X], {"shape": (3, 2)}),
    "slice": ([X], {"starts": (1, 2), "sizes": (1, 3), "steps": (1, -1)}),
    "transpose": ([X], {"permutation": (1, 0)}),
    "gather": ([X, np.array([1, 0])], {"axis": 1}),
    "gather_elements": ([X, np.array([[2, 0, 1]])], {"axis": 1}),
    "gather_nd": ([X, np.array([[1, 2], [0, 0]])], {"batch_dims": 0}),
    "scatter_elements": (
        [X, np.array([[1]]), np.array([[50]], np.float32)],
        {"axis": 1, "reduction": "none"},
    ),
    "scatter_nd": (
        [X, np.array([[1]]), np.array([[50, 60, 70]], np.float32)],
        {"reduction": "none"},
    ),
    "write_rows": (
        [X, np.array([[1]]), np.array([[50, 60, 70]], np.float32)],
        {"axis": 0, "held": False},
    ),
}


def _with(trait: Trait) -> list[CoreOp]:
    return [op for op in OPS_BY_NAME.values() if trait in op.traits]


def _pairs(op: CoreOp) -> list[tuple[Any, Any]]:
    """Operands of each element type that the op's rule takes."""
    left, right = [3, -2, 5, 0], [2, 5, -1, 4]
    kinds: list[tuple[DType, Any]] = [("f32", np.float32), ("i32", np.int32), ("bool", np.bool_)]
    found: list[tuple[Any, Any]] = []
    for dtype, kind in kinds:
        try:
            op.infer([TensorType(dtype, (4,))] * 2, {})
        except OpTypeError:
            continue
        found.append((np.array(left, kind), np.array(right, kind)))
    return found


def test_commutative_ops_are_those_whose_operands_may_be_exchanged() -> None:
    """Of all elementwise ops of two operands of one type, exactly these give the same with the
    operands exchanged."""
    found: set[str] = set()
    for op in _with(Trait.ELEMENTWISE):
        pairs = [] if op.name == "require" else _pairs(op)
        with np.errstate(all="ignore"):
            same = [
                np.array_equal(op.reference((a, b), {})[0], op.reference((b, a), {})[0])
                for a, b in pairs
            ]
        if same and all(same):
            found.add(op.name)
    assert found == {op.name for op in _with(Trait.COMMUTATIVE)}


def _jumps(op: CoreOp, operand_count: int) -> bool:
    """Whether a step of 1e-4 around a multiple of one half moves a small result by more than a
    tenth."""
    grid = [array.ravel() for array in np.meshgrid(*[np.arange(-3, 3.5, 0.5)] * operand_count)]
    with np.errstate(all="ignore"):
        found = [
            op.reference([grid[0] + step, *grid[1:]], {})[0].astype(np.float64)
            for step in (-1e-4, 0, 1e-4)
        ]
        beside = np.all(
            [np.isfinite(one) & (np.abs(one) < 100) for one in found], axis=0
        )  # no pole
        return bool((np.ptp(found, axis=0)[beside] > 0.1).any())


def test_steps_are_the_functions_that_jump() -> None:
    """Of all elementwise functions of floats without attributes, exactly these; beside them ops
    that choose a place."""
    found: set[str] = set()
    for op in _with(Trait.ELEMENTWISE):
        for count in (1, 2):
            try:
                op.infer([TensorType("f64", (4,))] * count, {})
            except OpTypeError:
                continue
            found |= {op.name} if _jumps(op, count) else set()
    assert found == {op.name for op in _with(Trait.STEP) if Trait.ELEMENTWISE in op.traits}
    assert {op.name for op in _with(Trait.STEP)} - found == {"argmax", "argmin", "resize"}


def test_sources_have_one_result_and_no_operands() -> None:
    """Attributes alone give one result."""
    assert set(SOURCES) == {op.name for op in _with(Trait.SOURCE)}
    assert all(len(op.infer((), SOURCES[op.name]).results) == 1 for op in _with(Trait.SOURCE))


@pytest.mark.parametrize("op", _with(Trait.MOVEMENT) + _with(Trait.INDEXED), ids=lambda op: op.name)
def test_movements_make_no_new_element(op: CoreOp) -> None:
    """What comes out went in, unknown elements too; of an indexed op, in any operand but the
    indices."""
    operands, attributes = MOVEMENTS[op.name]
    data = [
        array for place, array in enumerate(operands) if Trait.MOVEMENT in op.traits or place != 1
    ]
    (result,) = op.reference(operands, attributes)
    assert set(result.ravel()) <= {item for array in data for item in array.ravel()}
    unknown = [
        array
        if Trait.INDEXED in op.traits and place == 1
        else np.full(array.shape, None, np.object_)
        for place, array in enumerate(operands)
    ]
    assert all(item is None for item in op.reference(unknown, attributes)[0].ravel())


def test_elementwise_ops_broadcast() -> None:
    """The type rule of an op of two equal operands gives the broadcast shape, and the constraint
    that they broadcast."""
    checked = 0
    for op in _with(Trait.ELEMENTWISE):
        if op.name != "require" and _pairs(op):
            dtype: DType = (
                "f32"
                if _pairs(op)[0][0].dtype.kind == "f"
                else "i32"
                if _pairs(op)[0][0].dtype.kind == "i"
                else "bool"
            )
            inferred = op.infer([TensorType(dtype, (2, 1)), TensorType(dtype, (3,))], {})
            assert inferred.results[0].shape == (2, 3)
            assert len(inferred.constraints) == 1
            checked += 1
    assert checked > 15

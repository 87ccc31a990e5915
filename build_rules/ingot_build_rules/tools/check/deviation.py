"""How far two tensors are apart, and how far they may be.

In: what a kernel stored, what the interpreter expects. Out: ``Deviation``. Not done here: which
tensors (``self_check``).

The interpreter computes in f64 and rounds once per op, so that what is measured is the kernel's own
rounding. Errors are relative to the largest finite magnitude of the expected tensor: single
elements may be sums that cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.op import Array, bf16_to_f32
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, LOW_BITS, DType, TensorType
from ingot_runtime.lazy_dataclass import dataclass

# Of the largest magnitude; integers and booleans must be equal.
TOLERANCES: dict[DType, float] = {"f64": 1e-9, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2}
# Where rounding may decide between two answers (a comparison of computed floats), so many elements
# may take the other.
JUMPING_PART_MAX = 0.01


@dataclass(frozen=True, slots=True)
class Limits:
    """``tolerance``: of the largest magnitude; ``share``: of the elements that may be further
    away."""

    tolerance: float
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Deviation:
    """``relative``: the largest error by the largest expected magnitude; ``index`` is where, with
    both values there.

    ``apart``: elements whose error is above the tolerance; ``within``: whether all is as it must
    be.
    """

    absolute: float
    relative: float
    index: tuple[int, ...]
    expected: float
    got: float
    apart: int
    count: int
    within: bool


def launch_limits(dtype: DType, *, jumps: bool, through: DType) -> Limits:
    """How far what one launch stores may be from what the interpreter makes of the same operands;
    ``through``: what floats are rounded to on the way."""
    rough = TOLERANCES[through] if dtype in FLOATS else 0.0
    tolerance = max(TOLERANCES.get(dtype, 0.0), rough)
    return Limits(tolerance, JUMPING_PART_MAX if jumps else 0.0)


def deviation(
    got: Array, expected: Array, dtype: DType, limits: Limits, moved: Sequence[Array] = ()
) -> Deviation:
    """Compare two tensors of one dtype (bf16, low-bit types: bit patterns). ``moved``: what right
    kernels might have stored as well; an element may be as far as it is in one of them.

    NaN equals NaN, infinities equal themselves; anything else against them is infinitely far.
    """
    if got.shape != expected.shape:
        return _of_other_shape(got.size, expected.size)
    if got.size == 0:
        return Deviation(0.0, 0.0, (), 0.0, 0.0, 0, 0, within=True)
    left, right = _numbers(got, dtype), _numbers(expected, dtype)
    errors = _errors(left, right)
    scale = float(np.max(np.abs(right), where=np.isfinite(right), initial=0.0)) or 1.0
    allowed = np.asarray(limits.tolerance * scale)
    for other in moved:
        allowed = np.maximum(allowed, _errors(_numbers(other, dtype), right))
    apart = int(np.count_nonzero(errors > allowed))
    worst = np.unravel_index(int(np.argmax(errors)), errors.shape)
    part_max = max(1.0, limits.share * errors.size) if limits.share else 0.0
    return Deviation(
        absolute=float(errors[worst]),
        relative=float(errors[worst]) / scale,
        index=tuple(map(int, worst)),
        expected=float(right[worst]),
        got=float(left[worst]),
        apart=apart,
        count=errors.size,
        within=apart <= part_max,
    )


def _of_other_shape(got: int, expected: int) -> Deviation:
    """Two tensors of other shapes with so many elements: all of what was got is wrong."""
    counts = float(expected), float(got)
    return Deviation(np.inf, np.inf, (), *counts, got, expected, within=False)


def narrowest(nodes: Sequence[Node], types: dict[int, TensorType]) -> DType:
    """The roughest type of the floats that these nodes compute: where its rounding is near the
    middle of two numbers, either may be right."""
    computed = {types[result].dtype for node in nodes for result in node.results}
    floats: list[DType] = ["f64", *(dtype for dtype in sorted(computed) if dtype in FLOATS)]
    return max(floats, key=lambda dtype: TOLERANCES[dtype])


def may_jump(nodes: Sequence[Node], types: dict[int, TensorType]) -> bool:
    """Whether rounding inside these nodes can decide between two answers: a step function of a
    float they compute."""
    computed = {result for node in nodes if node.op != "literal" for result in node.results}
    return any(
        any(operand in computed and types[operand].dtype in FLOATS for operand in node.operands)
        and _is_step(node)
        for node in nodes
    ) or any(node.op == "resize" and len(node.operands) > 1 for node in nodes)


def _is_step(node: Node) -> bool:
    return Trait.STEP in OPS_BY_NAME[node.op].traits or (
        node.op == "cast" and node.text("dtype") not in FLOATS
    )


def _numbers(array: Array, dtype: DType) -> npt.NDArray[Any]:
    """The tensor as float64; integers beyond 2^53 are compared as integers, by their difference."""
    if dtype == "bf16":
        return bf16_to_f32(array.view(np.uint16)).astype(np.float64)
    if dtype in LOW_BITS:
        return array.view(np.uint8).astype(np.float64)
    return array if dtype in ("i64", "u64") else array.astype(np.float64)


def _errors(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if left.dtype.kind in "iu":
        return (
            np.asarray(np.maximum(left, right) - np.minimum(left, right))
            .view(np.uint64)
            .astype(np.float64)
        )
    with np.errstate(invalid="ignore"):
        errors = np.asarray(np.abs(left - right))  # of rank 0, numpy gives a number
    errors[(left == right) | (np.isnan(left) & np.isnan(right))] = 0.0
    errors[np.isnan(errors)] = np.inf
    return np.asarray(errors, np.float64)

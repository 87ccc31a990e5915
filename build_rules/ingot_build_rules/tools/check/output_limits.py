"""How far the outputs of a right bundle may be from those of the interpreter: what follows from the
graph.

In: a graph, inputs. Out: the interpreter's outputs, each with its ``Limits``. Not done here: moving
floats (``rounding``).

A value that operations decide which round once, or that are of integers, has the same bits on every
processor: nothing is allowed. Of every other one it is measured how far it moves when each kernel
errs, as it does on some processor: the limit is some times that, for there are more processors than
runs here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ingot_build_rules.tools.check.deviation import (
    JUMPING_PART_MAX,
    TOLERANCES,
    Limits,
    deviation,
)
from ingot_build_rules.tools.check.rounding import (
    DIRECTIONS,
    Errors,
    array_of,
    exact_values,
    moved_outputs,
    numbers_of,
)
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.types import FLOATS, DType
from ingot_compiler.oracles.interpret import interpret
from ingot_runtime.lazy_dataclass import dataclass

_FACTOR = 4.0  # of what the runs differ by
_FAR = 0.5  # of the largest magnitude: the answers are others, not near ones
_BYTES = ("u8", "i8")
_STEPS = 2.5
_GRID = 256  # parts of a tolerance


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """``is_exact``: whether every right bundle gives these bits; ``is_settled``: whether every one
    gives this shape."""

    content: Array
    limits: Limits
    is_exact: bool = False
    is_settled: bool = True


def expected_outputs(
    graph: Graph, given: Sequence[Array], read: ConstantReader, *, joined: bool, rounded: bool
) -> tuple[ExpectedOutput, ...]:
    """The outputs for ``given`` with their limits.

    ``joined``: passes may have joined operations of this graph; ``rounded``: its products round
    their factors to bf16.
    """
    with np.errstate(all="ignore"):
        base = interpret(graph, given, read)
    exact = exact_values(graph, joined=joined)
    if exact.issuperset(graph.outputs):
        return tuple(ExpectedOutput(array, Limits(0.0), is_exact=True) for array in base)
    runs = [
        moved_outputs(graph, given, read, Errors(graph, direction, joined, rounded))
        for direction in DIRECTIONS
    ]
    return tuple(
        ExpectedOutput(base[at], Limits(0.0), is_exact=True)
        if value in exact
        else _moving(base[at], [run[at] for run in runs], graph.types[value].dtype)
        for at, value in enumerate(graph.outputs)
    )


def _moving(array: Array, others: Sequence[Array], dtype: DType) -> ExpectedOutput:
    if any(other.shape != array.shape for other in others):
        limits = Limits(TOLERANCES.get(dtype, 0.0), JUMPING_PART_MAX)
        return ExpectedOutput(array, limits, is_settled=False)
    return ExpectedOutput(array, _limits(array, others, dtype))


def _limits(array: Array, others: Sequence[Array], dtype: DType) -> Limits:
    """The limits of an output that rounding moves to ``others``."""
    floor = TOLERANCES.get(dtype, 0.0)
    found = [deviation(other, array, dtype, Limits(floor)) for other in others]
    spread = max(each.relative for each in found)
    if dtype in FLOATS and _FACTOR * spread <= _FAR:
        return Limits(_power(max(floor, _FACTOR * spread)))
    if dtype in _BYTES:
        step = 1 / (float(np.max(np.abs(array.astype(np.int64)), initial=0)) or 1.0)
        if _STEPS * max(step, spread) <= _FAR:
            return Limits(_STEPS * max(step, spread))
    part = max(each.apart / max(1, each.count) for each in found)
    return Limits(floor, min(1.0, _power(max(JUMPING_PART_MAX, _FACTOR * part))))


def _power(number: float) -> float:
    """The next power of two: another machine's numpy, which differs in the last bits, gives the
    same."""
    return 2.0 ** math.ceil(math.log2(number))


def steady(output: ExpectedOutput, dtype: DType) -> Array:
    """The output without the bits that another machine's numpy gives otherwise: it is rounded to
    some part of what it may be off by."""
    if output.is_exact or dtype not in FLOATS or output.content.size == 0:
        return output.content
    numbers: np.ndarray[Any, Any] = numbers_of(output.content, dtype)
    largest = float(np.max(np.abs(numbers), where=np.isfinite(numbers), initial=0.0)) or 1.0
    grid = _power(output.limits.tolerance * largest / _GRID)
    return array_of(np.rint(numbers / grid) * grid, dtype)

"""The rules by which an answer of ours may differ from ``onnx.reference``: these and no others.

In: results, values with bounds. Out: the first difference as text. Not done here: computing bounds
(``reference``).

1. *Rounding.* A float may be off by 32 times the bound of ``reference``: what rounding each operand
   and result of each node by some units in the last place does to it (sums in another order, FMA,
   other series for exp).
2. *Not numbers.* NaN equals NaN whatever its sign and payload; infinities must be equal.
3. *Zeros.* -0 equals 0, also where a number is divided by one that a node computed.
4. *Overflow by rounding.* Where rounding decides whether a number is finite, any value is right; also
   where a divisor is within its bound of 0, as that of a sum whose terms cancel, and where the
   factors of a ReduceProd overflow or vanish in some order.
5. *Subnormal numbers* may be off by 32 units of the smallest one (in rule 1's bound).
6. *f64 by f32.* The reference computes Erf, Gelu and HardSwish of f64 with constants or results of
   f32 (in rule 1's bound).
7. *Sizes that meet by luck* (docs/decisions/0006). Two sizes that are different expressions of the
   inputs' sizes and are 1 or 0 in one place only: every way of running refuses the call by name,
   where the reference broadcasts. Counted as refused.
8. *A computed size of 0 in Reshape.* The standard takes a 0 in the shape for "as before" where
   ``allowzero`` is not set; we take a size that is computed from sizes as it is where it only
   splits an empty axis. Both are tensors of one rank without elements.
9. *The middle of two integers.* A QLinearMatMul whose exact quotient is within 2**-22 of itself of the
   middle of two integers may give either: ONNX does not say how it is rounded on the way. What
   follows from it is not compared (``reference.near_middles``).
10. *No rows for a tree.* Rows with fewer features than a tree reads are refused, also where there is
    no row, which the reference does not look at. Counted as refused.
11. *ReduceLogSumExp of infinities alone.* Inf where one of them is positive, else -inf: the logarithm of
    the sum of exponentials. The reference subtracts an infinity from itself and gives NaN
    (``reference._of_infinities``).
12. *Resize* is exact (``resized``): places are fractions of sizes; scales mean the decimals that
    were rounded to f32 (docs/decisions/0046). The reference divides by a quotient that was rounded,
    and by the f32 as it is: where a place is whole or a half, and where a size is, it takes the
    neighbour. PyTorch and ONNX Runtime, in f32, do so elsewhere, and agree with exact arithmetic on
    every size, and nearly every element, on which they agree with each other.
13. *Narrow types.* f16 and bf16 are off by one unit in the last place where one rounding makes
    them; a Cast to a wider type gives a number of the narrow one, in every bit
    (``narrow_problem``).
14. *A mean of what is not a number* is none (``reference._beside_nan``). The reference marks the
    padding that an AveragePool does not count by NaN, and takes every NaN for it.
Integers, booleans, shapes and element types must be equal; aot and vm must agree in every bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tests.fuzz.program import HALVES, Array, Program, is_float
from tests.fuzz.reference import FACTOR, Value

_SIZES_DIFFER = ("does not broadcast to", "cannot reshape", "a slice leaves its axis")


def is_refused_for_sizes(answers: Sequence[object]) -> bool:
    """Whether rule 7 or 10 holds: all ways refuse the call, and the loader says that two sizes do not
    fit."""
    texts = [answer for answer in answers if isinstance(answer, str)]
    return (
        len(texts) == len(answers)
        and texts[0].startswith("InputError")
        and any(word in texts[0] for word in _SIZES_DIFFER)
    )


def narrow_problem(program: Program, values: Mapping[str, Value], output: str, got: Array) -> str:
    """Rule 13: what is no number of the type from which an output is cast; empty for none."""
    maker = next((node for node in program.nodes if output in node.output), None)
    narrow = values[maker.input[0]].array.dtype if maker and maker.op_type == "Cast" else None
    if narrow not in HALVES or not is_float(got):
        return ""
    with np.errstate(all="ignore"):
        is_lost = (got.astype(narrow).astype(got.dtype) != got) & ~np.isnan(got)
    return f"{int(is_lost.sum())} are no numbers of {narrow}" if is_lost.any() else ""


def difference(got: Array, want: Value, *, reshaped: bool = False) -> str:
    """What differs; empty when no rule is broken. ``reshaped``: the model has a Reshape (rule
    8)."""
    expected = want.array
    if (
        reshaped
        and got.dtype == expected.dtype
        and got.ndim == expected.ndim
        and got.size == expected.size == 0
    ):
        return ""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    with np.errstate(all="ignore"):
        wide, right = got.astype(np.float64), expected.astype(np.float64)
        same = (got == expected) | (np.isnan(wide) & np.isnan(right))
        if is_float(expected) and want.bound is not None:
            same |= np.abs(wide - right) <= FACTOR * want.bound
            same |= np.isinf(want.bound)
    if same.all():
        return ""
    at = tuple(map(int, np.unravel_index(int(np.argmin(same)), np.shape(same))))
    bound = 0.0 if want.bound is None else float(want.bound[at])
    count = int((~same).sum())
    return f"{count} of {same.size} differ, at {list(at)} {got[at]!r}, expected {expected[at]!r} within {FACTOR * bound:.3g}"

"""Bounds of a Slice along one axis, resolved at compile time.

In: start, end, size as expressions, a step. Out: first index and number of elements, or None when a
sign is not known. Not done here: bounds that tensors compute (``run_time_shapes``). ONNX Slice-13:
negative bounds count from the end, bounds are clamped to the axis.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.ranges import maximum, minimum, sign

_INFINITE = (1 << 31) - 1  # exporters write this, or more, for "to the end"


def clamped(number: int) -> int:
    """A bound or step no further away than from one end of an axis to the other: nothing needs
    more, and what is computed with it stays small."""
    return max(-_INFINITE, min(number, _INFINITE))


def axis_bounds(start: Dim, end: Dim, size: Dim, step: int) -> tuple[Dim, Dim] | None:
    """(first index, number of elements); None when an expression's sign is not visible."""
    if step == 0:
        raise OpTypeError("a step other than 0", "0")
    start, end = (clamped(x) if isinstance(x, int) else x for x in (start, end))
    beyond = _INFINITE if step > 0 else -_INFINITE
    if start == beyond or end == -beyond:  # from behind the end, or up to before the begin
        return 0, 0
    if start == -beyond:
        start = 0 if step > 0 else dim_add(size, -1)
    return _forwards(start, end, size, step) if step > 0 else _backwards(start, end, size, step)


def _steps(span: Dim, step: int) -> Dim:
    """ceil(span / step), at least 0."""
    return maximum(dim_floordiv(dim_add(span, step - 1), step), 0)


def _forwards(start: Dim, end: Dim, size: Dim, step: int) -> tuple[Dim, Dim] | None:
    if not sign(start) or not sign(end):
        return None
    # A stop below 0 gives no element, clamped or not.
    stop = minimum(end, size) if sign(end) > 0 else dim_add(size, end)
    if end == _INFINITE:
        stop = size
    if sign(start) > 0:
        # A start behind the end gives no element, and then it does not matter; numbers are clamped
        # all the same.
        first = min(start, size) if isinstance(start, int) and isinstance(size, int) else start
        return first, _steps(dim_add(stop, dim_mul(first, -1)), step)
    if stop == size:
        # The last -start elements: min(-start, size) reads better than size - max(size + start, 0).
        count = minimum(dim_mul(start, -1), size)
        return dim_add(size, dim_mul(count, -1)), _steps(count, step)
    first = maximum(dim_add(size, start), 0)
    return first, _steps(dim_add(stop, dim_mul(first, -1)), step)


def _backwards(start: Dim, end: Dim, size: Dim, step: int) -> tuple[Dim, Dim] | None:
    if not sign(start) or not sign(end):
        return None
    last = dim_add(size, -1)
    first = minimum(start, last) if sign(start) > 0 else dim_add(size, start)
    if end == -_INFINITE:
        stop: Dim = -1
    else:
        stop = minimum(end, last) if sign(end) > 0 else maximum(dim_add(size, end), -1)
    count = _steps(dim_add(first, dim_mul(stop, -1)), -step)
    return (0 if count == 0 else first), count

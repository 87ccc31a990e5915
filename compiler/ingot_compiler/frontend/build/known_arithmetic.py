"""Core ops on known elements: integer expressions, floats that are integers, None for unknown.

In: the name of an op. Out: a function of elements. Not done here: tensors of them (``propagate``).
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.frontend.build.known_values import Element
from ingot_compiler.ir.dims import Dim, Sum, dim_add, dim_floordiv, dim_mod, dim_mul
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.sizes.ranges import equal, is_nonnegative, less, maximum, minimum
from ingot_compiler.ir.types import FLOATS, DType

_INT_END = 1 << 63


def function_of(op: OpName, result: DType) -> Callable[..., Element] | None:
    """What an elementwise op does with elements; None when nothing is known of its results."""
    if op == "cast":
        return _CASTS.get(result, _same)
    if op == "div" and result in FLOATS:
        return _divide_exactly
    return _FUNCTIONS.get(op)


def _whole(value: Element) -> Dim | None:
    """The value as an integer expression, None when it is not one."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def _dims(function: Callable[[Dim, Dim], Dim | None]) -> Callable[[Element, Element], Element]:
    """Lift a function of two integer expressions: unknown when one is, or when the expression would
    be too long.

    What is not known here is computed by kernels, and read where a size needs it.
    """

    def lifted(left: Element, right: Element) -> Element:
        a, b = _whole(left), _whole(right)
        try:
            return None if a is None or b is None else _without_wrapping(function(a, b))
        except LimitError:
            return None

    return lifted


def _without_wrapping(result: Dim | None) -> Dim | None:
    """A number that 64 bits do not hold is none that a kernel computes."""
    return result if not isinstance(result, int) or -_INT_END <= result < _INT_END else None


def _difference(left: Dim, right: Dim) -> Dim:
    return dim_add(left, dim_mul(right, -1))


def _truncating_div(left: Dim, right: Dim) -> Dim | None:
    if isinstance(left, int) and isinstance(right, int):
        if right == 0:
            return None
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    if dim_mod(left, right) == 0:
        return dim_floordiv(left, right)
    return dim_floordiv(left, right) if is_nonnegative(left) and is_nonnegative(right) else None


def _exact_div(left: Dim, right: Dim) -> Dim | None:
    return dim_floordiv(left, right) if right != 0 and dim_mod(left, right) == 0 else None


def _truth(function: Callable[[Dim, Dim], bool | None]) -> Callable[[Element, Element], Element]:
    """Lift a question about two integer expressions: 1 or 0, unknown where it cannot be seen."""

    def as_integer(left: Dim, right: Dim) -> Dim | None:
        answer = function(left, right)
        return None if answer is None else int(answer)

    return _dims(as_integer)


def _less_equal(left: Dim, right: Dim) -> bool | None:
    greater = less(right, left)
    return None if greater is None else not greater


def _absolute(value: Element) -> Element:
    return value if isinstance(value, (int, Sum)) and is_nonnegative(value) else None


def _negative(value: Element) -> Element:
    return None if value is None else -value


def _small(value: Element) -> Element:
    return value if isinstance(value, int) and 0 <= value < 128 else None


def _select(condition: Element, left: Element, right: Element) -> Element:
    if condition is None:
        return left if left == right else None
    return left if condition else right


def _and(left: Element, right: Element) -> Element:
    return 0 if 0 in (left, right) else None if None in (left, right) else 1


def _or(left: Element, right: Element) -> Element:
    return 1 if 1 in (left, right) else None if None in (left, right) else 0


def _not(value: Element) -> Element:
    return None if value is None else int(not value)


def _same(value: Element) -> Element:
    return value


def _whole_only(value: Element) -> Element:
    return _whole(value)


def _to_bool(value: Element) -> Element:
    if value is None or isinstance(value, float):
        return None
    zero = equal(value, 0)
    return None if zero is None else int(not zero)


_add, _multiply, _max, _min = _dims(dim_add), _dims(dim_mul), _dims(maximum), _dims(minimum)
_divide_exactly = _dims(_exact_div)
# Integer types of 32 and 64 bits hold every size; narrower ones would wrap.
_CASTS: dict[DType, Callable[..., Element]] = {
    "bool": _to_bool, "i64": _whole_only, "i32": _whole_only, "f32": _same, "f64": _same,
    "i8": _small, "i16": _small, "u8": _small, "u16": _small, "u32": _small, "u64": _small,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Element]] = {
    "add": _add, "sub": _dims(_difference), "mul": _multiply, "div": _dims(_truncating_div),
    "mod": _dims(dim_mod), "min": _min, "max": _max, "neg": _negative, "abs": _absolute,
    "floor": _whole_only, "ceil": _whole_only, "round": _whole_only,
    "equal": _truth(equal), "less": _truth(less), "less_equal": _truth(_less_equal),
    "logical_and": _and, "logical_or": _or, "logical_not": _not, "select": _select,
}  # fmt: skip
REDUCTIONS: dict[str, Callable[[Element, Element], Element]] = {
    "sum": _add, "product": _multiply, "max": _max, "min": _min,
}  # fmt: skip
"""``function`` of core ``reduce`` -> how two elements combine; others tell nothing."""

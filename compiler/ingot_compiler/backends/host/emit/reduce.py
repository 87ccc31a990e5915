"""Parts of reductions: identities, combining, the final order.

In: partial results. Out: their combination. Not done here: the loops (``statement``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.convert import REGISTER
from ingot_compiler.backends.host.emit.math import FUNCTIONS
from ingot_compiler.backends.host.emit.value import emit_value
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, element_bits
from ingot_compiler.backends.host.writer import Writer
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType
from ingot_compiler.lowering.loops import Apply, Let, Reduce, Value

_COMBINERS = {"sum": "add", "product": "mul", "max": "max", "min": "min"}
_CHEAP = frozenset((
    "add", "sub", "mul", "neg", "abs", "max", "min", "relu", "select", "cast", "less", "less_equal", "equal", "logical_and",
    "logical_or", "logical_not",
))  # fmt: skip
# Costs (cheap functions of one round) up to which 8 and 4 partial results are kept.
_EIGHT_COST_MAX = 6
_FOUR_COST_MAX = 24
_HEAVY_COST = 12


def identity(function: str, dtype: DType, lanes: int) -> LlvmValue:
    """The value that changes nothing: 0, 1, the least or the greatest value."""
    element = REGISTER[dtype]
    if function in ("sum", "product"):
        return constant(0 if function == "sum" else 1, element, lanes)
    if dtype in FLOATS:
        return constant(
            float("-inf") if function in ("max", "max_number") else float("inf"), element, lanes
        )
    bits = element_bits(element)
    unsigned = dtype in UNSIGNED or dtype == "bool"
    least, greatest = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return constant(least if function == "max" else greatest, element, lanes)


def combine(w: Writer, function: str, dtype: DType, left: LlvmValue, right: LlvmValue) -> LlvmValue:
    """One step of the reduction."""
    if dtype == "bool":
        return w.binary("or" if function in ("sum", "max") else "and", left, right)
    if function == "max_number":
        return w.select(w.compare("ogt", right, left), right, left)
    compute: DType = "f32" if dtype in ("f16", "bf16") else dtype
    return FUNCTIONS[_COMBINERS[function]](w, compute, (left, right))


def multiply_add(context: EmitContext, statement: Reduce, total: LlvmValue) -> LlvmValue | None:
    """A sum of products as one multiply-add per round where the target has it; None if it does not
    apply."""
    value = statement.value
    if statement.function != "sum" or statement.dtype not in FLOATS or not context.target.has_fma:
        return None
    if not isinstance(value, Apply) or value.function != "mul" or value.dtype != statement.dtype:
        return None
    typed = [emit_value(context, argument) for argument in value.arguments]
    left, right = (context.writer.splat(part.operand, total.lanes) for part in typed)
    return context.writer.fma(left, right, total)


def combine_partials(
    w: Writer, function: str, dtype: DType, partials: Sequence[LlvmValue]
) -> LlvmValue:
    """A balanced tree over neighbours."""
    while len(partials) > 1:
        pairs = zip(partials[::2], partials[1::2], strict=True)
        partials = [combine(w, function, dtype, left, right) for left, right in pairs]
    return partials[0]


def combine_lanes(w: Writer, function: str, dtype: DType, total: LlvmValue) -> LlvmValue:
    """Lane j with lane j + half, until one is left."""
    half = total.lanes // 2
    while half:
        low, high = w.shuffle(total, range(half)), w.shuffle(total, range(half, 2 * half))
        total = combine(w, function, dtype, low, high)
        half //= 2
    return w.extract(total, 0)


def partial_count(statement: Reduce) -> int:
    """How many partial results a reduction over lanes keeps; depends on the program alone."""
    if any(not isinstance(inner, Let) for inner in statement.body):
        return 1
    values = [statement.value, *(inner.value for inner in statement.body if isinstance(inner, Let))]
    cost = sum(
        1 if function in _CHEAP else _HEAVY_COST
        for value in values
        for function in _functions(value)
    )
    return 8 if cost <= _EIGHT_COST_MAX else 4 if cost <= _FOUR_COST_MAX else 1


def _functions(value: Value) -> Iterator[str]:
    if isinstance(value, Apply):
        yield value.function
        for argument in value.arguments:
            yield from _functions(argument)

"""Emits values.

In: a ``Value`` and the context. Out: ``Typed`` registers (scalar while all lanes agree). Not done
here: the functions themselves (``math``), memory (``memory``).

``select`` whose condition has a ``Compare`` guards the loads of both arms: they read only where
their arm is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.context import EmitContext, Typed
from ingot_compiler.codegen.emit.convert import REGISTER, compute_dtype, emit_cast, rounded
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lane_index import emit_lanes, lane_stride
from ingot_compiler.codegen.emit.math import FUNCTIONS
from ingot_compiler.codegen.emit.math.power import constant_power
from ingot_compiler.codegen.emit.memory import emit_load
from ingot_compiler.codegen.emit.quantize import emit_quantize
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import InternalError, UnsupportedError
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import (
    Apply,
    Compare,
    Constant,
    FromIndex,
    Load,
    Local,
    Value,
)

_PREDICATES = {"less": "slt", "less_equal": "sle", "equal": "eq"}


def emit_value(context: EmitContext, value: Value) -> Typed:
    """Write ``value`` at the current point."""
    match value:
        case Load(buffer, index):
            return Typed(emit_load(context, buffer, index), context.dtypes[buffer])
        case Constant(number, dtype):
            return Typed(emit_constant(number, dtype), dtype, number)
        case FromIndex(index, dtype):
            lanes = _index_lanes(context, index)
            return Typed(emit_cast(context.writer, lanes, "i64", dtype), dtype)
        case Compare():
            return Typed(_emit_compare(context, value), "bool")
        case Local(name, _):
            return _local(context, name)
        case Apply():
            return _emit_apply(context, value)


def _local(context: EmitContext, name: str) -> Typed:
    if name not in context.locals:
        raise InternalError(
            f"local {name} is not in scope", why=f"in scope: {sorted(context.locals)}"
        )
    return context.locals[name]


def emit_constant(number: float, dtype: DType) -> LlvmValue:
    """A literal in register form: f16 and bf16 values live in f32, and so does an ``epsilon`` that
    f16 would make 0."""
    return constant(number, REGISTER[dtype])


def _index_lanes(context: EmitContext, index: Dim) -> LlvmValue:
    agree = lane_stride(context, index) == 0
    return emit_index(context, index) if agree else emit_lanes(context, index)


def _emit_compare(context: EmitContext, value: Compare) -> LlvmValue:
    sides = [_index_lanes(context, index) for index in (value.left, value.right)]
    left, right = _same_lanes(context, sides)
    return context.writer.compare(_PREDICATES[value.function], left, right)


def _same_lanes(context: EmitContext, operands: Sequence[LlvmValue]) -> tuple[LlvmValue, ...]:
    lanes = max(operand.lanes for operand in operands)
    return tuple(context.writer.splat(operand, lanes) for operand in operands)


def _emit_apply(context: EmitContext, value: Apply) -> Typed:
    if value.function == "select":
        return _emit_select(context, value)
    w, arguments = context.writer, [emit_value(context, argument) for argument in value.arguments]
    first = arguments[0]
    if value.function == "cast":
        converted = emit_cast(w, first.operand, first.dtype, value.dtype)
        is_own = first.dtype == value.dtype
        return Typed(rounded(w, converted, value.dtype) if is_own else converted, value.dtype)
    if value.function == "quantize":
        return Typed(emit_quantize(context, arguments, value.dtype), value.dtype)
    if value.function == "bit_cast":
        return Typed(w.convert("bitcast", first.operand, REGISTER[value.dtype]), value.dtype)
    if value.function == "pow" and arguments[1].number is not None:
        shortcut = constant_power(w, first.dtype, first.operand, arguments[1].number)
        if shortcut is not None:
            return Typed(shortcut, value.dtype)
    return Typed(emit_function(context, value.function, arguments), value.dtype)


def emit_function(context: EmitContext, name: str, arguments: Sequence[Typed]) -> LlvmValue:
    """Apply one entry of ``FUNCTIONS`` to arguments of one dtype; halves are computed in f32."""
    if name not in FUNCTIONS:
        raise UnsupportedError(
            f"code generation has no function {name}", why=f"known: {', '.join(sorted(FUNCTIONS))}"
        )
    dtype = arguments[0].dtype
    operands = _same_lanes(context, [argument.operand for argument in arguments])
    return FUNCTIONS[name](context.writer, compute_dtype(dtype), operands)


def _emit_select(context: EmitContext, value: Apply) -> Typed:
    w = context.writer
    condition = emit_value(context, value.arguments[0]).operand
    if _is_guard(value.arguments[0]):
        inverse = w.binary("xor", condition, constant(1, "i1", condition.lanes))
        left = _emit_guarded(context, condition, value.arguments[1])
        right = _emit_guarded(context, inverse, value.arguments[2])
    else:
        left, right = (emit_value(context, argument) for argument in value.arguments[1:])
    lanes = max(condition.lanes, left.operand.lanes, right.operand.lanes)
    arms = (w.splat(left.operand, lanes), w.splat(right.operand, lanes))
    if not lanes and all(isinstance(argument, Load) for argument in value.arguments[1:]):
        return Typed(w.choose(condition, *arms), value.dtype)
    return Typed(w.select(condition, *arms), value.dtype)


def _emit_guarded(context: EmitContext, condition: LlvmValue, value: Value) -> Typed:
    saved = context.guards
    context.guards = (*saved, condition)
    try:
        return emit_value(context, value)
    finally:
        context.guards = saved


def _is_guard(value: Value) -> bool:
    if isinstance(value, Apply):
        return any(_is_guard(argument) for argument in value.arguments)
    return isinstance(value, Compare)

"""The functions of index expressions: ``min``, ``max``, ``broadcast``, ``floordiv``, ``mod``.

In: a ``Call`` and its operands, i64. Out: the result: one number, or one per lane. Not done here:
sums and products (``index``, ``lane_index``).

``floordiv`` and ``mod`` round to -infinity and give 0 for a divisor of 0.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.operands import ZERO
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import Call, Dim
from ingot_compiler.ir.sizes.ranges import is_nonnegative

# 1.5 * 2**52: adding it to an f64 of magnitude below 2**51 leaves the rounded integer in the low
# bits.
_MAGIC = 6755399441055744.0
_MAGIC_BITS = 0x4338000000000000
_INTRINSICS = {"min": "smin", "max": "smax"}


def emit_call(context: EmitContext, atom: Call, left: LlvmValue, right: LlvmValue) -> LlvmValue:
    """Apply the function of ``atom`` to operands of one shape."""
    w = context.writer
    if atom.function in _INTRINSICS:
        return w.intrinsic(_INTRINSICS[atom.function], left, right)
    if atom.function == "broadcast":
        one = constant(1, "i64", left.lanes)
        some = w.intrinsic("smin", w.intrinsic("smin", left, right), one)
        return w.mul(w.intrinsic("smax", left, right), some)
    shift = _power_of_two(atom.right)
    if shift is not None:
        return _shifted(w, atom.function, left, shift)
    if isinstance(atom.right, int):
        return _divided(context, atom, left, right)
    return _zero_if_zero(w, right, _divided(context, atom, left, _not_zero(w, right)))


def _power_of_two(divisor: Dim) -> int | None:
    if isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) == 0:
        return divisor.bit_length() - 1
    return None


def _shifted(w: Writer, function: str, left: LlvmValue, shift: int) -> LlvmValue:
    if function == "floordiv":
        return w.binary("ashr", left, constant(shift, "i64", left.lanes))
    return w.binary("and", left, constant((1 << shift) - 1, "i64", left.lanes))


def _not_zero(w: Writer, divisor: LlvmValue) -> LlvmValue:
    zero, one = constant(0, "i64", divisor.lanes), constant(1, "i64", divisor.lanes)
    return w.select(w.compare("eq", divisor, zero), one, divisor)


def _zero_if_zero(w: Writer, divisor: LlvmValue, result: LlvmValue) -> LlvmValue:
    zero = constant(0, "i64", divisor.lanes)
    return w.select(w.compare("eq", divisor, zero), zero, result)


def _divided(context: EmitContext, atom: Call, left: LlvmValue, divisor: LlvmValue) -> LlvmValue:
    """Quotient or remainder by a divisor that is not 0."""
    if left.lanes:
        return _divided_lanes(context.writer, atom.function, left, divisor)
    if all(is_nonnegative(side, context.is_signed) for side in (atom.left, atom.right)):
        opcode = "udiv" if atom.function == "floordiv" else "urem"
        return context.writer.binary(opcode, left, divisor)
    return _rounded_down(context.writer, atom.function, left, divisor)


def _rounded_down(w: Writer, function: str, left: LlvmValue, divisor: LlvmValue) -> LlvmValue:
    """Correct the truncated quotient where the remainder's sign differs from the divisor's."""
    quotient = w.binary("sdiv", left, divisor)
    rest = w.sub(left, w.mul(quotient, divisor))
    differs = w.compare("slt", w.binary("xor", rest, divisor), ZERO)
    wrong = w.binary("and", differs, w.compare("ne", rest, ZERO))
    if function == "floordiv":
        return w.sub(quotient, w.convert("zext", wrong, "i64"))
    return w.select(wrong, w.add(rest, divisor), rest)


def _divided_lanes(w: Writer, function: str, left: LlvmValue, divisor: LlvmValue) -> LlvmValue:
    """Divide in f64: vector units have no integer division, and the quotient of magnitudes below
    2**51 rounds down right."""
    quotient = w.binary("fdiv", _to_double(w, left), _to_double(w, divisor))
    result = _from_double(w, w.intrinsic("floor", quotient))
    if function == "floordiv":
        return result
    return w.binary("sub", left, w.binary("mul", result, divisor))


def _to_double(w: Writer, value: LlvmValue) -> LlvmValue:
    magic, bits = _magic(value.lanes)
    return w.binary("fsub", w.convert("bitcast", w.binary("add", value, bits), "double"), magic)


def _from_double(w: Writer, value: LlvmValue) -> LlvmValue:
    magic, bits = _magic(value.lanes)
    return w.binary("sub", w.convert("bitcast", w.binary("fadd", value, magic), "i64"), bits)


def _magic(lanes: int) -> tuple[LlvmValue, LlvmValue]:
    """The number that turns one form into the other, as double and as bits."""
    return constant(_MAGIC, "double", lanes), constant(_MAGIC_BITS, "i64", lanes)

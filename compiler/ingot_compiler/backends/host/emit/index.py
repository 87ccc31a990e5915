"""Index expressions to i64 code, each written once at the frame where its last symbol is bound.

In: a ``Dim`` and the context. Out: i64 operands: one number (lane 0's), or one per lane.
Not done here: addresses (``memory``).

``floordiv`` and ``mod`` round to -infinity and give 0 for a divisor of 0.
"""

from __future__ import annotations

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.function_text import Lines
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant
from ingot_compiler.backends.host.writer import Writer
from ingot_compiler.ir.dims import (
    Call,
    Dim,
    Monomial,
    Sum,
    Symbol,
    coefficient,
    dim_add,
    dim_mul,
    from_terms,
    substitute,
    symbols_of,
    terms_of,
)
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.ranges import is_nonnegative

# 1.5 * 2**52: adding it to an f64 of magnitude below 2**51 leaves the rounded integer in the low
# bits.
_MAGIC = 6755399441055744.0
_MAGIC_BITS = 0x4338000000000000
_INTRINSICS = {"min": "smin", "max": "smax"}


def emit_index(context: EmitContext, dim: Dim) -> LlvmValue:
    """Write an index; inside a vector loop the value for lane 0 (the only one where all lanes
    agree)."""
    dim = substitute(dim, context.constants)
    if isinstance(dim, int):
        return constant(dim, "i64")
    depths = sorted({_depth(context, monomial) for monomial, _ in dim.terms})
    total = constant(0, "i64")
    done: dict[Monomial, int] = {}
    for depth in depths:
        terms = [
            (monomial, factor)
            for monomial, factor in dim.terms
            if _depth(context, monomial) == depth
        ]
        done.update(terms)
        total = _extend(context, depth, from_terms(done), total, terms)
    return total


def _extend(
    context: EmitContext,
    depth: int,
    partial: Dim,
    total: LlvmValue,
    terms: list[tuple[Monomial, int]],
) -> LlvmValue:
    frame = context.frames[max(depth, 0)]
    known = frame.memo.get(partial)
    if known is not None:
        return known
    # The operands of calls may need outer frames, never inner ones.
    products = [(_product(context, monomial), factor) for monomial, factor in terms]
    with context.writer.at(frame.lines):
        for product, factor in products:
            total = context.writer.add(total, context.writer.mul(product, constant(factor, "i64")))
    frame.memo[partial] = total
    return total


def _product(context: EmitContext, monomial: Monomial) -> LlvmValue:
    if not monomial:
        return constant(1, "i64")
    frame = context.frames[max(_depth(context, monomial), 0)]
    known = frame.memo.get(monomial)
    if known is not None:
        return known
    factors = [_atom(context, atom) for atom in monomial]
    with context.writer.at(frame.lines):
        total = factors[0]
        for factor in factors[1:]:
            total = context.writer.mul(total, factor)
    frame.memo[monomial] = total
    return total


def _atom(context: EmitContext, atom: Symbol | Call) -> LlvmValue:
    if isinstance(atom, Symbol):
        operand = _binding_operand(context, atom.name)
        frame = context.frames[context.symbols[atom.name].depth]
        with context.writer.at(frame.lines):
            return context.writer.extract(operand, 0)
    frame = context.frames[max(_depth(context, (atom,)), 0)]
    known = frame.memo.get(atom)
    if known is None:
        left, right = emit_index(context, atom.left), emit_index(context, atom.right)
        with context.writer.at(frame.lines):
            known = _scalar_call(context, atom, left, right)
        frame.memo[atom] = known
    return known


def _binding_operand(context: EmitContext, name: str) -> LlvmValue:
    if name not in context.symbols:
        raise InternalError(
            f"symbol {name} is not bound in a loop program", why=f"bound: {sorted(context.symbols)}"
        )
    return context.symbols[name].operand


def _depth(context: EmitContext, monomial: Monomial) -> int:
    """The innermost frame that binds one of the symbols; -1 for the constant term (folded last by
    the sum)."""
    depth = -1
    for name in symbols_of(from_terms({monomial: 1})):
        _binding_operand(context, name)
        depth = max(depth, context.symbols[name].depth)
    return depth


# ---- one number ----------------------------------------------------------------------------------


def _scalar_call(context: EmitContext, atom: Call, left: LlvmValue, right: LlvmValue) -> LlvmValue:
    w = context.writer
    if atom.function in _INTRINSICS:
        return w.intrinsic(_INTRINSICS[atom.function], left, right)
    shift = _power_of_two(atom.right)
    if shift is not None:
        return _shifted(w, atom.function, left, shift)
    divisor = right if isinstance(atom.right, int) else _not_zero(w, right)
    if all(is_nonnegative(side, context.is_signed) for side in (atom.left, atom.right)):
        result = w.binary("udiv" if atom.function == "floordiv" else "urem", left, divisor)
    else:
        result = _rounded_down(w, atom.function, left, divisor)
    return result if isinstance(atom.right, int) else _zero_if_zero(w, right, result)


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


def _rounded_down(w: Writer, function: str, left: LlvmValue, divisor: LlvmValue) -> LlvmValue:
    """Correct the truncated quotient where the remainder's sign differs from the divisor's."""
    zero = constant(0, "i64")
    quotient = w.binary("sdiv", left, divisor)
    rest = w.sub(left, w.mul(quotient, divisor))
    differs = w.compare("slt", w.binary("xor", rest, divisor), zero)
    wrong = w.binary("and", differs, w.compare("ne", rest, zero))
    if function == "floordiv":
        return w.sub(quotient, w.convert("zext", wrong, "i64"))
    return w.select(wrong, w.add(rest, divisor), rest)


# ---- one per lane --------------------------------------------------------------------------------


def lane_stride(context: EmitContext, dim: Dim) -> Dim | None:
    """How ``dim`` grows from lane to lane: 0 where all lanes agree, None where the steps differ."""
    dim = substitute(dim, context.constants)
    if isinstance(dim, int) or context.vector is None:
        return 0
    total: Dim = 0
    for monomial, factor in dim.terms:
        stride = _monomial_stride(context, monomial)
        if stride is None:
            return None
        total = dim_add(total, dim_mul(stride, factor))
    return total


def _monomial_stride(context: EmitContext, monomial: Monomial) -> Dim | None:
    strides = [_atom_stride(context, atom) for atom in monomial]
    if None in strides:
        return None
    moving = [number for number, stride in enumerate(strides) if stride != 0]
    if not moving:
        return 0
    if len(moving) > 1:
        return None
    rest = from_terms({monomial[: moving[0]] + monomial[moving[0] + 1 :]: 1})
    stride = strides[moving[0]]
    assert stride is not None
    return dim_mul(stride, rest)


def _atom_stride(context: EmitContext, atom: Symbol | Call) -> Dim | None:
    assert context.vector is not None
    if isinstance(atom, Symbol):
        if atom.name == context.vector.name:
            return 1
        return None if _binding_operand(context, atom.name).lanes else 0
    left, right = lane_stride(context, atom.left), lane_stride(context, atom.right)
    if left == 0 and right == 0:
        return 0
    if right == 0 and left == 1 and _splits_between_vectors(context, atom):
        return {"floordiv": 0, "mod": 1}.get(atom.function)
    return None


def _splits_between_vectors(context: EmitContext, atom: Call) -> bool:
    """Whether no step of ``left // right`` falls between two lanes: right and lane 0's left are
    multiples of the lanes."""
    vector = context.vector
    if vector is None or not vector.aligned or not isinstance(atom.right, int) or atom.right <= 0:
        return False
    left = substitute(atom.left, context.constants)
    if coefficient(left, vector.name) != 1:
        return False
    return atom.right % vector.lanes == 0 and all(
        factor % vector.lanes == 0 or monomial == (Symbol(vector.name),)
        for monomial, factor in terms_of(left)
    )


def emit_lanes(context: EmitContext, dim: Dim) -> LlvmValue:
    """Write an index for every lane (a vector of i64)."""
    assert context.vector is not None
    lanes = context.vector.lanes
    dim = substitute(dim, context.constants)
    if isinstance(dim, int):
        return constant(dim, "i64", lanes)
    frame = context.frames[max(_depth(context, monomial) for monomial, _ in dim.terms)]
    key = ("lanes", context.vector.name, dim)
    known = frame.memo.get(key)
    if known is None:
        known = frame.memo[key] = _lanes_of(context, dim, lanes, frame.lines)
    return known


def _lanes_of(context: EmitContext, dim: Sum, lanes: int, lines: Lines) -> LlvmValue:
    w = context.writer
    stride = lane_stride(context, dim)
    if stride is not None:
        base, step = emit_index(context, dim), emit_index(context, stride)
        with w.at(lines):
            steps = w.binary("mul", w.splat(step, lanes), context.lane_numbers(lanes))
            return w.binary("add", w.splat(base, lanes), steps)
    uniform = {
        monomial: factor
        for monomial, factor in dim.terms
        if _monomial_stride(context, monomial) == 0
    }
    base = emit_index(context, from_terms(uniform))
    rest = [
        (factor, [_lane_atom(context, atom) for atom in monomial])
        for monomial, factor in dim.terms
        if monomial not in uniform
    ]
    with w.at(lines):
        total = w.splat(base, lanes)
        for factor, atoms in rest:
            product = constant(factor, "i64", lanes)
            for atom in atoms:
                product = w.binary("mul", product, atom)
            total = w.binary("add", total, product)
    return total


def _lane_atom(context: EmitContext, atom: Symbol | Call) -> LlvmValue:
    assert context.vector is not None
    lanes = context.vector.lanes
    if isinstance(atom, Symbol) and context.symbols[atom.name].operand.lanes:
        return context.symbols[atom.name].operand
    if isinstance(atom, Symbol):
        return emit_lanes(context, from_terms({(atom,): 1}))
    left, right = emit_lanes(context, atom.left), emit_lanes(context, atom.right)
    frame = context.frames[_depth(context, (atom,))]
    key = ("call", lanes, atom)
    known = frame.memo.get(key)
    if known is None:
        with context.writer.at(frame.lines):
            known = frame.memo[key] = _lane_call(context.writer, atom, left, right)
    return known


def _lane_call(w: Writer, atom: Call, left: LlvmValue, right: LlvmValue) -> LlvmValue:
    if atom.function in _INTRINSICS:
        return w.intrinsic(_INTRINSICS[atom.function], left, right)
    shift = _power_of_two(atom.right)
    if shift is not None:
        return _shifted(w, atom.function, left, shift)
    divisor = right if isinstance(atom.right, int) else _not_zero(w, right)
    # Vector units have no integer division; the f64 quotient rounds down right for magnitudes below
    # 2**51.
    quotient = w.binary("fdiv", _to_double(w, left), _to_double(w, divisor))
    result = _from_double(w, w.intrinsic("floor", quotient))
    if atom.function == "mod":
        result = w.binary("sub", left, w.binary("mul", result, divisor))
    return result if isinstance(atom.right, int) else _zero_if_zero(w, right, result)


def _to_double(w: Writer, value: LlvmValue) -> LlvmValue:
    biased = w.binary("add", value, constant(_MAGIC_BITS, "i64", value.lanes))
    return w.binary(
        "fsub", w.convert("bitcast", biased, "double"), constant(_MAGIC, "double", value.lanes)
    )


def _from_double(w: Writer, value: LlvmValue) -> LlvmValue:
    biased = w.binary("fadd", value, constant(_MAGIC, "double", value.lanes))
    return w.binary(
        "sub", w.convert("bitcast", biased, "i64"), constant(_MAGIC_BITS, "i64", value.lanes)
    )

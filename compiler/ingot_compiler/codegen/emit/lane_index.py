"""Index expressions in a vector loop: how they grow from lane to lane, and one number per lane.

In: a ``Dim`` and the context, with a vector variable. Out: strides, vectors of i64. Not done here:
one number for all lanes (``index``), addresses (``memory``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext, Vector
from ingot_compiler.codegen.emit.index import binding_operand, depth_of, emit_index
from ingot_compiler.codegen.emit.index_calls import emit_call
from ingot_compiler.codegen.emit.lanes import lane_numbers
from ingot_compiler.codegen.function_code import Code
from ingot_compiler.codegen.llvm_value import LlvmValue, constant, constants
from ingot_compiler.ir.dims import (
    Call,
    Dim,
    Monomial,
    Sum,
    Symbol,
    dim_add,
    dim_mul,
    from_terms,
    substitute,
    symbols_of,
    terms_of,
)
from ingot_compiler.ir.sizes.ranges import is_nonnegative
from ingot_compiler.ir.sizes.symbol_terms import coefficient


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


def is_stretch(stride: Dim) -> bool:
    """Whether a stride is that of an axis that only a run finds to be stretched: 0 where its size
    is 1, else 1; or a product of such. Of an axis without elements no lane is read."""
    if isinstance(stride, int) or len(stride.terms) != 1:
        return False
    ((atoms, factor),) = stride.terms
    return factor == 1 and all(map(_is_stretch, atoms))


def _is_stretch(atom: Symbol | Call) -> bool:
    if not isinstance(atom, Call) or (atom.function, atom.left) != ("min", 1):
        return False
    return is_nonnegative(dim_add(atom.right, 1))


def lone_mover(context: EmitContext, dim: Dim) -> tuple[Dim, Dim] | None:
    """What all lanes share of an index, and the one part, of factor 1, by which they differ; None of
    an index that has not one such part."""
    terms = terms_of(substitute(dim, context.constants))
    moving = [term for term in terms if _monomial_stride(context, term[0]) != 0]
    if len(moving) != 1 or moving[0][1] != 1:
        return None
    rest = {monomial: factor for monomial, factor in terms if monomial != moving[0][0]}
    return from_terms(rest), from_terms(dict(moving))


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
        return None if binding_operand(context, atom.name).lanes else 0
    left, right = lane_stride(context, atom.left), lane_stride(context, atom.right)
    if left == 0 and right == 0:
        return 0
    if right == 0 and left == 1 and _splits_between_vectors(context, atom):
        return {"floordiv": 0, "mod": 1}.get(atom.function)
    return None


def lane_repeat(context: EmitContext, dim: Dim) -> int | None:
    """How many lanes have the same index, where ``dim`` is one ``left // number`` beside what all
    lanes share, and a vector has whole runs of such lanes; else None."""
    terms = terms_of(substitute(dim, context.constants))
    moving = [term for term in terms if _monomial_stride(context, term[0]) != 0]
    vector = context.vector
    if vector is None or len(moving) != 1 or len(moving[0][0]) != 1 or moving[0][1] != 1:
        return None
    atom = moving[0][0][0]
    if not isinstance(atom, Call) or atom.function != "floordiv":
        return None
    times, left = atom.right, substitute(atom.left, context.constants)
    if not isinstance(times, int) or not 1 < times < vector.lanes or vector.lanes % times:
        return None
    own = (Symbol(vector.name),)
    is_whole = all(factor % times == 0 or monomial == own for monomial, factor in terms_of(left))
    return times if lane_stride(context, left) == 1 and is_whole else None


def known_places(context: EmitContext, dim: Dim) -> tuple[Dim, int, tuple[int, ...]] | None:
    """What all lanes share of an index that is clamped to ``[0, last]``, the last one, and what
    each lane that runs adds; None where these are not known numbers."""
    vector = context.vector
    if vector is None or vector.count is None or vector.first.integer is None:
        return None
    terms = terms_of(substitute(dim, context.constants))
    moving = [term for term in terms if _monomial_stride(context, term[0]) != 0]
    if len(moving) != 1 or moving[0][1] != 1:
        return None
    clamp = from_terms(dict(moving))
    lanes = range(vector.first.integer, vector.first.integer + vector.count)
    found = [substitute(clamp, {vector.name: lane}) for lane in lanes]
    known = tuple(place for place in found if isinstance(place, int))
    last = _last_of_clamp(moving[0][0])
    if last is None or len(known) < len(found):
        return None
    return from_terms({key: factor for key, factor in terms if key != moving[0][0]}), last, known


def _last_of_clamp(monomial: Monomial) -> int | None:
    """``last`` of ``max(0, min(last, index))``: all places up to it exist."""
    (outer, *others) = monomial
    if others or not isinstance(outer, Call) or (outer.function, outer.left) != ("max", 0):
        return None
    ((inner, *others), factor), *rest = terms_of(outer.right)
    if rest or others or factor != 1 or not isinstance(inner, Call) or inner.function != "min":
        return None
    return inner.left if isinstance(inner.left, int) else None


def _splits_between_vectors(context: EmitContext, atom: Call) -> bool:
    """Whether no step of ``left // right`` falls between two lanes: right and lane 0's left are
    multiples of the lanes."""
    vector = context.vector
    if vector is None or not isinstance(atom.right, int) or atom.right <= 0:
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
    numbers = _known_numbers(context.vector, dim)
    if numbers is not None:
        return constants(numbers, "i64")
    frame = context.frames[max(depth_of(context, monomial) for monomial, _ in dim.terms)]
    key = (f"{lanes} lanes", context.vector.name, dim)
    known = frame.memo.get(key)
    if known is None:
        known = frame.memo[key] = _lanes_of(context, dim, lanes, frame.lines)
    return known


def _known_numbers(vector: Vector, dim: Dim) -> list[int] | None:
    """One number per lane, where the first lane is a known one and nothing else is asked for."""
    first = vector.first.integer
    if first is None or set(symbols_of(dim)) != {vector.name}:
        return None
    found = [substitute(dim, {vector.name: first + lane}) for lane in range(vector.lanes)]
    return [number for number in found if isinstance(number, int)]


def _lanes_of(context: EmitContext, dim: Sum, lanes: int, lines: Code) -> LlvmValue:
    stride = lane_stride(context, dim)
    if stride is None:
        return _sum_of_lanes(context, dim, lanes, lines)
    w, base, step = context.writer, emit_index(context, dim), emit_index(context, stride)
    with w.at(lines):
        steps = w.binary("mul", w.splat(step, lanes), lane_numbers(lanes))
        return w.binary("add", w.splat(base, lanes), steps)


def _sum_of_lanes(context: EmitContext, dim: Sum, lanes: int, lines: Code) -> LlvmValue:
    """Add the terms that differ between lanes to what all lanes share."""
    w, uniform, varying = context.writer, dict[Monomial, int](), list[tuple[Monomial, int]]()
    for monomial, factor in dim.terms:
        if _monomial_stride(context, monomial) == 0:
            uniform[monomial] = factor
        else:
            varying.append((monomial, factor))
    base = emit_index(context, from_terms(uniform))
    products = [
        (factor, [_lane_atom(context, atom) for atom in monomial]) for monomial, factor in varying
    ]
    with w.at(lines):
        total = w.splat(base, lanes)
        for factor, atoms in products:
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
    frame = context.frames[depth_of(context, (atom,))]
    key = ("call", lanes, atom)
    known = frame.memo.get(key)
    if known is None:
        with context.writer.at(frame.lines):
            known = frame.memo[key] = emit_call(context, atom, left, right)
    return known

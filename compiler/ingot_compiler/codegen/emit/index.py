"""Index expressions to i64 code, each written once at the frame where its last symbol is bound.

In: a ``Dim`` and the context. Out: an i64 operand: one number, in a vector loop that of lane 0. Not
done here: one number per lane (``lane_index``), ``floordiv`` and ``mod`` (``index_calls``),
addresses (``memory``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.index_calls import emit_call
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import (
    Call,
    Dim,
    Monomial,
    Symbol,
    from_terms,
    substitute,
    symbols_of_product,
)
from ingot_compiler.ir.errors import InternalError


def emit_index(context: EmitContext, dim: Dim) -> LlvmValue:
    """Write an index; inside a vector loop the value for lane 0."""
    dim = substitute(dim, context.constants)
    if isinstance(dim, int):
        return i64(dim)
    by_depth: dict[int, list[tuple[Monomial, int]]] = {}
    for term in dim.terms:
        by_depth.setdefault(depth_of(context, term[0]), []).append(term)
    total = ZERO
    done: dict[Monomial, int] = {}
    for depth, terms in sorted(by_depth.items()):
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
            total = context.writer.add(total, context.writer.mul(product, i64(factor)))
    frame.memo[partial] = total
    return total


def _product(context: EmitContext, monomial: Monomial) -> LlvmValue:
    if not monomial:
        return i64(1)
    frame = context.frames[max(depth_of(context, monomial), 0)]
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
        operand = binding_operand(context, atom.name)
        frame = context.frames[context.symbols[atom.name].depth]
        with context.writer.at(frame.lines):
            return context.writer.extract(operand, 0)
    frame = context.frames[max(depth_of(context, (atom,)), 0)]
    known = frame.memo.get(atom)
    if known is None:
        left, right = emit_index(context, atom.left), emit_index(context, atom.right)
        with context.writer.at(frame.lines):
            known = emit_call(context, atom, left, right)
        frame.memo[atom] = known
    return known


def binding_operand(context: EmitContext, name: str) -> LlvmValue:
    """The value of a symbol in scope, with lanes if it differs between them.

    Raises:
        InternalError: no loop of the program binds the symbol.
    """
    if name not in context.symbols:
        raise InternalError(
            f"symbol {name} is not bound in a loop program", why=f"bound: {sorted(context.symbols)}"
        )
    return context.symbols[name].operand


def depth_of(context: EmitContext, monomial: Monomial) -> int:
    """The innermost frame that binds one of the symbols; -1 for the constant term (folded last by
    the sum)."""
    depth = -1
    for name in symbols_of_product(monomial):
        binding_operand(context, name)
        depth = max(depth, context.symbols[name].depth)
    return depth

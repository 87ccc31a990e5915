"""Sizes as instructions.

In: a ``Dim``, the values of its symbols. Out: instructions that compute an i64. Not done here:
indices, which the function of a kernel computes itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.codegen.instructions import Instructions
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import Call, Dim, Symbol, terms_of

_OPCODES = {"floordiv": "udiv", "mod": "urem"}


def emit_dim(w: Instructions, dim: Dim, symbols: Mapping[str, LlvmValue]) -> LlvmValue:
    """Write a size, at least 0, whose divisors are not 0."""
    total: LlvmValue | None = None
    for monomial, factor in terms_of(dim):
        product = constant(factor, "i64")
        for atom in monomial:
            product = w.binary("mul", product, _atom(w, atom, symbols))
        total = product if total is None else w.binary("add", total, product)
    return total or constant(0, "i64")


def _atom(w: Instructions, atom: Symbol | Call, symbols: Mapping[str, LlvmValue]) -> LlvmValue:
    if isinstance(atom, Symbol):
        return symbols[atom.name]
    left, right = (emit_dim(w, each, symbols) for each in (atom.left, atom.right))
    if atom.function in _OPCODES:
        return w.binary(_OPCODES[atom.function], left, right)
    if atom.function != "broadcast":
        return w.intrinsic(f"s{atom.function}", left, right)
    some = w.intrinsic("smin", w.intrinsic("smin", left, right), constant(1, "i64"))
    return w.binary("mul", w.intrinsic("smax", left, right), some)

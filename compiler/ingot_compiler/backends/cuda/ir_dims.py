"""Sizes as instructions of LLVM IR.

In: a ``Dim``, the names of its symbols. Out: lines that compute an i64. Not done here: indices,
which the function of a kernel computes itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.ir.dims import Call, Dim, Symbol, terms_of

_OPCODES = {"floordiv": "udiv", "mod": "urem"}
_EXTREMES = {"max": "smax", "min": "smin"}


def dim_lines(dim: Dim, names: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the lines that compute a size, at least 0, whose divisors are not 0, and its name or
    number."""
    lines: list[str] = []
    return lines, _sum(dim, names, lines)


def _sum(dim: Dim, names: Mapping[str, str], lines: list[str]) -> str:
    total = "0"
    for monomial, factor in terms_of(dim):
        product = str(factor)
        for atom in monomial:
            product = _define(lines, f"mul i64 {product}, {_atom(atom, names, lines)}")
        total = product if total == "0" else _define(lines, f"add i64 {total}, {product}")
    return total


def _atom(atom: Symbol | Call, names: Mapping[str, str], lines: list[str]) -> str:
    if isinstance(atom, Symbol):
        return names[atom.name]
    left, right = (_sum(each, names, lines) for each in (atom.left, atom.right))
    if atom.function in _OPCODES:
        return _define(lines, f"{_OPCODES[atom.function]} i64 {left}, {right}")
    if atom.function != "broadcast":
        return _extreme(lines, atom.function, left, right)
    some = _extreme(lines, "min", _extreme(lines, "min", left, right), "1")
    return _define(lines, f"mul i64 {_extreme(lines, 'max', left, right)}, {some}")


def _extreme(lines: list[str], function: str, left: str, right: str) -> str:
    return _define(lines, f"call i64 @llvm.{_EXTREMES[function]}.i64(i64 {left}, i64 {right})")


def _define(lines: list[str], text: str) -> str:
    name = f"%d{len(lines)}"
    lines.append(f"  {name} = {text}")
    return name

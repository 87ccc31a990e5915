"""Replaces index expressions in statements.

In: statements, values, tuples of them; what becomes of an expression. Out: the same with each index
and extent rewritten. Not done here: names that loops bind, which stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from ingot_compiler.ir.dims import Dim, Sum, substitute

T = TypeVar("T")


def substitute_indices(item: T, bindings: Mapping[str, Dim]) -> T:
    """Replace symbols in every ``Dim`` inside of nested tuples and dataclasses."""
    return rewrite_indices(item, lambda dim: substitute(dim, bindings))


def rewrite_indices(item: T, rewrite: Callable[[Sum], Dim]) -> T:
    """Rewrite every ``Dim`` inside of nested tuples and dataclasses that is no number."""
    made: Any = item
    if isinstance(item, Sum):
        made = rewrite(item)
    elif isinstance(item, tuple):
        parts = cast("tuple[Any, ...]", item)
        made = tuple(rewrite_indices(part, rewrite) for part in parts)
    elif is_dataclass(item) and not isinstance(item, type):
        values = ((each.name, getattr(item, each.name)) for each in fields(item))
        made = replace(item, **{name: rewrite_indices(part, rewrite) for name, part in values})
    return cast("T", made)

"""Other index expressions in statements.

In: statements, values, tuples of them; what some symbols become. Out: the same with each index and
extent rewritten. Not done here: names that loops bind, which stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from ingot_compiler.ir.dims import Dim, Sum, substitute

T = TypeVar("T")


def substitute_indices(item: T, bindings: Mapping[str, Dim]) -> T:
    """Rewrite every ``Dim`` inside of nested tuples and dataclasses."""
    made: Any = item
    if isinstance(item, Sum):
        made = substitute(item, bindings)
    elif isinstance(item, tuple):
        parts = cast("tuple[Any, ...]", item)
        made = tuple(substitute_indices(part, bindings) for part in parts)
    elif is_dataclass(item) and not isinstance(item, type):
        values = ((each.name, getattr(item, each.name)) for each in fields(item))
        made = replace(item, **{name: substitute_indices(part, bindings) for name, part in values})
    return cast("T", made)

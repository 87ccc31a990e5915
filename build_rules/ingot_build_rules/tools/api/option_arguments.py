"""The options of a compilation as arguments of a function that takes them by ``**options``.

In: a function. Out: the same one, whose signature and help name each of them. Not done here: what
they are (``options.option_rows``).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ingot_build_rules.making.options.option_rows import (
    NOTHING_GIVEN,
    ROWS,
    OptionRow,
    ValueType,
    by_field,
    require_keywords,
)

P = ParamSpec("P")
Result = TypeVar("Result")
_BEFORE = "\n    Raises:"
_TYPES: dict[ValueType, str] = {
    "flag": "bool",
    "text": "str",
    "texts": "str | Sequence[str]",
    "pairs": "Mapping[str, str] | None",
    "places": "Mapping[str, str] | str | None",
    "shapes": "Shapes | None",
}


def names_options(function: Callable[P, Result]) -> Callable[P, Result]:
    """Give a function, whose ``**options`` are ``CompileKeywords``, its whole signature."""
    own = inspect.signature(function)
    kept = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            field,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(ROWS[field].value_type, value),
            annotation=_TYPES[ROWS[field].value_type],
        )
        for field, value in by_field(NOTHING_GIVEN).items()
    ]
    signature = own.replace(parameters=[*kept, *added])

    @functools.wraps(function)
    def checked(*arguments: P.args, **named: P.kwargs) -> Result:
        require_keywords(function.__name__, named, signature.parameters)
        return function(*arguments, **named)

    lines = "".join(f"        {field}: {_said(row)}.\n" for field, row in ROWS.items())
    text = (function.__doc__ or "").replace(_BEFORE, f"{lines}{_BEFORE}", 1)
    checked.__doc__ = text
    checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked


def _default(value_type: ValueType, value: Any) -> object:
    """One text stands for a list of it, None for a table without entries."""
    if value_type == "texts":
        return value[0] if value else ()
    return value if value_type in ("flag", "text") else None


def _said(row: OptionRow) -> str:
    words = ", ".join(f'"{word}"' for word in row.words)
    return f"{row.meaning}: {words}" if words else row.meaning

"""The options of one value each as arguments of a function that takes them by ``**choices``.

In: a function. Out: the same one, whose signature and help name each of them. Not done here: what
they are (``rules.choices``).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ingot_build_rules.rules.choices import DEFAULTS, ROWS, ChoiceRow, require_keywords

P = ParamSpec("P")
Result = TypeVar("Result")
_BEFORE = "\n    Raises:"


def names_choices(function: Callable[P, Result]) -> Callable[P, Result]:
    """Give a function, whose ``**choices`` are ``ChoiceKeywords``, its whole signature."""
    own = inspect.signature(function)
    kept = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            field,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=type(default).__name__,
        )
        for field, default in DEFAULTS._asdict().items()
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


def _said(row: ChoiceRow) -> str:
    words = ", ".join(f'"{word}"' for word in row.words)
    return f"{row.meaning}: {words}" if words else row.meaning

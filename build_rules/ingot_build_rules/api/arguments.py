"""Arguments of ``ingot.compile`` as people write them, in the one form that compiling reads.

In: values of Python. Out: the same as texts, tuples and dicts, or ``UserError``. Not done here:
what they mean (``compilation.options``).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, cast

from ingot_build_rules.compilation.options import read_sizes
from ingot_compiler.ir.errors import UserError

Sizes = str | Sequence[int]


def read_targets(targets: object) -> tuple[str, ...]:
    """Read the targets: one text is one target.

    Raises:
        UserError: no texts.
    """
    if isinstance(targets, str):
        return (targets,)
    found = _items(targets)
    if found is None or not all(isinstance(target, str) for target in found):
        raise _wrong("targets", "texts, such as ['x86-64-v3', 'x86-64-v4']", targets)
    return cast("tuple[str, ...]", found)


def read_shapes(shapes: object) -> dict[str, tuple[int, ...]]:
    """Read the sizes of each input: numbers, or a text such as ``1x3x224x224``.

    Raises:
        UserError: no dict, or no sizes in it.
    """
    given = _dict("shapes", "{'x': (1, 3, 224, 224)}", shapes)
    return {name: _sizes(name, sizes) for name, sizes in given.items()}


def read_texts(argument: str, example: str, given: object) -> dict[str, str]:
    """Read a dict of texts.

    Raises:
        UserError: anything else; it shows ``example``.
    """
    texts = _dict(argument, example, given)
    if not all(isinstance(text, str) for text in texts.values()):
        raise _wrong(argument, f"a dict of texts, such as {example}", given)
    return cast("dict[str, str]", texts)


def read_count(argument: str, given: object, least: int) -> int:
    """Read a whole number of at least ``least``.

    Raises:
        UserError: anything else.
    """
    count = _whole(given)
    if count is None or count < least:
        raise _wrong(argument, f"a whole number from {least}", given)
    return count


def read_check(given: object) -> bool | Mapping[str, Any]:
    """Read whether to check a bundle, or on which inputs.

    Raises:
        UserError: neither a truth value nor a dict.
    """
    if isinstance(given, bool):
        return given
    if not isinstance(given, Mapping):
        raise _wrong("check", "True, False or a dict of arrays by input name", given)
    return cast("Mapping[str, Any]", given)


def _sizes(name: str, given: object) -> tuple[int, ...]:
    where = f"shapes[{name!r}]"
    if isinstance(given, str):
        try:
            return read_sizes(given)
        except ValueError as error:
            do = "write 1x3x224x224, or (1, 3, 224, 224)"
            raise UserError("wrong sizes", f"argument {where}", str(error), do) from None
    items = _items(given)
    sizes = None if items is None else tuple(map(_whole, items))
    if sizes is None or None in sizes:
        raise _wrong(where, "sizes, such as (1, 3, 224, 224) or '1x3x224x224'", given)
    return cast("tuple[int, ...]", sizes)


def _items(given: object) -> tuple[object, ...] | None:
    """What can be gone through, item by item; None for anything else."""
    return tuple(cast("Iterable[object]", given)) if isinstance(given, Iterable) else None


def _whole(value: object) -> int | None:
    """A whole number of any type, but no truth value."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    return operator.index(value)


def _dict(argument: str, example: str, given: object) -> dict[str, object]:
    if not isinstance(given, Mapping | None):
        raise _wrong(argument, f"a dict, such as {example}", given)
    table = dict(cast("Mapping[object, object]", given or {}))
    if not all(isinstance(name, str) for name in table):
        raise _wrong(argument, f"a dict with texts as keys, such as {example}", table)
    return cast("dict[str, object]", table)


def _wrong(argument: str, expected: str, got: object) -> UserError:
    what, where = f"wrong {argument.partition('[')[0]}", f"argument {argument}"
    why = f"expected {expected}, got {got!r}"
    return UserError(what, where, why, f"give {expected}")

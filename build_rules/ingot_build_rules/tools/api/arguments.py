"""Arguments of ``ingot.compile`` as people write them, in the one form that compiling reads.

In: values of Python. Out: the same as texts, tuples and dicts, or ``UserError``. Not done here:
what they mean (``options.options``).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, cast

from ingot_build_rules.making.options.compile_options import AUTO
from ingot_build_rules.making.options.option_rows import ROWS, GivenOptions, given_options
from ingot_compiler.backends.target_forms import GivenTarget, GivenTargets
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.sizes.given_shape import shape_text


def read_given(said: Mapping[str, object]) -> GivenOptions:
    """Read options by field.

    Raises:
        UserError: a value that is none of its option.
    """
    return given_options({field: _read_option(field, value) for field, value in said.items()})


def _read_option(field: str, given: object) -> object:
    value_type = ROWS[field].value_type
    if field == "targets":
        return read_targets(given)
    if value_type == "shapes":
        return read_shapes(given)
    if value_type == "places":
        return _place(given)
    if value_type == "texts":
        return _texts(field, f"texts, such as {_example(field)}", given)
    if value_type == "pairs":
        return tuple(_dict_of_texts(field, given).items())
    return os.fspath(cast("os.PathLike[str]", given)) if hasattr(given, "__fspath__") else given


def _example(field: str) -> object:
    """A value as Python writes it."""
    import tomllib

    return tomllib.loads(f"it = {ROWS[field].example}")["it"]


def read_targets(targets: object) -> GivenTargets:
    """Read the targets: one text is one target, a list has several, each a text or a table of
    attributes, and a dict has them by name.

    Raises:
        UserError: no targets.
    """
    if isinstance(targets, str):
        return (targets,)
    if isinstance(targets, Mapping):
        named = _dict("targets", "{'edge': 'x86-64-v2'}", cast("object", targets))
        return dict(zip(named, _targets(named.values(), named), strict=True))
    return _targets(_items(targets), targets)


def _targets(given: Iterable[object] | None, whole: object) -> tuple[GivenTarget, ...]:
    found = () if given is None else tuple(given)
    if given is None or not all(isinstance(target, str | Mapping) for target in found):
        raise _wrong("targets", "texts, such as ['x86-64-v3', 'x86-64-v4']", whole)
    return cast("tuple[GivenTarget, ...]", found)


def _texts(argument: str, expected: str, given: object) -> tuple[str, ...]:
    """One text, or several."""
    if isinstance(given, str):
        return (given,)
    found = _items(given)
    if found is None or not all(isinstance(item, str) for item in found):
        raise _wrong(argument, expected, given)
    return cast("tuple[str, ...]", found)


def read_shapes(shapes: object) -> list[dict[str, str]]:
    """Read shapes by input name, or a list of such dicts; each shape as ``1x3x224x224``.

    Raises:
        UserError: no dict, or no shapes in it.
    """
    given = [_dict("shapes", "{'x': (1, 3, 224, 224)}", each) for each in _profiles(shapes)]
    return [{name: _shape(name, shape) for name, shape in each.items()} for each in given]


def _dict_of_texts(argument: str, given: object) -> dict[str, str]:
    example = str(_example(argument))
    texts = _dict(argument, example, given)
    if not all(isinstance(text, str) for text in texts.values()):
        raise _wrong(argument, f"a dict of texts, such as {example}", given)
    return cast("dict[str, str]", texts)


def _place(given: object) -> tuple[tuple[str, str], ...]:
    """A dict of devices by glob; ``auto`` is for all nodes."""
    return (("*", AUTO),) if given == AUTO else tuple(_dict_of_texts("place", given).items())


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


def _profiles(shapes: object) -> Sequence[object]:
    """The dicts of a list, or what is to be one."""
    if not isinstance(shapes, list | tuple):
        return [shapes]
    items = cast("Sequence[object]", shapes)
    return items if items and all(isinstance(item, Mapping) for item in items) else [items]


def _shape(name: str, given: object) -> str:
    where = f"argument shapes[{name!r}]"
    try:
        return shape_text(given if isinstance(given, str) else _plain_sizes(given))
    except ValueError as error:
        do = "write 1x3x224x224, or (1, 3, 224, 224); None is any size, (1, 8) a range"
        raise UserError("wrong shapes", where, str(error), do) from None


def _plain_sizes(given: object) -> object:
    """Whole numbers of any type as Python's own, also those of ranges."""
    items = _items(given)
    if items is None:
        return given
    return [_plain(item) for item in items]


def _plain(size: object) -> object:
    if isinstance(size, tuple):
        return tuple(map(_whole, cast("tuple[object, ...]", size)))
    whole = _whole(size)
    return size if whole is None else whole


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

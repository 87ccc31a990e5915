"""Every form that a target may be given in: a text, a tag, a table of attributes, such a table as
JSON.

In: what a user gives. Out: a ``Target``. Not done here: what a text means (the hook
``parse_target`` of a back end), ``native`` (only the build machine knows it).

A table is written out as the text that it stands for, so that a back end has one parser.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import cast

from ingot_compiler.backends.backend import Backend, Target, TargetAttribute
from ingot_compiler.backends.registry import backend_of, parse_target
from ingot_compiler.backends.tags.read_tags import tags_of
from ingot_compiler.ir.errors import UserError

GivenTarget = str | Mapping[str, object]
GivenTargets = Sequence[GivenTarget] | Mapping[str, GivenTarget]
"""Several, perhaps by name."""
_KIND = "kind"
_SEPARATORS = ":+"


def read_target(kind: str, given: GivenTarget, host_targets: Sequence[str] = ()) -> Target:
    """Read a target of a kind of device, in any form; "" where none was given.

    Raises:
        UserError: an attribute that there is not, one that follows from others, one twice, one of
            another type; a text that is no target.
    """
    return parse_target(kind, target_text(kind, given), tuple(host_targets))


def target_text(kind: str, given: GivenTarget) -> str:
    """Return the text of a target in any form; see `read_target`."""
    backend = backend_of(kind)
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        return tags_of(backend.tags).get(given, given)
    where = f"target {given if isinstance(given, str) else json.dumps(dict(given), default=str)}"
    table = _parsed(given, where) if isinstance(given, str) else given
    return "".join(_written(backend, table, where))


def _parsed(text: str, where: str) -> Mapping[str, object]:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise UserError(
                    f"attribute {name!r} is given twice", where, "expected it once", "leave one out"
                )
        return dict(pairs)

    try:
        found: object = json.loads(text, object_pairs_hook=unique)
    except ValueError as error:
        raise UserError("a target is not understood", where, str(error), "write JSON") from None
    return cast("Mapping[str, object]", found)


def _written(backend: Backend, table: Mapping[str, object], where: str) -> list[str]:
    names = [attribute.name for attribute in backend.attributes]
    for name in table:
        if name not in (_KIND, *names):
            raise _unknown(name, backend, where)
    if table.get(_KIND, backend.kind) != backend.kind:
        why = f"expected {backend.kind!r}, got {table[_KIND]!r}"
        raise UserError("a target of another kind", where, why, "leave 'kind' out")
    first = backend.attributes[0]
    if first.name not in table:
        why = f"expected for example {first.name} = {first.example!r}"
        raise UserError(f"a target without {first.name!r}", where, why, f"add {first.name!r}")
    given = [attribute for attribute in backend.attributes if attribute.name in table]
    return [text for each in given for text in _values(each, table[each.name], where)]


def _unknown(name: str, backend: Backend, where: str) -> UserError:
    names = [attribute.name for attribute in backend.attributes]
    if name in backend.derived:
        why = f"it follows from {', '.join(names)}"
        return UserError(f"attribute {name!r} cannot be given", where, why, "leave it out")
    close = difflib.get_close_matches(name, names, n=1)
    do = f"did you mean {close[0]!r}?" if close else "leave it out"
    why = f"expected {', '.join(names)}" if names else f"{backend.kind} targets have no attributes"
    return UserError(f"unknown attribute {name!r} of a target", where, why, do)


def _values(attribute: TargetAttribute, given: object, where: str) -> list[str]:
    items: object = given if attribute.is_list else [given]
    is_list = isinstance(items, list | tuple)
    if not is_list or not all(map(_is_value, cast("list[object]", items))):
        example = f"[{attribute.example!r}]" if attribute.is_list else repr(attribute.example)
        expected = "a list of texts" if attribute.is_list else "a text"
        why = f"expected {expected}, such as {example}, got {given!r}"
        what = f"wrong value of attribute {attribute.name!r}"
        raise UserError(what, where, why, "correct it")
    return [_signed(attribute, item) for item in cast("list[str]", items)]


def _is_value(item: object) -> bool:
    """Texts that are no more than one attribute when they are written out."""
    if not isinstance(item, str):
        return False
    bare = item[1:] if item[:1] in ("+", "-") else item
    return bool(bare) and not any(sign in bare for sign in _SEPARATORS)


def _signed(attribute: TargetAttribute, item: str) -> str:
    """``features`` may take some away: ``-fma``; and what has its sign keeps it."""
    return item if attribute.is_list and item[0] in "+-" else attribute.prefix + item

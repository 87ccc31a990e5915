"""Why an action ran: which of its ingredients is another one than last time, and who made it.

In: traces of two builds of one target. Out: for each action that ran its ``Reason``. Not done here:
what is different inside an artifact (who knows its meaning says that), printing.

An action is compared with the one of the same rule and label, else with one of the same rule whose
label is like its own.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from ingot_build_rules.engine.actions.key import LOADED, Ingredient
from ingot_build_rules.engine.events.trace_file import TargetTrace, TracedAction
from ingot_runtime.lazy_dataclass import dataclass

_MAKERS_MAX = 3
_ALIKE = 0.5
_ALIKE_COUNT_MAX = 200
_OF_RULES = ("rule", "version", "code")
_CODE = (LOADED, "tool ")
Code = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""Rule, or module that actions load by its name -> (file, digest) of its code."""
Files = tuple[tuple[str, str, str], ...]
"""(file, old digest, new digest)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One ingredient: digests and, for short values, texts; ``maker``: the action that made the new
    one, "" where it comes from outside; ``old_parts`` and ``new_parts``: digests of artifacts that
    are only in one of the two."""

    name: str
    old: str
    new: str
    old_text: str = ""
    new_text: str = ""
    maker: str = ""
    old_parts: tuple[str, ...] = ()
    new_parts: tuple[str, ...] = ()
    files: Files = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why ``action`` ran: ``kind`` is ``changed``, ``new`` (no action like it before: every
    ingredient of its own is a change) or ``lost`` (the same key as before, and the cache has no
    result)."""

    action: TracedAction
    kind: str
    changes: tuple[Change, ...] = ()
    before: TracedAction | None = None


def explain(old: TargetTrace | None, new: TargetTrace, files: Mapping[str, Files]) -> list[Reason]:
    """Return the reason of every action of ``new`` that ran; ``files``: rule or loaded module ->
    files of its code that are other ones."""
    ran = [item for item in new.actions if item.status in ("ran", "failed")]
    before = _counterparts(old.actions if old else (), new.actions)
    makers: dict[str, str] = {}
    for item in new.actions:  # an artifact that goes through several actions was made by the first
        for ref in item.refs:
            makers.setdefault(ref, name_of(item))
    return [_reason(item, before.get(item.key), makers, files) for item in ran]


def name_of(item: TracedAction) -> str:
    """What people call an action."""
    return f"{item.rule} ({item.label})" if item.label else item.rule


def changed_files(old: Code, new: Code) -> dict[str, Files]:
    """Return for each rule and each loaded module the files of its code that differ."""
    before = {rule: dict(files) for rule, files in old}
    changed: dict[str, Files] = {}
    for rule, files in new:
        was, now = before.get(rule, {}), dict(files)
        names = sorted(name for name in was | now if was.get(name) != now.get(name))
        changed[rule] = tuple((name, was.get(name, ""), now.get(name, "")) for name in names)
    return changed


def _counterparts(
    old: Sequence[TracedAction], new: Sequence[TracedAction]
) -> dict[str, TracedAction]:
    """Key of a new action -> the old one that it stands for."""
    left = {(item.rule, item.label): item for item in reversed(old)}
    found = {
        item.key: left.pop((item.rule, item.label))
        for item in new
        if (item.rule, item.label) in left
    }
    for rule in dict.fromkeys(item.rule for item in new if item.key not in found):
        others = [item for item in reversed(left.values()) if item.rule == rule]
        for item in (item for item in new if item.rule == rule and item.key not in found):
            index = _most_alike(item.label, [other.label for other in others])
            if index is not None:
                found[item.key] = others.pop(index)
    return found


def _most_alike(label: str, others: Sequence[str]) -> int | None:
    if (
        len(others) > _ALIKE_COUNT_MAX
    ):  # comparing texts is slow; labels come in the order of the build
        return 0
    close = difflib.get_close_matches(label, others, 1, _ALIKE)
    return others.index(close[0]) if close else None


def _reason(
    item: TracedAction,
    before: TracedAction | None,
    makers: Mapping[str, str],
    files: Mapping[str, Files],
) -> Reason:
    old = {part.name: part for part in _parts(before)} if before else {}
    changes: list[Change] = []
    for part in _parts(item):
        was = old.get(part.name, Ingredient(part.name, ""))
        of_rule = part.name in _OF_RULES or part.name.startswith(_CODE)
        if was.digest != part.digest and (before is not None or not of_rule):
            changes.append(_change(was, part, makers, files.get(_code(item, part), ())))
    if before is None:  # what makes it another one than all before is what others made for it
        changes = [change for change in changes if change.maker] or changes
    return Reason(
        item, "new" if before is None else "changed" if changes else "lost", tuple(changes), before
    )


def _code(item: TracedAction, part: Ingredient) -> str:
    """What the files of an ingredient are known by; "" where it is no code."""
    if part.name.startswith(LOADED):
        return part.name.removeprefix(LOADED)
    return item.rule if part.name == "code" else ""


def _parts(item: TracedAction) -> list[Ingredient]:
    """What an action was made from, and what it found while running."""
    return [*item.ingredients, *(Ingredient(f"read {name}", digest) for name, digest in item.reads)]


def _change(was: Ingredient, part: Ingredient, makers: Mapping[str, str], files: Files) -> Change:
    fresh = tuple(digest for digest in part.parts if digest not in set(was.parts))
    gone = tuple(digest for digest in was.parts if digest not in set(part.parts))
    names = list(dict.fromkeys(makers[digest] for digest in fresh if digest in makers))
    more = [f"{len(names) - _MAKERS_MAX} more"] if len(names) > _MAKERS_MAX else []
    maker = ", ".join([*names[:_MAKERS_MAX], *more])
    return Change(
        part.name, was.digest, part.digest, was.text, part.text, maker, gone, fresh, files
    )

"""Why an action ran: which of its ingredients is another one than last time, and who made it.

In: traces of two builds of one target. Out: for each action that ran its ``Reason``. Not done here: what is different inside an
artifact (who knows its meaning says that), printing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingot_build_rules.engine.key import Ingredient
from ingot_build_rules.engine.trace_file import TargetTrace, TracedAction


@dataclass(frozen=True, slots=True)
class Change:
    """One ingredient: digests and, for short values, texts; ``maker``: the action that made the new one, "" where it comes
    from outside; ``old_parts`` and ``new_parts``: digests of artifacts that are only in one of the two."""

    name: str
    old: str
    new: str
    old_text: str = ""
    new_text: str = ""
    maker: str = ""
    old_parts: tuple[str, ...] = ()
    new_parts: tuple[str, ...] = ()
    files: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why ``action`` ran: ``kind`` is ``changed`` (with ``changes``), ``new`` (no action like it before) or ``lost`` (the same
    key as before, and the cache has no result)."""

    action: TracedAction
    kind: str
    changes: tuple[Change, ...] = ()
    before: TracedAction | None = None


def explain(old: TargetTrace | None, new: TargetTrace) -> list[Reason]:
    """Return the reason of every action of ``new`` that ran."""
    before = _by_place(old.actions if old else ())
    makers: dict[str, str] = {}
    for item in new.actions:  # an artifact that goes through several actions was made by the first
        for ref in item.refs:
            makers.setdefault(ref, _name(item))
    files = _changed_files(old, new)
    return [
        _reason(item, before.get((item.rule, item.label)), makers, files)
        for item in new.actions
        if item.how in ("ran", "failed")
    ]


def _by_place(actions: Sequence[TracedAction]) -> dict[tuple[str, str], TracedAction]:
    return {(item.rule, item.label): item for item in reversed(actions)}


def _name(item: TracedAction) -> str:
    return f"{item.rule} ({item.label})" if item.label else item.rule


def _reason(
    item: TracedAction,
    before: TracedAction | None,
    makers: Mapping[str, str],
    files: Mapping[str, tuple[tuple[str, str, str], ...]],
) -> Reason:
    if before is None:
        return Reason(item, "new")
    old = {part.name: part for part in (*before.ingredients, *_found(before))}
    changes: list[Change] = []
    for part in (*item.ingredients, *_found(item)):
        was = old.get(part.name, Ingredient(part.name, ""))
        if was.digest != part.digest:
            changes.append(_change(was, part, makers, files.get(item.rule, ()) if part.name == "code" else ()))
    return Reason(item, "changed" if changes else "lost", tuple(changes), before)


def _found(item: TracedAction) -> list[Ingredient]:
    return [Ingredient(f"read {name}", digest) for name, digest in item.reads]


def _change(
    was: Ingredient, part: Ingredient, makers: Mapping[str, str], files: tuple[tuple[str, str, str], ...]
) -> Change:
    fresh = tuple(digest for digest in part.parts if digest not in set(was.parts))
    gone = tuple(digest for digest in was.parts if digest not in set(part.parts))
    maker = ", ".join(dict.fromkeys(makers[digest] for digest in fresh if digest in makers))
    return Change(part.name, was.digest, part.digest, was.text, part.text, maker, gone, fresh, files)


def _changed_files(old: TargetTrace | None, new: TargetTrace) -> dict[str, tuple[tuple[str, str, str], ...]]:
    """Rule -> (file, old digest, new digest) of its code."""
    before = {rule: dict(files) for rule, files in (old.code if old else ())}
    changed: dict[str, tuple[tuple[str, str, str], ...]] = {}
    for rule, files in new.code:
        was, now = before.get(rule, {}), dict(files)
        changed[rule] = tuple(
            (name, was.get(name, ""), now.get(name, "")) for name in sorted(was | now) if was.get(name) != now.get(name)
        )
    return changed

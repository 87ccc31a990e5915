"""Differences as people read them: short digests, only what is different of long texts, attributes
by their names.

In: differences, pairs of texts. Out: text. Not done here: finding differences
(``engine.events.differ``).
"""

from __future__ import annotations

import re
from typing import Any

from ingot_build_rules.engine.events.differ import Difference, equal_count

_DIGITS = 12
_TEXT_MAX = 80
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_FIELD = re.compile(r" ?\w+=")
_FIELD_MAX = 60
_ENDS = "(,)"


def short(digest: str) -> str:
    """Return the beginning of a digest."""
    return digest[:_DIGITS] or "nothing"


def short_texts(old: str, new: str) -> tuple[str, str] | None:
    """Return the parts of two texts that differ; None where they show no difference, or one is not
    known."""
    if not new or old == new:
        return None
    if old and max(len(old), len(new)) > _TEXT_MAX:
        old, new = _differing(old, new)
    return _cut(old or "nothing"), _cut(new)


def difference_text(item: Difference, value: Any) -> str:
    """Return ``PATH: OLD -> NEW``; ``value`` is the new value that the path leads into."""
    return f"{_path_text(item.path, value)}: {value_text(item.old)} -> {value_text(item.new)}"


def value_text(value: object) -> str:
    """Return a value as a short text."""
    return _cut("nothing" if value is None else str(value))


def _cut(text: str) -> str:
    text = _DIGEST.sub(lambda found: found[0][:_DIGITS], text)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


def _differing(old: str, new: str) -> tuple[str, str]:
    """Leave out what two texts have in common before and behind, up to a whole part of a list or
    field of a class."""
    shorter = min(len(old), len(new))
    start = equal_count(old, new, shorter)
    while start and old[start - 1] not in _ENDS:
        start -= 1
    fields = [found.start() for found in _FIELD.finditer(old, max(0, start - _FIELD_MAX), start)]
    start = fields[-1] if fields and not _FIELD.match(old, start) else start
    end = equal_count(old[::-1], new[::-1], shorter - start)
    while end and (
        old[len(old) - end] not in _ENDS
        or old.count("(", start, -end) > old.count(")", start, -end)
    ):
        end -= 1
    was, now = old[start : len(old) - end].strip(), new[start : len(new) - end].strip()
    return was or "nothing", now or "nothing"


def _path_text(path: tuple[str | int, ...], value: object) -> str:
    """``nodes[3].strides[0]``: an attribute, a pair of a name and a value in the new value, goes by
    its name."""
    text, position = "", 0
    while position < len(path):
        step, value = path[position], _at(value, path[position])
        name = (
            _at(value, 0)
            if text.endswith("attributes") and path[position + 1 : position + 2] == (1,)
            else None
        )
        if isinstance(name, str):
            text = f"{text.removesuffix('attributes')}{name}"
            value, position = _at(value, 1), position + 1
        else:
            text += f"[{step}]" if isinstance(step, int) else f".{step}"
        position += 1
    return text.lstrip(".")


def _at(value: Any, step: str | int) -> Any:
    try:
        return value[step] if isinstance(step, int) else getattr(value, step)
    except (AttributeError, IndexError, KeyError, TypeError):
        return None

"""Reads values of JSON and msgpack that anybody may have written, and checks their types.

In: a value. Out: the value, typed, or a ``TypeError`` that says what was expected. Not done here:
what they mean.
"""

from __future__ import annotations

from typing import cast


def as_text(value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {str(value)[:80]}")
    return value


def as_bytes(value: object) -> bytes:
    """Return bytes."""
    if not isinstance(value, bytes):
        raise TypeError(f"expected bytes, got {str(value)[:80]}")
    return value


def as_flag(value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {str(value)[:80]}")
    return value


def as_list(value: object) -> list[object]:
    """Return a list."""
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {str(value)[:80]}")
    return cast("list[object]", value)


def as_table(value: object) -> dict[str, object]:
    """Return a table whose keys are texts."""
    if not isinstance(value, dict):
        raise TypeError(f"expected a table, got {str(value)[:80]}")
    return {as_text(key): item for key, item in cast("dict[object, object]", value).items()}


def as_texts(value: object) -> dict[str, str]:
    """Return a table of texts."""
    return {key: as_text(item) for key, item in as_table(value).items()}

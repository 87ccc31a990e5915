"""What the cache remembers of an action: its result, what it was made from, what it found while
running.

In: the parts. Out: canonical bytes for the action index, and the record again from plain values.
Not done here: storage.
"""

from __future__ import annotations

from typing import Any, cast

from ingot_build_rules.engine.actions.message_pack import pack
from ingot_runtime.lazy_dataclass import dataclass

_VERSION = 1
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Record:
    """``ingredients``: (name, digest); ``refs``: digests of all blobs that the result names;
    ``reads``: (name, digest) that were found while running."""

    rule: str
    ingredients: tuple[tuple[str, str], ...]
    result: bytes
    refs: tuple[str, ...]
    reads: tuple[tuple[str, str], ...] = ()
    messages: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ReadSets:
    """What an action with the same ingredients has noted so far, latest first: one tuple of names
    per run that differed."""

    sets: tuple[tuple[str, ...], ...]


def encode_record(record: Record | ReadSets) -> bytes:
    """Return the bytes for the index."""
    if isinstance(record, ReadSets):
        return pack({"v": _VERSION, "refs": [], "read_sets": record.sets})
    plain = {
        "v": _VERSION,
        "rule": record.rule,
        "ingredients": dict(record.ingredients),
        "result": record.result,
        "refs": record.refs,
        "reads": record.reads,
        "messages": record.messages,
        "seconds": round(record.seconds, 6),
    }
    return pack(plain)


def read_record(value: object) -> Record | ReadSets:
    """Return the record that plain values are; whoever wrote them may have been anybody.

    Raises:
        ValueError: not a record of this version.
    """
    try:
        plain = cast("dict[str, Any]", value)
        if plain["v"] != _VERSION:
            raise ValueError("a record of another version")
        if "read_sets" in plain:
            return ReadSets(tuple(tuple(map(str, names)) for names in plain["read_sets"]))
        if type(plain["result"]) is not bytes:  # `bytes` takes a number for a size
            raise ValueError("a record without a result")
        return Record(
            rule=str(plain["rule"]),
            ingredients=tuple(
                (str(name), str(item)) for name, item in plain["ingredients"].items()
            ),
            result=plain["result"],
            refs=tuple(_digest(item) for item in plain["refs"]),
            reads=tuple((str(name), str(item)) for name, item in plain["reads"]),
            messages=tuple(map(str, plain["messages"])),
            seconds=float(plain["seconds"]),
        )
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"not a record: {error}") from None


def _digest(text: object) -> str:
    """A digest becomes part of a path: nothing but 64 hex digits will do."""
    if not isinstance(text, str) or len(text) != 64 or not _HEX.issuperset(text):
        raise ValueError("not a digest")
    return text

"""What the store itself understands of a value of the index: which blobs it needs, and what made
it.

In: canonical msgpack that the engine wrote. Out: ``RecordFacts``. Not done here: the rest of a
record, which is the engine's.

A value is a map with ``refs`` (digests), and where an action was recorded ``rule`` and
``ingredients`` (name -> digest); or it is ``{"blob": digest}``, and the blob is the map.
"""

from __future__ import annotations

from typing import Any, cast

from ingot_artifacts.store.blob_file import is_digest
from ingot_artifacts.store.blobs import BlobStore
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """``refs``: digests of all blobs that the record needs, sorted, with that of the record itself
    if it is a blob.

    ``rule`` is empty for what is no action's result; ``ingredients`` are sorted by name;
    ``size_bytes``: of the index's value.
    """

    rule: str
    ingredients: tuple[tuple[str, str], ...]
    refs: tuple[str, ...]
    size_bytes: int


class RecordError(Exception):
    """Not a record."""


def read_facts(value: bytes, blobs: BlobStore) -> RecordFacts:
    """Read a value of the index.

    Raises:
        RecordError: not a record.
        StoreError: its blob is missing or damaged.
    """
    plain = unpack_map(value)
    held: tuple[str, ...] = ()
    if "blob" in plain:
        held = (_digest(plain["blob"]),)
        plain = unpack_map(blobs.get(held[0]))
    refs = _digests(plain.get("refs"))
    ingredients = _table(plain.get("ingredients", {}))
    named = tuple(sorted((str(name), str(digest)) for name, digest in ingredients.items()))
    return RecordFacts(str(plain.get("rule", "")), named, tuple(sorted({*refs, *held})), len(value))


def unpack_map(content: bytes | memoryview) -> dict[str, Any]:
    """Decode a msgpack map.

    Raises:
        RecordError: something else.
    """
    import msgpack

    without_stubs: Any = msgpack
    try:
        return _table(cast("object", without_stubs.unpackb(content)))
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise RecordError(str(error)) from None


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RecordError("not a map")
    return cast("dict[str, Any]", value)


def _digest(value: object) -> str:
    if not is_digest(value):
        raise RecordError("the record's blob has no digest")
    return cast("str", value)


def _digests(value: object) -> list[str]:
    if not isinstance(value, list):
        raise RecordError("a record without a list of blobs")
    digests = cast("list[str]", value)
    if not all(map(is_digest, digests)):
        raise RecordError("a record without digests of its blobs")
    return digests

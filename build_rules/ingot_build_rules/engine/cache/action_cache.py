"""Results of actions over builds: by key, and by what they found while running.

In: keys, outcomes. Out: records. Not done here: files and databases (``ingot_artifacts.store``),
running.

An action whose result depends on more than its key (an external file, a few bytes of a constant)
has two entries: its key leads to the names that such actions have noted, the key with the present
digests of these names leads to the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from ingot_artifacts.store.blobs import StoreError
from ingot_build_rules.engine.actions.key import Ingredient, Key, make_key
from ingot_build_rules.engine.actions.message_pack import UnpackException, pack, unpack
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.record import ReadSets, Record, encode_record, read_record
from ingot_build_rules.engine.actions.values import Blobs

_INLINE_BYTES_MAX = 30 << 10
_READ_SETS_MAX = 32
Resolve = Callable[[str], str]
Reads = tuple[tuple[str, str], ...]


class Index(Protocol):
    """Small values by 32-byte keys, shared by processes."""

    def get(self, key: bytes) -> bytes | None:
        """Return a value that is whole, or None."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value."""
        ...

    def delete(self, key: bytes) -> None:
        """Forget a value."""
        ...


class ActionCache:
    """Finds and keeps records."""

    def __init__(self, index: Index, blobs: Blobs) -> None:
        """Use an index of records, and blobs for those that are too long for it."""
        self._index = index
        self._blobs = blobs

    def find(self, key: Key, resolve: Resolve | None) -> tuple[bytes, Record] | None:
        """Return the record of a key and where it is; only one that says so itself, whose blobs all
        seem to be there."""
        if resolve is None:
            return self._of(key, (), key.digest)
        sets = self._get(key.digest)
        if not isinstance(sets, ReadSets):
            return None
        for names in sets.sets:
            reads = tuple((name, resolve(name)) for name in names)
            found = self._of(key, reads, _with_reads(key, reads))
            if found is not None:
                return found
        return None

    def keep(
        self, key: Key, rule: str, outcome: Outcome, reads: Reads | None, *, lasting: bool = True
    ) -> tuple[bytes, Record]:
        """Remember an outcome; return where. ``reads``: what was found while running, None for a
        rule that notes nothing.

        What may have changed since it was read is not ``lasting``: what was noted is kept then, the
        result is not.
        """
        found = reads or ()
        record = Record(
            rule,
            _ingredients(key),
            outcome.result,
            outcome.refs,
            found,
            outcome.messages,
            outcome.seconds,
        )
        where = key.digest if reads is None else _with_reads(key, found)
        if lasting:
            self._put(where, record)
        if reads is not None:
            self._keep_names(key, tuple(name for name, _ in reads))
        return where, record

    def record(self, where: bytes) -> Record | None:
        """Return the record at a place that ``find`` or ``keep`` gave once."""
        found = self._whole(where)
        return found[1] if found else None

    def forget(self, where: bytes) -> None:
        """Remove a record that cannot be used."""
        self._index.delete(where)

    def _keep_names(self, key: Key, names: tuple[str, ...]) -> None:
        """Put what an action has noted first among what such actions have noted."""
        sets = self._get(key.digest)
        before = sets.sets if isinstance(sets, ReadSets) else ()
        if before[:1] != (names,):
            kept = (names, *(other for other in before if other != names))
            self._put(key.digest, ReadSets(kept[:_READ_SETS_MAX]))

    def _of(self, key: Key, reads: Reads, where: bytes) -> tuple[bytes, Record] | None:
        found = self._whole(where)
        if found is None or (found[1].ingredients, found[1].reads) != (_ingredients(key), reads):
            return None
        return found

    def _whole(self, where: bytes) -> tuple[bytes, Record] | None:
        record = self._get(where)
        if isinstance(record, Record) and all(map(self._blobs.has, record.refs)):
            return where, record
        return None

    def _get(self, where: bytes) -> Record | ReadSets | None:
        content = self._index.get(where)
        if content is None:
            return None
        try:
            plain = unpack(content)
            if isinstance(plain, dict) and "blob" in plain:
                plain = unpack(self._blobs.get(str(cast("dict[str, object]", plain)["blob"])))
            return read_record(cast("object", plain))
        except (ValueError, StoreError, UnpackException):
            self._index.delete(where)
            return None

    def _put(self, where: bytes, record: Record | ReadSets) -> None:
        content = encode_record(record)
        if len(content) > _INLINE_BYTES_MAX:
            content = pack({"blob": self._blobs.put(content)})
        self._index.put(where, content)


def _ingredients(key: Key) -> Reads:
    return tuple((item.name, item.digest) for item in key.ingredients)


def _with_reads(key: Key, reads: Reads) -> bytes:
    found = (Ingredient(f"read {name}", digest) for name, digest in reads)
    return make_key((*key.ingredients, Ingredient("reads", str(len(reads))), *found)).digest

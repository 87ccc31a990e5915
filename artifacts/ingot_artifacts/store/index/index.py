"""The action index: key -> what the cache remembers of an action; never more than bytes, never
trusted further than its seal.

In: keys (32 bytes), values (at most 32 KiB). Out: the values again, or None. Not done here: what a
value says (``records``), what is still needed (``collect``), whose seals hold (``trust``). A row
whose seal does not hold is damaged or forged: it is removed and missing. Importing this module
imports diskcache (20 ms).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_artifacts.store.index.index_disk import VALUE_BYTES_MAX, is_key
from ingot_artifacts.store.index.index_layer import IndexLayer
from ingot_artifacts.store.trust import ANYONE, SEAL_BYTES, Trust
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One row as ``scan`` finds it: ``value`` is None where the row is damaged; ``used`` is the
    time of its last use."""

    number: int
    key: bytes | None
    value: bytes | None
    used: float


class ActionIndex:
    """The index of several layers; the first one is written to."""

    def __init__(self, layers: Sequence[IndexLayer], trust: Trust = ANYONE) -> None:
        self._layers = tuple(layers)
        self._trust = trust
        # Layers that are only read still have them.
        self._deleted: set[bytes] = set()
        self.foreign: dict[int, tuple[int, int]] = {}
        """Layer -> records whose seal does not hold, all records; of layers where ``get`` has met
        such a record, at that time."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; that of an first layer goes first. A row that is no good is
        removed where that can be."""
        assert is_key(key)
        for number, layer in enumerate(self._layers):
            if layer.read_only and key in self._deleted:
                continue
            row = layer.get(key)
            value = self._unseal(key, row)
            if value is not None:
                return value
            if row is not None:
                if number not in self.foreign:
                    self.foreign[number] = self._count_foreign(layer)
                layer.delete(key)
        return None

    def put(self, key: bytes, value: bytes) -> None:
        """Keep a value, instead of the key's old one.

        Raises:
            OutputError: no space, no permission. ``StoreReadOnly`` in a cache that is only read.
        """
        self.put_many(((key, value),))

    def put_many(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep values, all or none; 3 times faster than one by one.

        Raises:
            OutputError: no space, no permission. ``StoreReadOnly`` in a cache that is only read.
        """
        assert all(is_key(key) and len(value) <= VALUE_BYTES_MAX for key, value in pairs)
        self._layers[0].put_many(
            [(key, self._trust.seal(key + value) + value) for key, value in pairs]
        )

    def delete(self, key: bytes) -> None:
        """Forget a key; what lower layers say of it is not asked for again."""
        assert is_key(key)
        self._deleted.add(key)
        self._layers[0].delete(key)

    def touch(self, keys: Sequence[bytes]) -> None:
        """Note that keys are used now, for the order in which ``collect`` forgets; coarse, and no
        error if it cannot be."""
        self._layers[0].touch(keys)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (key, value) of the first layer, sorted by key."""
        for entry in self.scan():
            if entry.key is not None and entry.value is not None:
                yield entry.key, entry.value

    def scan(self) -> Iterator[Entry]:
        """Yield all rows of the first layer, damaged ones too, sorted by key."""
        for row in self._layers[0].rows():
            yield Entry(row.number, row.key, self._unseal(row.key, row.content), row.used)

    def discard(self, numbers: Sequence[int]) -> None:
        """Remove rows by the numbers that ``scan`` gives.

        Raises:
            OutputError: no permission. ``StoreReadOnly`` in a cache that is only read.
        """
        self._layers[0].delete_rows(numbers)

    def settle_times(self) -> None:
        """Set uses that lie ahead, from before the clock was set back, to now: from now on they age
        like others."""
        self._layers[0].settle_times()

    def heal(self) -> bool:
        """Check the whole database; whether it was damaged and an empty one stands in its place.

        Raises:
            OutputError: no permission. ``StoreReadOnly`` in a cache that is only read.
        """
        return self._layers[0].heal()

    def close(self) -> None:
        """Close all layers."""
        for layer in self._layers:
            layer.close()

    def count_foreign(self) -> tuple[int, int]:
        """Return how many records of the first layer have a seal that does not hold, and how many
        there are."""
        return self._count_foreign(self._layers[0])

    def _count_foreign(self, layer: IndexLayer) -> tuple[int, int]:
        holds = [self._unseal(row.key, row.content) is not None for row in layer.rows()]
        return holds.count(False), len(holds)

    def _unseal(self, key: bytes | None, content: bytes | None) -> bytes | None:
        """Return the value of a row; its seal is that of the key too, so values that changed their
        places are found."""
        if key is None or content is None:
            return None
        value = content[SEAL_BYTES:]
        return value if self._trust.holds(content[:SEAL_BYTES], key + value) else None

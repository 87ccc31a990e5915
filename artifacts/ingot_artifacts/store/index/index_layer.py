"""What the action index asks of each of its layers: rows of bytes by key. Not what they say, and
not whose they are.

In: keys (32 bytes), rows. Out: ``IndexLayer``, ``Row``. Not done here: seals (``index``), databases
(``index_database``, ``index_reader``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """``key`` and ``content`` are None where they are not ours; ``used`` is in seconds since 1970,
    by the clock of then."""

    number: int
    key: bytes | None
    content: bytes | None
    used: float


class IndexLayer(Protocol):
    """One place that rows lie in. Where it is only read, ``delete`` and ``touch`` do nothing, and
    what else would write raises ``StoreReadOnly``."""

    @property
    def read_only(self) -> bool:
        """Whether nothing is ever written here."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """Return a row's content; None where there is none, or it is no good."""
        ...

    def rows(self) -> Iterator[Row]:
        """Yield all rows, sorted by key, damaged ones too."""
        ...

    def put_many(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Write rows, all or none.

        Raises:
            OutputError: no space, no permission.
        """
        ...

    def delete(self, key: bytes) -> None:
        """Remove a row if there is one; no error if it cannot be."""
        ...

    def delete_rows(self, numbers: Iterable[int]) -> None:
        """Remove rows by their numbers.

        Raises:
            OutputError: no permission.
        """
        ...

    def touch(self, keys: Sequence[bytes]) -> None:
        """Note that rows are used now, to the hour; no error if it cannot be."""
        ...

    def settle_times(self) -> None:
        """Set uses that lie ahead to now."""
        ...

    def heal(self) -> bool:
        """Check everything; whether it was damaged, and is new and empty now."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...

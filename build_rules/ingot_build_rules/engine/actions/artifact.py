"""A part of a result, known by its digest; its value is loaded when somebody asks.

In: a digest, and where values come from. Out: ``Artifact``. Not done here: storage (``values``),
encoding (``codec``). Keys are made of digests alone, so a build in which everything is there
already loads almost nothing.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar, cast

Value = TypeVar("Value")


class Loader(Protocol):
    """Where the value of an artifact comes from."""

    def load(self, digest: str, *, raw: bool) -> object:
        """Return the value; a ``raw`` one is bytes as they are.

        Raises:
            StoreError: it was lost or damaged; whoever made it must make it again.
        """
        ...


class Artifact(Generic[Value]):
    """``digest``: 64 hex digits of sha256 over the stored bytes; ``raw``: the value is those
    bytes."""

    __slots__ = ("_loader", "digest", "raw")

    def __init__(self, digest: str, loader: Loader, *, raw: bool = False) -> None:
        """Name a stored value."""
        self.digest = digest
        self.raw = raw
        self._loader = loader

    def value(self) -> Value:
        """Load the value; the same object while it is kept in memory."""
        return cast("Value", self._loader.load(self.digest, raw=self.raw))

    def encoded(self) -> bytes:
        """Load the stored bytes, whatever they encode."""
        return bytes(cast("memoryview", self._loader.load(self.digest, raw=True)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Artifact) and (self.digest, self.raw) == (other.digest, other.raw)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Artifact({self.digest[:16]})"

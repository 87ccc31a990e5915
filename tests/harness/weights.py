"""Weights in memory: what a rule stores, for tests that call the frontend themselves.

In: bytes. Out: their number, and the bytes again. Not done here: anything else.
"""

from __future__ import annotations


class Weights:
    """Equal bytes have one number."""

    def __init__(self) -> None:
        """Start with none."""
        self._contents: list[bytes] = []

    def write(self, content: memoryview) -> str:
        """Keep bytes; return their number."""
        flat = bytes(content)
        if flat not in self._contents:
            self._contents.append(flat)
        return str(self._contents.index(flat))

    def read(self, weight: str) -> memoryview:
        """Return the bytes."""
        return memoryview(self._contents[int(weight)])

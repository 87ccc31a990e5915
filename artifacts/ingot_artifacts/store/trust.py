"""Whose word counts: what a cache remembers is sealed with a key that only its user has.

In: a key, bytes. Out: their seal, and whether one holds. Not done here: where the key is (the
command), who owns the folder (``ownership``).

A blob needs no seal, for its name says what it must be. A record says which blobs are an action's
result: whoever can make one up decides what a bundle is. The key decides what is believed, and no
byte of what is made.
"""

from __future__ import annotations

import hmac

from ingot_runtime.lazy_dataclass import dataclass

SEAL_BYTES = 32
_PUBLIC = b""
"""The key that everybody has: a seal by it tells accidents from what was written, and nothing about
the writer."""


@dataclass(frozen=True, slots=True)
class Trust:
    """``key``: the user's; empty for one that everybody has. ``shared``: whoever can write to the
    cache is trusted, so what is written there is for others too."""

    key: bytes = _PUBLIC
    shared: bool = False

    @property
    def sealing_key(self) -> bytes:
        """Return the key for what is written."""
        return _PUBLIC if self.shared else self.key

    def seal(self, content: bytes) -> bytes:
        """Return the seal of bytes, ``SEAL_BYTES`` long."""
        return hmac.digest(self.sealing_key, content, "sha256")

    def holds(self, seal: bytes, content: bytes) -> bool:
        """Whether a seal was made for these bytes by whom we trust: in a shared cache also by
        ourselves, before it was shared."""
        keys = (_PUBLIC, self.key) if self.shared else (self.key,)
        return any(hmac.compare_digest(seal, hmac.digest(key, content, "sha256")) for key in keys)


ANYONE = Trust()
"""Accidents are found, forgery is not: for caches that nobody but their maker can reach, such as a
test's."""

"""What the scheduler asks of leases: who runs which action, over all processes of a machine.

In: keys. Out: whether the lease was to be had. Not done here: how processes agree
(``ingot_artifacts.store.leases``).
"""

from __future__ import annotations

from typing import Protocol


class ActionLeases(Protocol):
    """Who runs what, over all processes."""

    def try_acquire(self, key: bytes) -> bool:
        """Take the lease of a key, unless somebody has it."""
        ...

    def release(self, key: bytes) -> None:
        """Give it back."""
        ...

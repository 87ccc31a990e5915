"""What launches read of a GPU's memory, and how much they compute with it.

In: loads and multiply-adds, as ``grid`` runs them. Out: counts. Not done here: caches: every load
counts, as if none of them had anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.ptx.memory import Array

SECTOR_BYTES = 32


@dataclass(slots=True)
class Traffic:
    """``asked_bytes``: what threads asked for; ``sector_bytes``: the sectors that the warps of
    these loads touched, each once a load, which is what leaves the memory; ``products``:
    multiply-adds of floats, by threads; ``shared_loads``: by threads, of the memory of a block."""

    asked_bytes: int = 0
    sector_bytes: int = 0
    products: int = 0
    shared_loads: int = 0

    def note_load(self, warps: Array, addresses: Array, size_bytes: int) -> None:
        """Threads of these warps load so many bytes each."""
        self.asked_bytes += addresses.size * size_bytes
        sectors = addresses.astype(np.int64) % (1 << 40) // SECTOR_BYTES
        pairs = np.unique(warps.astype(np.int64) * (1 << 40) + sectors)
        self.sector_bytes += pairs.size * max(SECTOR_BYTES, size_bytes)

    @property
    def sector_bytes_per_operation(self) -> float:
        """A multiply-add is two operations."""
        return self.sector_bytes / max(2 * self.products, 1)

"""Engines that are timed in turns.

In: processes of ``view.peer``. Out: medians. Not done here: starting them, what is compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ingot_build_rules.tools.view.peer import Peer


def interleave(peers: Sequence[Peer], rounds: int, slice_seconds: float) -> list[float]:
    """Give every peer the same time in turns; return the median seconds per call of each."""
    counts = [max(1, int(slice_seconds / statistics.median(peer.times(3)))) for peer in peers]
    times: list[list[float]] = [[] for _ in peers]
    for _ in range(rounds):
        for index, peer in enumerate(peers):
            times[index] += peer.times(counts[index])
    return [statistics.median(values) for values in times]

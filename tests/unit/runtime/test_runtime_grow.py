"""Blocks of a size that the data decide: the next call has those of the last one, and no more."""

from __future__ import annotations

import pytest

from ingot_runtime.errors import LimitError
from ingot_runtime.executor.grow import Grow


def test_the_next_call_has_the_blocks_of_the_last_one() -> None:
    """Equal and nearly equal sizes are the same block; two at once are two."""
    grow = Grow()
    first, second = grow.allocate(0, 100_000), grow.allocate(0, 100_000)
    assert first != second
    grow.next_call()
    assert {grow.allocate(0, 100_000), grow.allocate(0, 100_001)} == {first, second}


def test_what_a_call_does_not_take_is_dropped() -> None:
    """Two calls later the block is not kept, and `forget` keeps none."""
    grow = Grow()
    grow.allocate(0, 1 << 20)
    kept = grow.blocks[0][1]
    grow.next_call()
    grow.allocate(0, 1 << 10)
    grow.next_call()
    assert grow.allocate(0, 1 << 20)
    assert grow.blocks[0][1] is not kept
    grow.forget()
    assert not grow.blocks


def test_devices_do_not_share_blocks() -> None:
    """A block of one device is not given for another."""
    grow = Grow()
    own = grow.allocate(0, 4096)
    grow.next_call()
    assert grow.allocate(1, 4096) != own
    assert grow.allocate(0, 4096) == own


def test_a_limit_holds_with_the_blocks_of_the_last_call() -> None:
    """Spare blocks give way, and do not count against what a call may have."""
    grow = Grow()
    grow.limit(10_000)
    assert grow.allocate(0, 9_000)
    grow.next_call()
    assert grow.allocate(0, 5_000)
    assert grow.allocate(0, 5_000)
    assert not grow.allocate(0, 1)
    (failure,) = grow.failure
    assert isinstance(failure, LimitError)
    with pytest.raises(LimitError, match="max_bytes leaves 10000 bytes for them, got 10001"):
        raise failure

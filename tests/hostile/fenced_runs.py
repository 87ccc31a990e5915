"""Runs a bundle whose every buffer lies at a fence and holds poison: a touch beside it is a signal,
a use of what was never written other bits. ``python -m tests.hostile.fenced_runs BUNDLE FEEDS``

In: a bundle, ``FEEDS``: an npz of ``NUMBER/INPUT``. Out: a line ``verdict<tab>trial`` for each way
of running. Not done here: models.

Inputs, outputs, workspace, scratch, small tensors, blocks of a size that data decide, the call
struct, the pool page, weights and image are fenced; the few words that the vm and the verifier pass
by ctypes are not.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from tests.hostile import trials
from tests.hostile.fences import POISONS, Array, Fenced, filled

import ingot_runtime
from ingot_runtime.executor import arrays, call_memory, context, frame, grow, session
from ingot_runtime.loader import area, block, image, pool, system, weights

SECONDS = 300.0
_ALIGNMENT_BYTES = 64
_STRUCT_ALIGNMENT_BYTES = 16
_KEPT_MIN = 4  # call struct, watch, small tensors, workspace: there is more
Feed = Mapping[str, Array]
_kept: list[Fenced] = []  # everything that was made for the present session


class _Place:
    """Where memory lies, and what it holds, from now on."""

    at_end = True
    poison = POISONS[0]


def new_fenced(size_bytes: int, alignment: int) -> Fenced:
    """Make memory, and keep it until the session is done."""
    _kept.append(Fenced(size_bytes, alignment, at_end=_Place.at_end, poison=_Place.poison))
    return _kept[-1]


class FencedBlock(block.Block):
    """A block at a fence. ``memory`` is that of a ``Fenced``."""

    def __init__(self, size_bytes: int) -> None:
        """Poisoned where a block is zeroed, but for the pool page, which is made of zeros."""
        made = new_fenced(size_bytes, _ALIGNMENT_BYTES)
        self.size_bytes, self.address, self.lease = size_bytes, made.address, None
        self.memory = made.memory  # type: ignore[assignment]  # a buffer all the same


class ZeroBlock(FencedBlock):
    """A block at a fence that is zeroed, as the pool page is."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        ctypes.memset(self.address, 0, size_bytes)


class FencedArea(area.Area):
    """Addresses with a page before and a page behind that nobody may touch."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes + 2 * system.PAGE_SIZE_BYTES)
        self.address += system.PAGE_SIZE_BYTES
        self.size_bytes -= 2 * system.PAGE_SIZE_BYTES


def fenced_struct(size_bytes: int) -> ctypes.Array[ctypes.c_char]:
    """What ``ctypes.create_string_buffer`` makes, at a fence: zeroed."""
    made = new_fenced(size_bytes, _STRUCT_ALIGNMENT_BYTES)
    ctypes.memset(made.address, 0, size_bytes)
    return (ctypes.c_char * size_bytes).from_address(made.address)


def fenced_array(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """What ``arrays`` makes for an input that lies where nobody can read it."""
    count = math.prod(shape)
    place = new_fenced(count * dtype.itemsize, _ALIGNMENT_BYTES)
    return np.frombuffer(place.memory, dtype, count).reshape(shape)


def fence_everything() -> None:
    """Let the loader get all its memory here."""
    call_memory.Block = context.Block = frame.Block = block.Block = FencedBlock  # type: ignore[misc,attr-defined]
    arrays.Block = grow.Block = FencedBlock  # type: ignore[attr-defined]
    weights.Block = pool.Block = ZeroBlock  # type: ignore[attr-defined]
    weights.Area = image.Area = FencedArea  # type: ignore[attr-defined]
    arrays.aligned_empty = fenced_array
    ctypes.create_string_buffer = fenced_struct  # type: ignore[assignment]


def same(got: Mapping[str, Array], expected: Mapping[str, Array]) -> bool:
    """Whether shapes and bits are equal."""
    return all(
        got[name].shape == each.shape and got[name].tobytes() == each.tobytes()
        for name, each in expected.items()
    )


def poison(one: session.Session) -> None:
    """Poison what a call may not read before it has written it: workspace, scratch."""
    memory = one._context._memory  # pyright: ignore[reportPrivateUsage]
    for each in (*memory.workspaces, memory.scratch):
        pattern = _Place.poison * (each.size_bytes // len(_Place.poison))
        ctypes.memmove(each.address, pattern, len(pattern))


def is_bound_right(one: session.Session, feed: Feed, expected: Mapping[str, Array]) -> bool:
    """Run with each input and output at a fence of its own."""
    inputs = {
        name: filled(new_fenced(array.nbytes, array.itemsize), array)
        for name, array in feed.items()
    }
    places = {name: new_fenced(array.nbytes, array.itemsize) for name, array in expected.items()}
    outputs = {
        name: np.frombuffer(places[name].memory, array.dtype, array.size).reshape(array.shape)
        for name, array in expected.items()
    }
    try:
        bound = one.bind(inputs, outputs)
    except ingot_runtime.InputError as error:
        if "its size depends on the data" in error.why or "does not fit" in error.what:
            return True  # no place can be bound for it, or one for its upper bound alone
        raise
    poison(one)
    bound.run()
    return same(outputs, expected)


def attempt(
    path: str, threads: int, executor: str, feeds: list[Feed], answers: list[Mapping[str, Array]]
) -> bool:
    """Run every feed twice, and bound; nobody may have written beside his memory."""
    one = ingot_runtime.load(path, threads=threads, executor=executor)
    for feed, expected in zip(feeds, answers, strict=True):
        for _ in range(2):
            poison(one)
            if not same(one.run(feed), expected):
                return False
        if not is_bound_right(one, feed, expected):
            return False
    lent, held = one._context._memory, one.loaded.weights  # pyright: ignore[reportPrivateUsage]
    assert isinstance(lent.workspaces[0], FencedBlock)
    assert held is None or isinstance(held._area, FencedArea)  # pyright: ignore[reportPrivateUsage]
    assert len(_kept) > _KEPT_MIN
    one.close()
    return all(each.is_intact() for each in _kept)


def ways() -> Iterator[tuple[int, str, bool, bytes]]:
    """All ways of running: threads, executor, at the end of a page or at its begin, and which
    poison."""
    for threads, executor in ((1, "aot"), (3, "aot"), (1, "vm")):
        for at_end in (True, False):
            yield threads, executor, at_end, POISONS[at_end]


def trial(
    path: str,
    way: tuple[int, str, bool, bytes],
    feeds: list[Feed],
    answers: list[Mapping[str, Array]],
) -> str:
    """One way, in its child."""
    threads, executor, _Place.at_end, _Place.poison = way
    fence_everything()
    return trials.verdict(partial(attempt, path, threads, executor, feeds, answers))


def main() -> None:
    """Try, and print."""
    path = sys.argv[1]
    with np.load(sys.argv[2]) as file:
        stored = {name: file[name] for name in file.files}
    numbers = sorted({name.split("/", 1)[0] for name in stored})
    feeds: list[Feed] = [
        {
            name.split("/", 1)[1]: array
            for name, array in stored.items()
            if name.startswith(f"{number}/")
        }
        for number in numbers
    ]
    trials.prepare()
    with ingot_runtime.load(path) as one:
        answers: list[Mapping[str, Array]] = [one.run(feed) for feed in feeds]
    for way in ways():
        end = trials.in_child(partial(trial, path, way, feeds, answers), SECONDS)
        where = "before a fence" if way[2] else "behind a fence"
        print(f"{end}\t{way[0]} threads, {way[1]}, {where}, {way[3].hex()}", flush=True)


if __name__ == "__main__":
    main()

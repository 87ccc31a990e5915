"""Numbers among those that a model writes down: a hash that sends each of these to a slot of its
own, so that one comparison tells whether a number is there.

In: integers that differ; numbers of a tensor. Out: slots, and what each of them holds. Not done
here: numbers as integers (``label_encoder``), texts (``strings/lookup``).

With h = (x xor x >> 32) * M modulo 2^64, a few keys have the slot that the first bits of h say.
For more keys these choose one of the ``turns``, and the bits that follow, exclusive or with it, are
the slot. M, and then the turns, are looked for until no two keys share a slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.families.strings.pool import written
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

_FEW = 64  # keys that get a slot each without turns
_TRIES = 1024
_FOLD = 32
_GOLDEN = 0x9E3779B97F4A7C15  # the golden ratio in 64 bits: the seed of factors
_WORD = (1 << 64) - 1

_Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class PerfectHash:
    """Where keys go: ``order[slot]`` is the place of a key, and of an empty slot that of a key that
    goes elsewhere."""

    factor: int
    turn_bits: int
    turns: tuple[int, ...]
    slot_bits: int
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slots:
    """Numbers in slots, as value ids: the slot of each, whether its key is there, and of all slots
    the place of the key that they hold."""

    slot: int
    found: int
    order: int

    def place(self, context: OpContext) -> int:
        """The place of the key in each number's slot."""
        return context.add("gather", self.order, self.slot, axis=0)


def slots_among(context: OpContext, numbers: int, keys: Sequence[int]) -> Slots:
    """Look i64 or u64 numbers up among integers of 64 bits, which differ (at least one)."""
    words = np.array([key & _WORD for key in keys], np.uint64)
    hashed = perfect_hash(words)
    wanted = numbers
    if context.dtype_of(numbers) != "u64":
        wanted = context.add("bit_cast", numbers, dtype="u64")
    slot = _slot(context, wanted, hashed)
    order = written(context, "i64", hashed.order)
    table = context.add("gather", written(context, "u64", words.tolist()), order, axis=0)
    found = context.add("equal", context.add("gather", table, slot, axis=0), wanted)
    return Slots(slot, found, order)


def _slot(context: OpContext, numbers: int, hashed: PerfectHash) -> int:
    """The slot of each number."""

    def shifted(x: int, places: int) -> int:
        return context.add("shift_right", x, context.scalar("u64", places))

    mixed = context.add("bitwise_xor", numbers, shifted(numbers, _FOLD))
    mixed = context.add("mul", mixed, context.scalar("u64", hashed.factor))
    if not hashed.turn_bits:
        return cast(context, shifted(mixed, 64 - hashed.slot_bits), "i64")
    turns = written(context, "i32", hashed.turns)
    turn = cast(context, shifted(mixed, 64 - hashed.turn_bits), "i64")
    rest = context.scalar("u64", (1 << hashed.slot_bits) - 1)
    slot = shifted(mixed, 64 - hashed.turn_bits - hashed.slot_bits)
    slot = cast(context, context.add("bitwise_and", slot, rest), "i64")
    turned = cast(context, context.add("gather", turns, turn, axis=0), "i64")
    return context.add("bitwise_xor", slot, turned)


def perfect_hash(keys: _Words) -> PerfectHash:
    """Find a hash for keys that differ."""
    count_bits = max(len(keys) - 1, 1).bit_length()
    mixed = keys ^ (keys >> np.uint64(_FOLD))
    if len(keys) <= _FEW:
        slot_bits = count_bits + 3
        for factor in _factors():
            slots = _bits(mixed * np.uint64(factor), 0, slot_bits)
            if len(np.unique(slots)) == len(keys):
                return PerfectHash(factor, 0, (), slot_bits, _order(slots, slot_bits))
    turn_bits, slot_bits = max(count_bits - 1, 1), count_bits + 1
    for factor in _factors():
        hashes = mixed * np.uint64(factor)
        groups, places = _bits(hashes, 0, turn_bits), _bits(hashes, turn_bits, slot_bits)
        turns = _turns(groups, places, turn_bits, slot_bits)
        if turns is not None:
            order = _order(places ^ turns[groups], slot_bits)
            return PerfectHash(factor, turn_bits, tuple(turns.tolist()), slot_bits, order)
    raise InternalError("no hash gives each key of a model a slot of its own", where="keys")


def _factors() -> Iterator[int]:
    """Odd numbers of 64 bits."""
    return (_GOLDEN * (2 * index + 1) & _WORD for index in range(_TRIES))


def _bits(hashes: _Words, first: int, count: int) -> npt.NDArray[np.int64]:
    """``count`` bits behind the ``first`` ones."""
    shifted = hashes << np.uint64(first) >> np.uint64(64 - count)
    return shifted.astype(np.int64)


def _turns(
    groups: npt.NDArray[np.int64], places: npt.NDArray[np.int64], turn_bits: int, slot_bits: int
) -> npt.NDArray[np.int64] | None:
    """For each group the least number that, exclusive or with the places of its keys, gives slots
    which no other key has: large groups first. None where there is none."""
    turns = np.zeros(1 << turn_bits, np.int64)
    sizes = np.bincount(groups, minlength=len(turns))
    by_group = np.argsort(groups, kind="stable")
    ends = np.cumsum(sizes)
    taken = np.zeros(1 << slot_bits, bool)
    candidates = np.arange(1 << slot_bits)
    for group in np.argsort(-sizes, kind="stable")[: int((sizes > 0).sum())].tolist():
        own = places[by_group[ends[group] - sizes[group] : ends[group]]]
        if len(np.unique(own)) != len(own):
            return None
        turn = _first_free(taken, own, candidates)
        if turn is None:
            return None
        turns[group] = turn
        taken[own ^ turn] = True
    return turns


def _first_free(
    taken: npt.NDArray[np.bool_], own: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64]
) -> int | None:
    """The least candidate for which no slot is taken."""
    for start in range(0, len(candidates), 64):
        some = candidates[start : start + 64]
        free = ~taken[own[None, :] ^ some[:, None]].any(1)
        if free.any():
            return int(some[int(free.argmax())])
    return None


def _order(slots: npt.NDArray[np.int64], slot_bits: int) -> tuple[int, ...]:
    """The key of each slot. Empty slots have the first key: what is equal to it has another
    slot."""
    order = np.zeros(1 << slot_bits, np.int64)
    order[slots] = np.arange(len(slots))
    return tuple(order.tolist())

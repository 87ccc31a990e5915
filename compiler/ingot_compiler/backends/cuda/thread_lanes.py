"""Instructions after which lanes are in other threads, or all threads know of all lanes.

In: an instruction's operands. Out: instructions of a thread: ``shfl``, ``vote``. Not done here:
arithmetic, which each thread does with its own lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.cuda.lane_group import (
    LANES,
    MASK,
    SEGMENT,
    element_of,
    pieces_of,
    thread_of,
)
from ingot_compiler.backends.cuda.thread_scope import ThreadScope
from ingot_compiler.codegen.llvm_value import (
    FLOAT_ELEMENTS,
    LlvmValue,
    constant,
    element_bits,
    poison,
)

_SHUFFLE = "llvm.nvvm.shfl.sync.idx.i32"
_ANY = "llvm.nvvm.vote.any.sync"


def any_lane(scope: ThreadScope, mask: LlvmValue) -> LlvmValue:
    """Whether a lane of any thread holds, an i1."""
    own = scope.own(mask)
    found = scope.extract(own, 0)
    for number in range(1, own.lanes):
        found = scope.binary("or", found, scope.extract(own, number))
    return scope.call(_ANY, (MASK, found), "i1")


def extract(scope: ThreadScope, vector: LlvmValue, lane: int) -> LlvmValue:
    """One lane, in all threads."""
    thread, piece = thread_of(lane, vector.lanes)
    return _from(scope, vector, piece, [thread] * LANES)


def shuffle(
    scope: ThreadScope, left: LlvmValue, right: LlvmValue, numbers: Sequence[int]
) -> LlvmValue:
    """``shufflevector``: lanes by their numbers in left and right, as a vector of each thread."""
    made = poison(left.element, pieces_of(len(numbers)))
    for piece in range(made.lanes):
        wanted = [numbers[element_of(thread, piece, len(numbers))] for thread in range(LANES)]
        made = scope.insert(made, _gathered(scope, left, right, wanted), piece)
    return made


def _gathered(
    scope: ThreadScope, left: LlvmValue, right: LlvmValue, wanted: Sequence[int]
) -> LlvmValue:
    """In each thread the lane that it wants."""
    places = [_place(left, right, number, thread) for thread, number in enumerate(wanted)]
    found: LlvmValue | None = None
    for source in dict.fromkeys((vector, piece) for vector, piece, _ in places):
        mine = [place[:2] == source for place in places]
        got = _from(scope, *source, _homes([place[2] for place in places], mine))
        found = got if found is None else scope.select(scope.flag_by_thread(mine), got, found)
    assert found is not None
    return found


def _homes(threads: Sequence[int], mine: Sequence[bool]) -> Sequence[int]:
    """Which thread each one asks; those that do not want the answer ask so that the question is a
    simple one."""
    requested = [thread for thread, own in zip(threads, mine, strict=True) if own]
    if len(set(requested)) == 1:
        return requested[:1] * LANES
    answers = enumerate(zip(threads, mine, strict=True))
    return [thread if own else itself for itself, (thread, own) in answers]


def _place(
    left: LlvmValue, right: LlvmValue, number: int, thread: int
) -> tuple[LlvmValue, int, int]:
    """The vector that has a lane, the piece and the thread; this thread, where several have it."""
    vector, lane = (left, number) if number < left.lanes else (right, number - left.lanes)
    if lane == element_of(thread, 0, vector.lanes):
        return vector, 0, thread
    home, piece = thread_of(lane, vector.lanes)
    return vector, piece, home


def _from(scope: ThreadScope, vector: LlvmValue, piece: int, threads: Sequence[int]) -> LlvmValue:
    """What the thread of this number in ``threads`` has as a piece."""
    own = scope.extract(scope.own(vector), piece)
    if list(threads) == list(range(LANES)):
        return own
    return _shuffled(scope, own, scope.by_thread(threads))


def _shuffled(scope: ThreadScope, value: LlvmValue, thread: LlvmValue) -> LlvmValue:
    """A scalar of another thread, in words of 32 bits."""
    element = value.element
    if element == "ptr":
        number = scope.convert("ptrtoint", value, "i64")
        return scope.convert("inttoptr", _shuffled(scope, number, thread), "ptr")
    if element in FLOAT_ELEMENTS:
        number = scope.convert("bitcast", value, f"i{element_bits(element)}")
        return scope.convert("bitcast", _shuffled(scope, number, thread), element)
    if element == "i64":
        high = scope.binary("lshr", value, constant(32, "i64"))
        words = [
            scope.convert("zext", _shuffled(scope, half, thread), "i64")
            for half in (scope.convert("trunc", word, "i32") for word in (value, high))
        ]
        moved = scope.binary("shl", words[1], constant(32, "i64"))
        return scope.binary("or", moved, words[0])
    if element == "i32":
        return scope.call(_SHUFFLE, (MASK, value, thread, SEGMENT), "i32")
    wide = scope.convert("zext", value, "i32")
    return scope.convert("trunc", _shuffled(scope, wide, thread), element)

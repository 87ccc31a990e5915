"""Instructions after which lanes are in other threads, or all threads know of all lanes.

In: an instruction's operands. Out: instructions of a thread: ``shfl``, ``vote``. Not done here:
arithmetic, which each thread does with its own lanes.
"""

from __future__ import annotations

import re
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
from ingot_compiler.backends.host.llvm_value import LlvmValue, element_bits

_SHUFFLE = "llvm.nvvm.shfl.sync.idx.i32"
_ANY = "llvm.nvvm.vote.any.sync"


def any_lane(scope: ThreadScope, mask: LlvmValue) -> str:
    """Whether a lane of any thread holds, an i1."""
    own = scope.own_value(mask)
    found = _piece(scope, own, 0)
    for number in range(1, own.lanes):
        found = scope.define(f"or i1 {found}, {_piece(scope, own, number)}")
    return scope.define(f"call i1 @{_ANY}(i32 {MASK}, i1 {found})")


def extract(scope: ThreadScope, vector: LlvmValue, lane: int) -> str:
    """One lane, in all threads."""
    thread, piece = thread_of(lane, vector.lanes)
    return _from(scope, vector, piece, [thread] * LANES)


def shuffle(
    scope: ThreadScope, left: LlvmValue, right: LlvmValue, numbers: Sequence[int]
) -> LlvmValue:
    """``shufflevector``: lanes by their numbers in left and right, the name of a vector of each
    thread."""
    count = pieces_of(len(numbers))
    made, kind = "poison", f"<{count} x {left.element}>"
    for piece in range(count):
        wanted = [numbers[element_of(thread, piece, len(numbers))] for thread in range(LANES)]
        text = _gathered(scope, left, right, wanted)
        made = scope.define(f"insertelement {kind} {made}, {left.element} {text}, i32 {piece}")
    return LlvmValue(made, left.element, count)


def mask_numbers(mask: LlvmValue) -> list[int]:
    """The lane numbers of a shuffle's mask."""
    if mask.text == "zeroinitializer":
        return [0] * mask.lanes
    return [int(number) for number in re.findall(r"i32 (\d+)", mask.text)]


def _gathered(scope: ThreadScope, left: LlvmValue, right: LlvmValue, wanted: Sequence[int]) -> str:
    """In each thread the lane that it wants."""
    places = [_place(left, right, number, thread) for thread, number in enumerate(wanted)]
    found = ""
    for source in dict.fromkeys((vector, piece) for vector, piece, _ in places):
        mine = [place[:2] == source for place in places]
        text = _from(scope, *source, _homes([place[2] for place in places], mine))
        if found:
            flag, kind = scope.flag_by_thread(mine), left.element
            text = scope.define(f"select i1 {flag}, {kind} {text}, {kind} {found}")
        found = text
    return found


def _homes(threads: Sequence[int], mine: Sequence[bool]) -> Sequence[int]:
    """Which thread each one asks; those that do not want the answer ask so that the question is a
    simple one."""
    asked = [thread for thread, own in zip(threads, mine, strict=True) if own]
    if len(set(asked)) == 1:
        return asked[:1] * LANES
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


def _from(scope: ThreadScope, vector: LlvmValue, piece: int, threads: Sequence[int]) -> str:
    """What the thread of this number in ``threads`` has as a piece."""
    own = _piece(scope, scope.own_value(vector), piece)
    if list(threads) == list(range(LANES)):
        return own
    return _shuffled(scope, own, vector.element, scope.by_thread(threads))


def _piece(scope: ThreadScope, own: LlvmValue, number: int) -> str:
    return scope.define(f"extractelement {own.typed}, i32 {number}")


def _shuffled(scope: ThreadScope, text: str, element: str, thread: str) -> str:
    """A scalar of another thread, in words of 32 bits."""
    if element == "ptr":
        number = scope.define(f"ptrtoint ptr {text} to i64")
        return scope.define(f"inttoptr i64 {_shuffled(scope, number, 'i64', thread)} to ptr")
    if element in ("half", "float", "double"):
        whole = f"i{element_bits(element)}"
        number = scope.define(f"bitcast {element} {text} to {whole}")
        found = _shuffled(scope, number, whole, thread)
        return scope.define(f"bitcast {whole} {found} to {element}")
    if element == "i64":
        high = scope.define(f"lshr i64 {text}, 32")
        words = [
            scope.define(f"zext i32 {_shuffled(scope, half, 'i32', thread)} to i64")
            for half in (scope.define(f"trunc i64 {word} to i32") for word in (text, high))
        ]
        moved = scope.define(f"shl i64 {words[1]}, 32")
        return scope.define(f"or i64 {moved}, {words[0]}")
    if element == "i32":
        operands = f"i32 {MASK}, i32 {text}, i32 {thread}, i32 {SEGMENT}"
        return scope.define(f"call i32 @{_SHUFFLE}({operands})")
    wide = scope.define(f"zext {element} {text} to i32")
    return scope.define(f"trunc i32 {_shuffled(scope, wide, 'i32', thread)} to {element}")

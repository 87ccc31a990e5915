"""Which memory each address of a function lies in, and who may read what is written there.

In: a function of LLVM IR. Out: ``MemoryRoots``. Not done here: instructions (``thread_function``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.backends.cuda.lane_group import pieces_of
from ingot_compiler.backends.host.function_text import LANE_SLOT, TEAM_SLOT
from ingot_compiler.backends.host.ir_text import Instruction, IrFunction, operands, parts, typed
from ingot_compiler.backends.host.llvm_value import SIZES_BYTES
from ingot_runtime.lazy_dataclass import dataclass

Roots = frozenset[str]


@dataclass(frozen=True, slots=True)
class MemoryRoots:
    """``roots``: what each address may point into: an argument, or memory of the function.
    ``common``: memories that are written and read. ``own``: (name, LLVM's text) of memory that each
    thread may have for itself, as only scalars lie there; ``shared``: (name, bytes) of what threads
    have together, ``team`` of what all threads of a block have together."""

    roots: Mapping[str, Roots]
    common: Roots
    own: tuple[tuple[str, str], ...]
    shared: tuple[tuple[str, int], ...]
    team: tuple[tuple[str, int], ...]

    def lane_slot(self, place: str) -> int:
        """The lanes of the vectors of which each thread keeps its own lanes at an address; 0 where
        it is none of such memory."""
        found = {_lanes_of_slot(root) for root in self.roots.get(place, frozenset((place,)))}
        return found.pop() if len(found) == 1 else 0

    def may_be_read_by_others(self, place: str) -> bool:
        """Whether another thread may read what is written at an address."""
        return bool(self.roots.get(place, frozenset((place,))) & self.common)


def memory_roots(function: IrFunction) -> MemoryRoots:
    """Follow the addresses of a function."""
    roots: dict[str, Roots] = {}
    slots: dict[str, str] = {}
    read, written, in_lanes = set[str](), set[str](), set[str]()
    for block in function.blocks:
        for each in block.instructions:
            if each.opcode == "alloca":
                slots[each.result] = each.rest
            elif each.opcode in ("getelementptr", "select"):
                roots[each.result] = _sources(roots, each)
            place = _place_read(each) or _place_written(each)
            if place:
                found = roots.get(place, frozenset((place,)))
                (read if _place_read(each) else written).update(found)
                in_lanes.update(found if "<" in each.rest else ())
    team = {name for name in slots if name.startswith(TEAM_SLOT)}
    own = {
        name: _own_slot(name, text)
        for name, text in slots.items()
        if _lanes_of_slot(name) or name not in {*in_lanes, *team}
    }
    sizes = {name: _bytes(text) for name, text in slots.items() if name not in own}
    shared = tuple((name, size) for name, size in sizes.items() if name not in team)
    of_team = tuple((name, size) for name, size in sizes.items() if name in team)
    common = frozenset(read & written) - own.keys() - team
    return MemoryRoots(roots, common, tuple(own.items()), shared, of_team)


def _lanes_of_slot(name: str) -> int:
    """Of memory in which each lane keeps what is its own; else 0."""
    lanes, _, _ = name.removeprefix(LANE_SLOT).partition("_")
    return int(lanes) if name.startswith(LANE_SLOT) else 0


def _own_slot(name: str, text: str) -> str:
    """The memory that a thread has for itself: of vectors, that of its lanes."""
    lanes = _lanes_of_slot(name)
    if not lanes:
        return text
    element, count, *rest = parts(text)
    own = int(count.removeprefix("i64 ")) // lanes * pieces_of(lanes)
    return ", ".join((element, f"i64 {own}", *rest))


def _sources(roots: Mapping[str, Roots], found: Instruction) -> Roots:
    texts = [typed(part) for part in parts(found.rest)[1:]]
    names = [each.text for each in texts if each.element == "ptr"]
    return frozenset[str]().union(*(roots.get(name, frozenset((name,))) for name in names))


def _place_read(found: Instruction) -> str:
    if found.opcode == "load":
        return parts(found.rest)[1].rpartition(" ")[2]
    if found.opcode == "call" and ("masked.load" in found.rest or "masked.gather" in found.rest):
        return _argument(found, 0)
    return ""


def _place_written(found: Instruction) -> str:
    if found.opcode == "store":
        return parts(found.rest)[1].rpartition(" ")[2]
    if found.opcode == "call" and ("masked.store" in found.rest or "masked.scatter" in found.rest):
        return _argument(found, 1)
    return ""


def _argument(found: Instruction, number: int) -> str:
    return operands(found.rest.partition("(")[2].removesuffix(")"))[number].text


def _bytes(text: str) -> int:
    element, count, *_ = parts(text)
    return SIZES_BYTES[element] * int(count.removeprefix("i64 "))

"""Which memory each address of a function lies in, and who may read what is written there.

In: a kernel. Out: ``MemoryRoots``. Not done here: instructions (``thread_function``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ingot_compiler.backends.cuda.lane_group import pieces_of
from ingot_compiler.codegen.kernel_ir import READS, WRITES, Instruction, KernelIr
from ingot_compiler.codegen.llvm_value import SIZES_BYTES, constant
from ingot_runtime.lazy_dataclass import dataclass

Roots = frozenset[str]
SLOTS = ("alloca", "lane_slot", "team_slot")


@dataclass(frozen=True, slots=True)
class MemoryRoots:
    """``roots``: what each address may point into: an argument, or memory of the function.
    ``lanes``: of the vectors in memory of which each lane is read by the one that wrote it.
    ``common``: memories that are written and read. ``own``: what allocates memory that each thread
    may have for itself, as only scalars lie there; ``shared``: (name, bytes) of what threads
    have together, ``team`` of what all threads of a block have together."""

    roots: Mapping[str, Roots]
    lanes: Mapping[str, int]
    common: Roots
    own: tuple[Instruction, ...]
    shared: tuple[tuple[str, int], ...]
    team: tuple[tuple[str, int], ...]

    def lane_slot(self, place: str) -> int:
        """The lanes of the vectors of which each thread keeps its own lanes at an address; 0 where
        it is none of such memory."""
        found = {self.lanes.get(root, 0) for root in self.roots.get(place, frozenset((place,)))}
        return found.pop() if len(found) == 1 else 0

    def may_be_read_by_others(self, place: str) -> bool:
        """Whether another thread may read what is written at an address."""
        return bool(self.roots.get(place, frozenset((place,))) & self.common)


def memory_roots(kernel: KernelIr) -> MemoryRoots:
    """Follow the addresses of a kernel."""
    roots: dict[str, Roots] = {}
    slots: dict[str, Instruction] = {}
    read, written, in_lanes = set[str](), set[str](), set[str]()
    for each in kernel.instructions:
        if each.opcode in SLOTS:
            slots[each.result.name] = each
        elif each.opcode in ("getelementptr", "select"):
            roots[each.result.name] = _sources(roots, each)
        place = _place_read(each) or _place_written(each)
        if place:
            found = roots.get(place, frozenset((place,)))
            (read if _place_read(each) else written).update(found)
            has_lanes = any(value.lanes for value in (each.result, *each.operands))
            in_lanes.update(found if has_lanes else ())
    of = {opcode: [name for name in slots if slots[name].opcode == opcode] for opcode in SLOTS}
    lanes = {name: slots[name].operands[1].numbers[0] for name in of["lane_slot"]}
    team = of["team_slot"]
    own = [name for name in slots if name in lanes or name not in {*in_lanes, *team}]
    sizes = {name: _bytes(slot) for name, slot in slots.items() if name not in own}
    shared = tuple((name, size) for name, size in sizes.items() if name not in team)
    of_team = tuple((name, size) for name, size in sizes.items() if name in team)
    common = frozenset(read & written) - {*own, *team}
    allocated = tuple(_own_slot(slots[name], lanes.get(name, 0)) for name in own)
    return MemoryRoots(roots, lanes, common, allocated, shared, of_team)


def _own_slot(slot: Instruction, lanes: int) -> Instruction:
    """The memory that a thread has for itself: of vectors, that of its lanes."""
    count = slot.operands[0].numbers[0]
    own = count // lanes * pieces_of(lanes) if lanes else count
    return replace(slot, opcode="alloca", operands=(constant(own, "i64"),))


def _sources(roots: Mapping[str, Roots], instruction: Instruction) -> Roots:
    names = [each.name for each in instruction.operands if each.element == "ptr"]
    return frozenset[str]().union(*(roots.get(name, frozenset((name,))) for name in names))


def _place_read(instruction: Instruction) -> str:
    is_read = instruction.opcode == "load" or instruction.word in READS
    return instruction.operands[0].name if is_read else ""


def _place_written(instruction: Instruction) -> str:
    is_written = instruction.opcode == "store" or instruction.word in WRITES
    return instruction.operands[1].name if is_written else ""


def _bytes(slot: Instruction) -> int:
    return SIZES_BYTES[slot.word] * slot.operands[0].numbers[0]

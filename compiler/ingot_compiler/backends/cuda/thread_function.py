"""One function of vectors as what each of eight threads does.

In: a kernel, which memory its addresses lie in. Out: instructions of a thread. Not done here: the
kernel around them (``kernel_ir``).

An instruction that computes lane by lane stays what it is, with the lanes of one thread. Where
threads may read what others write (a buffer that is read and written, scratch), they wait for each
other before and after every store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.backends.cuda import thread_lanes
from ingot_compiler.backends.cuda.lane_group import pieces_of
from ingot_compiler.backends.cuda.memory_roots import SLOTS, MemoryRoots
from ingot_compiler.backends.cuda.thread_scope import ThreadScope
from ingot_compiler.codegen.kernel_ir import WRITES, Instruction, KernelIr
from ingot_compiler.codegen.llvm_text import instruction_text
from ingot_compiler.codegen.llvm_value import (
    SIZES_BYTES,
    LlvmValue,
    constant,
    element_bits,
    poison,
)
from ingot_compiler.ir.errors import InternalError


def emit_function(scope: ThreadScope, roots: MemoryRoots, kernel: KernelIr) -> LlvmValue:
    """Write the blocks of a kernel without its `ret`, and return what that would return.

    Raises:
        InternalError: an instruction that eight threads cannot share.
    """
    for block in kernel.blocks:
        scope.start(block.label)
        for found in block.instructions:
            if found.opcode not in (*SLOTS, "ret"):
                _translate(scope, roots, found)
    return kernel.blocks[-1].instructions[-1].operands[0]


def _translate(scope: ThreadScope, roots: MemoryRoots, found: Instruction) -> None:
    opcode = found.opcode
    if opcode == "store":
        _write(scope, roots, found)
    elif opcode == "load" and found.result.lanes:
        scope.put(_at_lanes(scope, roots, found, 0, found.result))
    elif opcode == "getelementptr" and roots.lane_slot(found.operands[0].name):
        _own_vectors(scope, found, roots.lane_slot(found.operands[0].name))
    elif opcode == "call":
        _call(scope, roots, found)
    elif opcode == "bitcast":
        _bitcast(scope, found)
    elif opcode in _STATEMENTS and any(each.lanes for each in found.operands):
        _STATEMENTS[opcode](scope, found)
    else:
        scope.put(found)


def _write(scope: ThreadScope, roots: MemoryRoots, found: Instruction) -> None:
    """An instruction that writes its first operand where its second one says."""
    value, place = found.operands[:2]
    is_shared = roots.may_be_read_by_others(place.name)
    if is_shared:
        scope.wait()
    scope.put(found if place.lanes else _at_lanes(scope, roots, found, 1, value))
    if is_shared:
        scope.wait()


def _own_vectors(scope: ThreadScope, found: Instruction, lanes: int) -> None:
    """An address in memory that has, of each vector, the lanes of one thread."""
    pointer, index = found.operands
    threads = lanes // pieces_of(lanes)
    if index.numbers:
        own = constant(index.numbers[0] // threads, "i64")
    else:
        own = scope.define("sdiv", (index, constant(threads, "i64")), "i64", word="exact")
    scope.put(replace(found, operands=(pointer, own)))


def _at_lanes(
    scope: ThreadScope, roots: MemoryRoots, found: Instruction, number: int, kind: LlvmValue
) -> Instruction:
    """An instruction on lanes that lie beside each other from an operand on, whose lanes in a
    thread begin where that thread has them. Threads that have the same lane, or a scalar, write the
    same number."""
    operands = list(found.operands)
    if kind.lanes and not roots.lane_slot(operands[number].name):
        at = scope.thread_offset(kind.lanes)
        operands[number] = scope.offset(scope.own(operands[number]), at, kind.element)
    # No more than the lanes of a thread have.
    size = SIZES_BYTES[kind.element] * _own_lanes(kind)
    align = min(found.align, size & -size) if found.opcode != "call" and kind.lanes else found.align
    return replace(found, operands=tuple(operands), align=align)


def _own_lanes(kind: LlvmValue) -> int:
    """The elements that a thread has of a vector."""
    return pieces_of(kind.lanes)


def _call(scope: ThreadScope, roots: MemoryRoots, found: Instruction) -> None:
    name = found.word
    if name == "llvm.prefetch":
        return
    if name.endswith("pmadd.wd"):
        _multiply_pairs(scope, found)
    elif name == "llvm.masked.load":
        scope.put(_at_lanes(scope, roots, found, 0, found.result))
    elif name in WRITES:
        _write(scope, roots, found)
    else:
        scope.put(found)


def _multiply_pairs(scope: ThreadScope, found: Instruction) -> None:
    """Sums of the products of pairs of i16 that lie beside each other, as i32."""
    left, right = found.operands
    products: tuple[LlvmValue, ...] = ()
    for first in (0, 1):
        numbers = range(first, left.lanes, 2)
        halves = [thread_lanes.shuffle(scope, each, each, numbers) for each in (left, right)]
        a, b = (scope.convert("sext", half, "i32") for half in halves)
        products = (*products, scope.binary("mul", a, b))
    scope.write("add", products, scope.own(found.result))


def _bitcast(scope: ThreadScope, found: Instruction) -> None:
    value, kind = found.operands[0], found.result
    if value.element == "i1" and not kind.lanes:
        scope.write("sext", (thread_lanes.any_lane(scope, value),), kind)
        return
    bits = [_own_lanes(each) * element_bits(each.element) for each in (value, kind)]
    if bits[0] != bits[1]:
        why = instruction_text(found)
        raise InternalError("lanes of other threads cannot be seen as another type", why=why)
    scope.put(found)


def _shuffle(scope: ThreadScope, found: Instruction) -> None:
    left, right, mask = found.operands
    if mask.numbers == (0,) and mask.lanes == left.lanes:  # it has one number in its first lane
        scope.put(found)
        return
    made = thread_lanes.shuffle(scope, left, right, mask.lane_numbers)
    scope.write("bitcast", (made,), scope.own(found.result))


def _select(scope: ThreadScope, found: Instruction) -> None:
    """Number by number: LLVM 22 ends the process where lanes of bytes are chosen by lanes."""
    result, given = scope.own(found.result), [scope.own(each) for each in found.operands]
    if result.lanes <= 1:
        scope.put(found)
        return
    made = poison(result.element, result.lanes)
    for number in range(result.lanes):
        chosen = scope.select(*(scope.extract(each, number) for each in given))
        made = scope.insert(made, chosen, number)
    scope.write("bitcast", (made,), result)


def _extract(scope: ThreadScope, found: Instruction) -> None:
    vector, lane = found.operands
    made = thread_lanes.extract(scope, vector, lane.numbers[0])
    scope.write("bitcast", (made,), found.result)


_STATEMENTS: dict[str, Callable[[ThreadScope, Instruction], None]] = {
    "extractelement": _extract,
    "select": _select,
    "shufflevector": _shuffle,
}

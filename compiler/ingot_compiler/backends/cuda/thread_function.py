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
        for instruction in block.instructions:
            if instruction.opcode not in (*SLOTS, "ret"):
                _translate(scope, roots, instruction)
    return kernel.blocks[-1].instructions[-1].operands[0]


def _translate(scope: ThreadScope, roots: MemoryRoots, instruction: Instruction) -> None:
    opcode = instruction.opcode
    if opcode == "store":
        _write(scope, roots, instruction)
    elif opcode == "load" and instruction.result.lanes:
        scope.put(_at_lanes(scope, roots, instruction, 0, instruction.result))
    elif opcode == "getelementptr" and roots.lane_slot(instruction.operands[0].name):
        _own_vectors(scope, instruction, roots.lane_slot(instruction.operands[0].name))
    elif opcode == "call":
        _call(scope, roots, instruction)
    elif opcode == "bitcast":
        _bitcast(scope, instruction)
    elif opcode in _STATEMENTS and any(each.lanes for each in instruction.operands):
        _STATEMENTS[opcode](scope, instruction)
    else:
        scope.put(instruction)


def _write(scope: ThreadScope, roots: MemoryRoots, instruction: Instruction) -> None:
    """An instruction that writes its first operand where its second one says."""
    value, place = instruction.operands[:2]
    is_shared = roots.may_be_read_by_others(place.name)
    if is_shared:
        scope.wait()
    scope.put(instruction if place.lanes else _at_lanes(scope, roots, instruction, 1, value))
    if is_shared:
        scope.wait()


def _own_vectors(scope: ThreadScope, instruction: Instruction, lanes: int) -> None:
    """An address in memory that has, of each vector, the lanes of one thread."""
    pointer, index = instruction.operands
    threads = lanes // pieces_of(lanes)
    if index.numbers:
        own = constant(index.numbers[0] // threads, "i64")
    else:
        own = scope.define("sdiv", (index, constant(threads, "i64")), "i64", word="exact")
    scope.put(replace(instruction, operands=(pointer, own)))


def _at_lanes(
    scope: ThreadScope, roots: MemoryRoots, instruction: Instruction, number: int, kind: LlvmValue
) -> Instruction:
    """An instruction on lanes that lie beside each other from an operand on, whose lanes in a
    thread begin where that thread has them. Threads that have the same lane, or a scalar, write the
    same number."""
    operands = list(instruction.operands)
    if kind.lanes and not roots.lane_slot(operands[number].name):
        at = scope.thread_offset(kind.lanes)
        operands[number] = scope.offset(scope.own(operands[number]), at, kind.element)
    # No more than the lanes of a thread have.
    size = SIZES_BYTES[kind.element] * _own_lanes(kind)
    align = (
        min(instruction.align, size & -size)
        if instruction.opcode != "call" and kind.lanes
        else instruction.align
    )
    return replace(instruction, operands=tuple(operands), align=align)


def _own_lanes(kind: LlvmValue) -> int:
    """The elements that a thread has of a vector."""
    return pieces_of(kind.lanes)


def _call(scope: ThreadScope, roots: MemoryRoots, instruction: Instruction) -> None:
    name = instruction.word
    if name == "llvm.prefetch":
        return
    if name.endswith("pmadd.wd"):
        _multiply_pairs(scope, instruction)
    elif name == "llvm.masked.load":
        scope.put(_at_lanes(scope, roots, instruction, 0, instruction.result))
    elif name in WRITES:
        _write(scope, roots, instruction)
    else:
        scope.put(instruction)


def _multiply_pairs(scope: ThreadScope, instruction: Instruction) -> None:
    """Sums of the products of pairs of i16 that lie beside each other, as i32."""
    left, right = instruction.operands
    products: tuple[LlvmValue, ...] = ()
    for first in (0, 1):
        numbers = range(first, left.lanes, 2)
        halves = [thread_lanes.shuffle(scope, each, each, numbers) for each in (left, right)]
        a, b = (scope.convert("sext", half, "i32") for half in halves)
        products = (*products, scope.binary("mul", a, b))
    scope.write("add", products, scope.own(instruction.result))


def _bitcast(scope: ThreadScope, instruction: Instruction) -> None:
    value, kind = instruction.operands[0], instruction.result
    if value.element == "i1" and not kind.lanes:
        scope.write("sext", (thread_lanes.any_lane(scope, value),), kind)
        return
    bits = [_own_lanes(each) * element_bits(each.element) for each in (value, kind)]
    if bits[0] != bits[1]:
        why = instruction_text(instruction)
        raise InternalError("lanes of other threads cannot be seen as another type", why=why)
    scope.put(instruction)


def _shuffle(scope: ThreadScope, instruction: Instruction) -> None:
    left, right, mask = instruction.operands
    if mask.numbers == (0,) and mask.lanes == left.lanes:  # it has one number in its first lane
        scope.put(instruction)
        return
    made = thread_lanes.shuffle(scope, left, right, mask.lane_numbers)
    scope.write("bitcast", (made,), scope.own(instruction.result))


def _select(scope: ThreadScope, instruction: Instruction) -> None:
    """Number by number: LLVM 22 ends the process where lanes of bytes are chosen by lanes."""
    result, given = (
        scope.own(instruction.result),
        [scope.own(each) for each in instruction.operands],
    )
    if result.lanes <= 1:
        scope.put(instruction)
        return
    made = poison(result.element, result.lanes)
    for number in range(result.lanes):
        chosen = scope.select(*(scope.extract(each, number) for each in given))
        made = scope.insert(made, chosen, number)
    scope.write("bitcast", (made,), result)


def _extract(scope: ThreadScope, instruction: Instruction) -> None:
    vector, lane = instruction.operands
    made = thread_lanes.extract(scope, vector, lane.numbers[0])
    scope.write("bitcast", (made,), instruction.result)


_STATEMENTS: dict[str, Callable[[ThreadScope, Instruction], None]] = {
    "extractelement": _extract,
    "select": _select,
    "shufflevector": _shuffle,
}

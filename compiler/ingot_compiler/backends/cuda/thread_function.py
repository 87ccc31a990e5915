"""One function of vectors in LLVM IR as what each of eight threads does.

In: the text of a module. Out: ``ThreadBody``. Not done here: the kernel around it (``kernel_ir``).

An instruction that computes lane by lane stays what it is, with the lanes of one thread. Where
threads may read what others write (a buffer that is read and written, scratch), they wait for each
other before and after every store.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ingot_compiler.backends.cuda import thread_lanes
from ingot_compiler.backends.cuda.lane_group import MASK, pieces_of
from ingot_compiler.backends.cuda.memory_roots import MemoryRoots, memory_roots
from ingot_compiler.backends.cuda.thread_scope import ThreadScope
from ingot_compiler.backends.host.ir_text import (
    Array,
    Instruction,
    operands,
    parts,
    read_function,
    typed,
)
from ingot_compiler.backends.host.llvm_value import SIZES_BYTES, LlvmValue, element_bits
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

_CALL = re.compile(r"(<\d+ x \w+>|\w+) @llvm\.([\w.]+)\((.*)\)$")
_ALIGN = re.compile(r"align (\d+)")
_BARRIER = f"call void @llvm.nvvm.bar.warp.sync(i32 {MASK})"


@dataclass(frozen=True, slots=True)
class ThreadBody:
    """``tables``: lines before the function; ``start``: what runs before ``lines``, which begin
    with the block ``entry``; ``shared``: (name, bytes) of memory that the threads share, ``team``
    of memory that all threads of a block share."""

    tables: tuple[str, ...]
    start: tuple[str, ...]
    lines: tuple[str, ...]
    shared: tuple[tuple[str, int], ...]
    team: tuple[tuple[str, int], ...]


def thread_body(text: str, prefix: str) -> ThreadBody:
    """Translate the function of a module; ``prefix`` begins the names of tables.

    Raises:
        InternalError: an instruction that eight threads cannot share.
    """
    function = read_function(text)
    scope, roots = ThreadScope(prefix), memory_roots(function)
    arrays = tuple(_table(prefix, array) for array in function.arrays)
    names = re.compile(rf"@({'|'.join(array.name for array in function.arrays) or '$'})\b")
    for block in function.blocks:
        scope.lines.append(f"{block.label}:")
        for found in block.instructions:
            rest = names.sub(rf"@{prefix}_\1", found.rest)
            _translate(scope, roots, Instruction(found.result, found.opcode, rest))
    own = tuple(f"  {name} = alloca {text}" for name, text in roots.own)
    return ThreadBody(
        (*arrays, *scope.tables), (*own, *scope.start), tuple(scope.lines), roots.shared, roots.team
    )


def _table(prefix: str, array: Array) -> str:
    numbers = ", ".join(f"{array.element} {text}" for text in array.values)
    kind = f"[{len(array.values)} x {array.element}]"
    return f"@{prefix}_{array.name} = private unnamed_addr constant {kind} [{numbers}], align 64"


def _translate(scope: ThreadScope, roots: MemoryRoots, found: Instruction) -> None:
    name, opcode, rest = found.result, found.opcode, found.rest
    if opcode == "alloca":
        return
    if opcode == "store":
        value, place = parts(rest)[:2]
        pointer = place.rpartition(" ")[2]
        _synchronised(scope, roots, pointer, lambda: _store(scope, roots, value, rest))
    elif opcode == "load" and "<" in rest:
        _load(scope, roots, name, rest)
    elif opcode == "getelementptr" and roots.lane_slot(_base(rest)):
        _own_vectors(scope, name, rest, roots.lane_slot(_base(rest)))
    elif opcode == "call":
        _call(scope, roots, found)
    elif opcode == "bitcast":
        _bitcast(scope, name, rest)
    elif opcode in _STATEMENTS and "<" in rest:
        _STATEMENTS[opcode](scope, name, rest)
    else:
        _as_it_is(scope, found)


def _as_it_is(scope: ThreadScope, found: Instruction) -> None:
    equals = f"{found.result} = " if found.result else ""
    scope.line(f"{equals}{found.opcode} {scope.own(found.rest)}".rstrip())


def _synchronised(
    scope: ThreadScope, roots: MemoryRoots, place: str, write: Callable[[], None]
) -> None:
    is_shared = roots.may_be_read_by_others(place)
    if is_shared and scope.lines[-1].strip() != _BARRIER:
        scope.line(_BARRIER)
    write()
    if is_shared:
        scope.line(_BARRIER)


def _base(rest: str) -> str:
    return parts(rest)[1].rpartition(" ")[2]


def _own_vectors(scope: ThreadScope, name: str, rest: str, lanes: int) -> None:
    """An address in memory that has, of each vector, the lanes of one thread."""
    element, pointer, index = parts(rest)
    threads, number = lanes // pieces_of(lanes), index.rpartition(" ")[2]
    if number.isdigit():
        own = str(int(number) // threads)
    else:
        own = scope.define(f"sdiv exact i64 {number}, {threads}")
    scope.line(f"{name} = getelementptr {element}, {pointer}, i64 {own}")


def _place(scope: ThreadScope, roots: MemoryRoots, pointer: str, kind: LlvmValue) -> str:
    """Where the lanes of a thread lie, of lanes that lie beside each other from ``pointer`` on."""
    if roots.lane_slot(pointer):
        return pointer
    at = scope.thread_offset(kind.lanes)
    return scope.define(f"getelementptr {kind.element}, ptr {pointer}, i64 {at}")


def _alignment(kind: LlvmValue, rest: str) -> int:
    """In bytes: no more than the lanes of a thread have."""
    found = _ALIGN.search(rest)
    size = SIZES_BYTES[kind.element] * _own_lanes(kind)
    return min(int(found[1]) if found else SIZES_BYTES[kind.element], size & -size)


def _own_lanes(kind: LlvmValue) -> int:
    """The elements that a thread has of a vector."""
    return pieces_of(kind.lanes)


def _load(scope: ThreadScope, roots: MemoryRoots, name: str, rest: str) -> None:
    kind, pointer, *_ = parts(rest)
    shape = typed(f"{kind} x")
    at = _place(scope, roots, pointer.rpartition(" ")[2], shape)
    scope.line(f"{name} = load {scope.own(kind)}, ptr {at}, align {_alignment(shape, rest)}")


def _store(scope: ThreadScope, roots: MemoryRoots, value: str, rest: str) -> None:
    """Threads that have the same lane, or a scalar, write the same number."""
    shape, pointer = typed(value), parts(rest)[1].rpartition(" ")[2]
    if not shape.lanes:
        scope.line(f"store {rest}")
        return
    at = _place(scope, roots, pointer, shape)
    scope.line(f"store {scope.own(value)}, ptr {at}, align {_alignment(shape, rest)}")


def _call(scope: ThreadScope, roots: MemoryRoots, found: Instruction) -> None:
    read = _CALL.match(found.rest)
    if read is None:
        raise InternalError("a call has no form in PTX", why=found.rest)
    result, function, arguments = read.groups()
    if function.startswith("prefetch"):
        return
    if function.endswith("pmadd.wd"):
        _multiply_pairs(scope, found.result, arguments, typed(f"{result} x"))
    elif function.startswith("masked.load"):
        given = parts(arguments)
        given[0] = _masked_place(scope, roots, given[0], typed(f"{result} x"))
        _call_with(scope, found.result, result, function, given)
    elif function.startswith(("masked.store", "masked.scatter")):
        given = parts(arguments)
        place = given[1].rpartition(" ")[2]

        def write() -> None:
            if function.startswith("masked.store"):
                given[1] = _masked_place(scope, roots, given[1], typed(given[0]))
            _call_with(scope, "", result, function, given)

        _synchronised(scope, roots, place, write)
    else:
        _call_with(scope, found.result, result, function, parts(arguments))


def _masked_place(scope: ThreadScope, roots: MemoryRoots, pointer: str, kind: LlvmValue) -> str:
    head, _, name = pointer.rpartition(" ")
    return f"{head} {_place(scope, roots, name, kind)}"


def _call_with(scope: ThreadScope, name: str, result: str, function: str, given: list[str]) -> None:
    equals = f"{name} = " if name else ""
    scope.line(scope.own(f"{equals}call {result} @llvm.{function}({', '.join(given)})"))


def _multiply_pairs(scope: ThreadScope, name: str, arguments: str, kind: LlvmValue) -> None:
    """Sums of the products of pairs of i16 that lie beside each other, as i32."""
    left, right = operands(arguments)
    products = list[str]()
    wide = f"<{_own_lanes(kind)} x i32>"
    for first in (0, 1):
        numbers = range(first, left.lanes, 2)
        halves = [thread_lanes.shuffle(scope, each, each, numbers) for each in (left, right)]
        a, b = (scope.define(f"sext {half.typed} to {wide}") for half in halves)
        products.append(scope.define(f"mul {wide} {a}, {b}"))
    scope.line(f"{name} = add {wide} {products[0]}, {products[1]}")


def _bitcast(scope: ThreadScope, name: str, rest: str) -> None:
    source, _, target = rest.rpartition(" to ")
    value, kind = typed(source), typed(f"{target} x")
    if value.element == "i1" and not kind.lanes:
        found = thread_lanes.any_lane(scope, value)
        scope.line(f"{name} = sext i1 {found} to {target}")
        return
    bits = [(_own_lanes(each)) * element_bits(each.element) for each in (value, kind)]
    if bits[0] != bits[1]:
        raise InternalError("lanes of other threads cannot be seen as another type", why=rest)
    scope.line(f"{name} = bitcast {scope.own(source)} to {scope.own(target)}")


def _shuffle(scope: ThreadScope, name: str, rest: str) -> None:
    left, right, mask = operands(rest)
    if mask.text == "zeroinitializer":  # of a vector that has one number in its first lane
        scope.line(f"{name} = shufflevector {scope.own(rest)}")
        return
    made = thread_lanes.shuffle(scope, left, right, thread_lanes.mask_numbers(mask))
    scope.line(f"{name} = bitcast {made.typed} to {made.type}")


def _select(scope: ThreadScope, name: str, rest: str) -> None:
    """Number by number: LLVM 22 ends the process where lanes of bytes are chosen by lanes."""
    given = [scope.own_value(each) for each in operands(rest)]
    kind, made = given[1], "poison"
    if kind.lanes <= 1:
        scope.line(f"{name} = select {scope.own(rest)}")
        return
    for number in range(kind.lanes):
        condition, left, right = (
            scope.define(f"extractelement {each.typed}, i32 {number}") if each.lanes else each.text
            for each in given
        )
        chosen = f"select i1 {condition}, {kind.element} {left}, {kind.element} {right}"
        one = f"{kind.element} {scope.define(chosen)}"
        made = scope.define(f"insertelement {kind.type} {made}, {one}, i32 {number}")
    scope.line(f"{name} = bitcast {kind.type} {made} to {kind.type}")


def _extract(scope: ThreadScope, name: str, rest: str) -> None:
    vector, lane = operands(rest)
    found = thread_lanes.extract(scope, vector, int(lane.text))
    scope.line(f"{name} = bitcast {vector.element} {found} to {vector.element}")


_STATEMENTS: dict[str, Callable[[ThreadScope, str, str], None]] = {
    "extractelement": _extract,
    "select": _select,
    "shufflevector": _shuffle,
}

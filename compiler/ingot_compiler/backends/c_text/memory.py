"""Instructions that read and write memory, and addresses.

In: an instruction, the scope. Out: statements. Not done here: where buffers come from
(a back end each).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.lanes import from_lanes
from ingot_compiler.backends.c_text.scope import CScope
from ingot_compiler.backends.c_text.values import PRIVATE, CValue, size_bytes
from ingot_compiler.backends.host.ir_text import operands, parts, typed
from ingot_compiler.backends.host.llvm_value import LlvmValue


def stack(scope: CScope, name: str, rest: str) -> None:
    """``alloca``."""
    element, count, align = parts(rest)
    plain, alignment_bytes = name[1:], int(align.removeprefix("align "))
    kind, number = scope.dialect.scalar_name(element), count.removeprefix("i64 ")
    scope.line(
        f"{kind} {plain}_memory[{number}] {scope.dialect.stack_suffix(alignment_bytes, int(number))}"
    )
    start = scope.dialect.pointer(PRIVATE, "")
    scope.define_pointer(name, PRIVATE, f"({start}){plain}_memory")


def address(scope: CScope, name: str, rest: str) -> None:
    """``getelementptr``: a base and an index, either of which may have lanes."""
    element, *others = parts(rest)
    base, index = (scope.value(typed(text)) for text in others)
    size = size_bytes(element)
    if not base.lanes and not index.lanes:
        scope.define_pointer(name, base.space, f"{base.text} + {index.text} * {size}")
        return
    lanes = base.lanes or index.lanes
    count = scope.dialect.piece_count(lanes)
    steps = [_step(scope.dialect, index, number, size) for number in range(count)]
    if base.lanes:
        steps = [f"{at} + {step}" for at, step in zip(base.pieces, steps, strict=True)]
    made = scope.define(name, "ptr", lanes, steps)
    start = base.base or base.text
    scope.values[name] = CValue("ptr", lanes, made.pieces, base.space, start)


def _step(dialect: CDialect, index: CValue, number: int, size: int) -> str:
    """Byte offsets of one piece."""
    if not index.lanes:
        return f"{index.text} * {size}"
    piece = index.pieces[number]
    wide = piece if index.element == "i64" else dialect.converted("i64", index.piece_lanes, piece)
    return f"{wide} * {size}"


def load(scope: CScope, name: str, rest: str) -> None:
    """A scalar, or lanes that lie beside each other."""
    kind, pointer, *_ = parts(rest)
    shape = typed(f"{kind} x")
    place = scope.value(typed(pointer))
    count = scope.dialect.piece_count(shape.lanes)
    texts = [_at(scope.dialect, place, shape, number) for number in range(count)]
    scope.define(name, shape.element, shape.lanes, texts)


def _at(dialect: CDialect, place: CValue, shape: LlvmValue, number: int) -> str:
    """One piece from memory."""
    lanes = dialect.piece_lanes(shape.lanes)
    pointer = dialect.typed_pointer(place.space, shape.element, lanes, read=True)
    at = f" + {number}" if number else ""
    return f"*({pointer}{place.text}{at})"


def store(scope: CScope, rest: str) -> None:
    """A scalar, or lanes beside each other."""
    first, pointer, *_ = parts(rest)
    value, place = scope.value(typed(first)), scope.value(typed(pointer))
    pointer = scope.dialect.typed_pointer(place.space, value.element, value.piece_lanes, read=False)
    for number, piece in enumerate(value.pieces):
        at = f" + {number}" if number else ""
        scope.line(f"*({pointer}{place.text}{at}) = {piece}")


def masked_read(scope: CScope, name: str, result: str, arguments: str) -> None:
    """``llvm.masked.load`` and ``gather``: lanes where the mask holds, else those of another
    vector."""
    shape = typed(f"{result} x")
    place, mask, rest = (scope.value(operand) for operand in operands(arguments))
    texts = [
        _read_lane(scope.dialect, shape.element, (place, mask, rest), lane)
        for lane in range(shape.lanes)
    ]
    scope.define(name, shape.element, shape.lanes, from_lanes(scope.dialect, shape.element, texts))


def masked_write(scope: CScope, arguments: str) -> None:
    """``llvm.masked.store`` and ``scatter``."""
    dialect = scope.dialect
    value, place, mask = (scope.value(operand) for operand in operands(arguments))
    for lane in range(value.lanes):
        pointer = _lane_pointer(dialect, place, value.element, lane, read=False)
        condition = "" if _always(dialect, mask) else f"if ({dialect.lane(mask, lane)}) "
        scope.line(f"{condition}*{pointer} = {dialect.lane(value, lane)}")


def _read_lane(dialect: CDialect, element: str, values: Sequence[CValue], lane: int) -> str:
    place, mask, rest = values
    text = f"*{_lane_pointer(dialect, place, element, lane, read=True)}"
    if _always(dialect, mask):
        return text
    return f"({dialect.lane(mask, lane)} ? {text} : {dialect.lane(rest, lane)})"


def _always(dialect: CDialect, mask: CValue) -> bool:
    return set(mask.pieces) == {dialect.splat("i1", mask.piece_lanes, "-1")}


def _lane_pointer(dialect: CDialect, place: CValue, element: str, lane: int, *, read: bool) -> str:
    kind = dialect.typed_pointer(place.space, element, 0, read=read)
    if place.lanes:
        return f"({kind}({place.base} + {dialect.lane(place, lane)}))"
    return f"({kind}{place.text} + {lane})"


def pointers_chosen(scope: CScope, name: str, texts: Sequence[CValue]) -> None:
    """``select`` of two addresses of one space."""
    condition, left, right = texts
    scope.define_pointer(name, left.space, f"{condition.text} ? {left.text} : {right.text}")


def declared(dialect: CDialect, value: CValue, piece: str) -> str:
    """The declaration of a variable that jumps assign to."""
    return f"{dialect.type_name(value.element, value.piece_lanes)} {piece};"

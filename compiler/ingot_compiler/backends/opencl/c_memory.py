"""Instructions that read and write memory, and addresses.

In: an instruction, the scope. Out: statements. Not done here: where buffers come from
(``kernel_source``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.host.ir_text import operands, parts, typed
from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_compiler.backends.opencl.c_lanes import from_lanes
from ingot_compiler.backends.opencl.c_scope import CScope
from ingot_compiler.backends.opencl.c_values import (
    LANES_MAX,
    CValue,
    converted,
    piece_count,
    scalar_name,
    size_bytes,
    type_name,
)


def stack(scope: CScope, name: str, rest: str) -> None:
    """``alloca``."""
    element, count, align = parts(rest)
    plain, alignment = name[1:], align.removeprefix("align ")
    kind, number = scalar_name(element), count.removeprefix("i64 ")
    scope.line(f"{kind} {plain}_memory[{number}] __attribute__((aligned({alignment})))")
    scope.define_pointer(name, "__private", f"(__private uchar *){plain}_memory")


def address(scope: CScope, name: str, rest: str) -> None:
    """``getelementptr``: a base and an index, either of which may have lanes."""
    element, *others = parts(rest)
    base, index = (scope.value(typed(text)) for text in others)
    size = size_bytes(element)
    if not base.lanes and not index.lanes:
        scope.define_pointer(name, base.space, f"{base.text} + {index.text} * {size}")
        return
    lanes = base.lanes or index.lanes
    steps = [_step(index, number, size) for number in range(piece_count(lanes))]
    if base.lanes:
        steps = [f"{at} + {step}" for at, step in zip(base.pieces, steps, strict=True)]
    made = scope.define(name, "ptr", lanes, steps)
    start = base.base or base.text
    scope.values[name] = CValue("ptr", lanes, made.pieces, base.space, start)


def _step(index: CValue, number: int, size: int) -> str:
    """Byte offsets of one piece."""
    if not index.lanes:
        return f"{index.text} * {size}"
    piece = index.pieces[number]
    wide = piece if index.element == "i64" else _widened(index, piece)
    return f"{wide} * {size}"


def _widened(index: CValue, piece: str) -> str:
    return converted(type_name("i64", index.piece_lanes), index.piece_lanes, piece)


def load(scope: CScope, name: str, rest: str) -> None:
    """A scalar, or lanes that lie beside each other."""
    kind, pointer, *_ = parts(rest)
    shape = typed(f"{kind} x")
    place = scope.value(typed(pointer))
    texts = [_at(place, shape, number) for number in range(piece_count(shape.lanes))]
    scope.define(name, shape.element, shape.lanes, texts)


def _typed_pointer(place: CValue, element: str, *, read: bool, lanes: int = 0) -> str:
    constant, aligned = "const " if read else "", "_at" if lanes > 1 else ""
    return f"({place.space} {constant}{type_name(element, lanes)}{aligned} *)"


def _at(place: CValue, shape: LlvmValue, number: int) -> str:
    """One piece from memory."""
    lanes = min(shape.lanes, LANES_MAX)
    pointer = _typed_pointer(place, shape.element, read=True, lanes=lanes)
    at = f" + {number}" if number else ""
    return f"*({pointer}{place.text}{at})"


def store(scope: CScope, rest: str) -> None:
    """A scalar, or lanes beside each other."""
    first, pointer, *_ = parts(rest)
    value, place = scope.value(typed(first)), scope.value(typed(pointer))
    pointer = _typed_pointer(place, value.element, read=False, lanes=value.piece_lanes)
    for number, piece in enumerate(value.pieces):
        at = f" + {number}" if number else ""
        scope.line(f"*({pointer}{place.text}{at}) = {piece}")


def masked_read(scope: CScope, name: str, result: str, arguments: str) -> None:
    """``llvm.masked.load`` and ``gather``: lanes where the mask holds, else those of another
    vector."""
    shape = typed(f"{result} x")
    place, mask, rest = (scope.value(operand) for operand in operands(arguments))
    texts = [
        _guarded(mask, lane, f"*{_lane_pointer(place, shape.element, lane, read=True)}", rest)
        for lane in range(shape.lanes)
    ]
    scope.define(name, shape.element, shape.lanes, from_lanes(shape.element, texts))


def masked_write(scope: CScope, arguments: str) -> None:
    """``llvm.masked.store`` and ``scatter``."""
    value, place, mask = (scope.value(operand) for operand in operands(arguments))
    for lane in range(value.lanes):
        pointer = _lane_pointer(place, value.element, lane, read=False)
        condition = "" if _always(mask) else f"if ({mask.lane(lane)}) "
        scope.line(f"{condition}*{pointer} = {value.lane(lane)}")


def _guarded(mask: CValue, lane: int, text: str, rest: CValue) -> str:
    return text if _always(mask) else f"({mask.lane(lane)} ? {text} : {rest.lane(lane)})"


def _always(mask: CValue) -> bool:
    return all(piece.endswith(")(-1)") for piece in mask.pieces)


def _lane_pointer(place: CValue, element: str, lane: int, *, read: bool) -> str:
    kind = _typed_pointer(place, element, read=read)
    if place.lanes:
        return f"({kind}({place.base} + {place.lane(lane)}))"
    return f"({kind}{place.text} + {lane})"


def pointers_chosen(scope: CScope, name: str, texts: Sequence[CValue]) -> None:
    """``select`` of two addresses of one space."""
    condition, left, right = texts
    scope.define_pointer(name, left.space, f"{condition.text} ? {left.text} : {right.text}")


def declared(value: CValue, piece: str) -> str:
    """The declaration of a variable that jumps assign to."""
    if value.space:
        return f"{value.space} uchar *{piece};"
    return f"{type_name(value.element, value.piece_lanes)} {piece};"

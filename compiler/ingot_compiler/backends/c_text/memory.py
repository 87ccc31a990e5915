"""Instructions that read and write memory, and addresses.

In: an instruction, the scope. Out: statements. Not done here: where buffers come from
(a back end each).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.lanes import from_lanes
from ingot_compiler.backends.c_text.scope import CScope, CStatement
from ingot_compiler.backends.c_text.values import PRIVATE, CValue, size_bytes
from ingot_compiler.codegen.kernel_ir import Instruction
from ingot_compiler.codegen.llvm_value import LlvmValue


def stack(scope: CScope, instruction: Instruction) -> None:
    """``alloca``."""
    dialect, name, count = (
        scope.dialect,
        f"{instruction.result.name[1:]}_memory",
        instruction.operands[0].numbers[0],
    )
    kind = dialect.scalar_name(instruction.word)
    text = f"  {kind} {name}[{count}] {dialect.stack_suffix(instruction.align, count)};"
    scope.statements.append(CStatement(text, name, type=kind, count=count))
    scope.define_pointer(
        instruction.result, PRIVATE, f"({dialect.pointer(PRIVATE, '')}){name}", [name]
    )


def address(scope: CScope, instruction: Instruction) -> None:
    """``getelementptr``: a base and an index, either of which may have lanes."""
    base, index = map(scope.value, instruction.operands)
    size = size_bytes(instruction.word)
    if not base.lanes and not index.lanes:
        text = f"{base.text} + {index.text} * {size}"
        scope.define_pointer(instruction.result, base.space, text, [base.text, index.text])
        return
    count = scope.dialect.piece_count(base.lanes or index.lanes)
    steps = [_step(scope.dialect, index, number, size) for number in range(count)]
    if base.lanes:
        steps = [f"{at} + {step}" for at, step in zip(base.pieces, steps, strict=True)]
    made = scope.define(instruction.result, steps, [base, index] if base.lanes else [index])
    start = base.base or base.text
    scope.values[instruction.result.name] = CValue(
        "ptr", made.lanes, made.pieces, base.space, start
    )


def _step(dialect: CDialect, index: CValue, number: int, size: int) -> str:
    """Byte offsets of one piece."""
    if not index.lanes:
        return f"{index.text} * {size}"
    piece = index.pieces[number]
    wide = piece if index.element == "i64" else dialect.converted("i64", index.piece_lanes, piece)
    return f"{wide} * {size}"


def load(scope: CScope, instruction: Instruction) -> None:
    """A scalar, or lanes that lie beside each other."""
    place = scope.value(instruction.operands[0])
    count = scope.dialect.piece_count(instruction.result.lanes)
    texts = [_at(scope.dialect, place, instruction.result, number) for number in range(count)]
    scope.define(instruction.result, texts, [place])


def _at(dialect: CDialect, place: CValue, shape: LlvmValue, number: int) -> str:
    """One piece from memory."""
    lanes = dialect.piece_lanes(shape.lanes)
    pointer = dialect.typed_pointer(place.space, shape.element, lanes, read=True)
    at = f" + {number}" if number else ""
    return f"*({pointer}{place.text}{at})"


def store(scope: CScope, instruction: Instruction) -> None:
    """A scalar, or lanes beside each other."""
    value, place = map(scope.value, instruction.operands)
    pointer = scope.dialect.typed_pointer(place.space, value.element, value.piece_lanes, read=False)
    for number, piece in enumerate(value.pieces):
        at = f" + {number}" if number else ""
        scope.line(f"*({pointer}{place.text}{at}) = {piece}", [place.text, piece])


def masked_read(scope: CScope, instruction: Instruction) -> None:
    """``llvm.masked.load`` and ``gather``: lanes where the mask holds, else those of another
    vector."""
    result, values = instruction.result, [scope.value(each) for each in instruction.operands]
    read = values[:1] if _always(instruction.operands[1]) else values
    texts = [_read_lane(scope.dialect, result.element, read, lane) for lane in range(result.lanes)]
    scope.define(result, from_lanes(scope.dialect, result.element, texts), read)


def masked_write(scope: CScope, instruction: Instruction) -> None:
    """``llvm.masked.store`` and ``scatter``."""
    dialect, always = scope.dialect, _always(instruction.operands[2])
    value, place, mask = values = [scope.value(each) for each in instruction.operands]
    for lane in range(value.lanes):
        pointer = _lane_pointer(dialect, place, value.element, lane, read=False)
        condition = "" if always else f"if ({dialect.lane(mask, lane)}) "
        read = [piece for each in values for piece in each.share(lane, value.lanes)]
        scope.line(f"{condition}*{pointer} = {dialect.lane(value, lane)}", read)


def _always(mask: LlvmValue) -> bool:
    """Whether a mask is known to hold in all lanes."""
    return not mask.name and all(mask.numbers)


def _read_lane(dialect: CDialect, element: str, values: Sequence[CValue], lane: int) -> str:
    """``values``: the place, and where not every lane is read the mask and the rest."""
    text = f"*{_lane_pointer(dialect, values[0], element, lane, read=True)}"
    if len(values) == 1:
        return text
    mask, rest = (dialect.lane(each, lane) for each in values[1:])
    return f"({mask} ? {text} : {rest})"


def _lane_pointer(dialect: CDialect, place: CValue, element: str, lane: int, *, read: bool) -> str:
    kind = dialect.typed_pointer(place.space, element, 0, read=read)
    if place.lanes:
        return f"({kind}({place.base} + {dialect.lane(place, lane)}))"
    return f"({kind}{place.text} + {lane})"


def pointers_chosen(scope: CScope, result: LlvmValue, values: Sequence[CValue]) -> None:
    """``select`` of two addresses of one space."""
    condition, left, right = (value.text for value in values)
    text = f"{condition} ? {left} : {right}"
    scope.define_pointer(result, values[1].space, text, [condition, left, right])

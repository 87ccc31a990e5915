"""ONNX's ops on sequences and on values that may be absent.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import concat, size_scalar, unsqueeze
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.index_checks import checked
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import (
    add_value,
    known_position,
    make_sequence,
    parts_of,
    sequence_of,
    value_of,
)
from ingot_compiler.frontend.build.value_kinds import kind_of, remade
from ingot_compiler.frontend.build.values import KnownSequence, Maybe, Nothing, RaggedSequence
from ingot_compiler.frontend.families.sequences.ragged import (
    counted,
    element_at,
    erased,
    inserted,
    length_of,
    pack,
    shape_of,
)
from ingot_compiler.frontend.families.sequences.ragged_axes import concatenated
from ingot_compiler.frontend.model.onnx_node import counted_axis
from ingot_compiler.ir.op_type_error import require


def _concat_from_sequence(context: OpContext) -> Sequence[int]:
    """The elements of a sequence one after the other, or stacked.

    In: a sequence. Out: core ``concat``, or a gather where a run decides the length.
    """
    sequence, stacks = sequence_of(context, context.operand(0)), context.bool_attribute("new_axis")
    if isinstance(sequence, RaggedSequence) or min(sequence.items, default=0) < 0:
        packed = pack(context, sequence)
        if packed.rank is None:
            raise Unsupported("elements whose number of dimensions only a run knows")
        axis = counted_axis(context.int_attribute("axis", 0), packed.rank + stacks)
        return (concatenated(context, packed, axis, stacks=stacks),)
    return (_of_elements(context, sequence, stacks=stacks),)


def _of_elements(context: OpContext, sequence: KnownSequence, *, stacks: bool) -> int:
    elements = sequence.items
    require(len(elements) > 0, "a sequence with elements", "an empty one")
    rank = len(shape_of(context, elements[0])) + stacks
    axis = counted_axis(context.int_attribute("axis", 0), rank)
    parts = [unsqueeze(context, value, (axis,)) for value in elements] if stacks else elements
    return concat(context, parts, axis)


def _optional(context: OpContext) -> Sequence[int]:
    """The operand itself, or an optional that holds nothing.

    In: perhaps a tensor or a sequence. Out: the same value.
    """
    value = context.optional(0)
    return (add_value(context, Nothing()) if value is None else value,)


def _optional_get_element(context: OpContext) -> Sequence[int]:
    """What an optional holds.

    In: a tensor, a sequence or an optional. Out: the same value; a call whose optional holds
    nothing is refused.
    """
    value = context.operand(0)
    found = value_of(context, value)
    full = "an optional with an element"
    require(not isinstance(found, Nothing), full, "an empty one")
    if not isinstance(found, Maybe):
        return (value,)
    first, *others = parts_of(context, found.value)
    parts = checked(context, first, found.given, full), *others
    return (remade(context, kind_of(context, found.value), iter(parts)),)


def _optional_has_element(context: OpContext) -> Sequence[int]:
    """Whether there is an operand that holds something.

    In: perhaps a tensor, a sequence or an optional. Out: a bool, known unless the optional is an
    input or what a branch gives.
    """
    value = context.optional(0)
    found = None if value is None else value_of(context, value)
    if isinstance(found, Maybe):
        return (found.given,)
    return (context.scalar("bool", value is not None and not isinstance(found, Nothing)),)


def _sequence_at(context: OpContext) -> Sequence[int]:
    """One element of a sequence.

    In: a sequence, a position. Out: the tensor.
    """
    sequence, position = sequence_of(context, context.operand(0)), context.operand(1)
    if isinstance(sequence, KnownSequence):
        at = known_position(context, position, len(sequence.items))
        if at is not None:
            return (sequence.items[at],)
    packed = pack(context, sequence)
    at = counted(context, position, length_of(context, packed))
    return (element_at(context, packed, at),)


def _sequence_construct(context: OpContext) -> Sequence[int]:
    """A sequence of its operands.

    In: tensors. Out: a sequence that is known while the model is translated.
    """
    return (make_sequence(context, context.given()),)


def _sequence_empty(context: OpContext) -> Sequence[int]:
    """A sequence without elements.

    In: nothing. Out: a sequence.
    """
    return (make_sequence(context, ()),)


def _sequence_erase(context: OpContext) -> Sequence[int]:
    """A sequence without one element, at a position or the last.

    In: a sequence, perhaps a position. Out: a sequence.
    """
    sequence, given = sequence_of(context, context.operand(0)), context.optional(1)
    if isinstance(sequence, KnownSequence):
        items = sequence.items
        require(len(items) > 0, "a sequence with elements", "an empty one")
        at = len(items) - 1 if given is None else known_position(context, given, len(items))
        if at is not None:
            return (make_sequence(context, (*items[:at], *items[at + 1 :])),)
    packed = pack(context, sequence)
    position = context.scalar("i64", -1) if given is None else given
    place = counted(context, position, length_of(context, packed))
    return (add_value(context, erased(context, packed, place)),)


def _sequence_insert(context: OpContext) -> Sequence[int]:
    """A sequence with one element more, at a position or at the end.

    In: a sequence, a tensor, perhaps a position. Out: a sequence.
    """
    sequence, value = sequence_of(context, context.operand(0)), context.operand(1)
    given = context.optional(2)
    if isinstance(sequence, KnownSequence):
        items = sequence.items
        count = len(items)
        at = count if given is None else known_position(context, given, count, to_end=True)
        if at is not None:
            return (make_sequence(context, (*items[:at], value, *items[at:])),)
    packed = pack(context, sequence)
    place = None
    if given is not None:
        place = counted(context, given, length_of(context, packed), to_end=True)
    return (add_value(context, inserted(context, packed, value, place)),)


def _sequence_length(context: OpContext) -> Sequence[int]:
    """How many elements a sequence has.

    In: a sequence. Out: an i64 of rank 0.
    """
    sequence = sequence_of(context, context.operand(0))
    if isinstance(sequence, KnownSequence):
        return (size_scalar(context, len(sequence.items)),)
    return (size_scalar(context, length_of(context, sequence)),)


OPS = (
    OnnxOp("ConcatFromSequence", _concat_from_sequence),
    OnnxOp("Optional", _optional),
    OnnxOp("OptionalGetElement", _optional_get_element),
    OnnxOp("OptionalHasElement", _optional_has_element),
    OnnxOp("SequenceAt", _sequence_at),
    OnnxOp("SequenceConstruct", _sequence_construct),
    OnnxOp("SequenceEmpty", _sequence_empty),
    OnnxOp("SequenceErase", _sequence_erase),
    OnnxOp("SequenceInsert", _sequence_insert),
    OnnxOp("SequenceLength", _sequence_length),
)

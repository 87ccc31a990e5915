"""Text form of a fused graph: inputs and outputs, buffers, steps, constants; ``parse_fused`` reads
it back.

In: a ``FusedGraph``. Out: text that ends with a newline; ``FUSED``, how its parts are written and
read; ``read_steps``. Not done here: fusion (``fuse``), the nodes of a group (``parse_group``).

The number behind ``#`` is a comment: that of the step. The memory plan counts alike where each
group is one launch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from typing import get_args

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.message import InputRef, Message, NodeRef, OutputRef, Piece, Text
from ingot_compiler.ir.sizes.profile import Profile, profile_text
from ingot_compiler.ir.text.parse_graph import read_source
from ingot_compiler.ir.text.print_graph import print_graph, print_node
from ingot_compiler.ir.text.read_terms import read_dim, read_dtype, read_profile
from ingot_compiler.ir.text.spelling import Language, Speller, Starts, choice, numbered
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.groups.fused import (
    COPY_WORDS,
    AlsoCondition,
    CopyPart,
    FirstSteps,
    FusedGraph,
    Group,
    HeldPair,
    Launch,
    Operand,
    OtherSteps,
    Position,
    Source,
    Spare,
    Step,
    SymbolName,
    SymbolSet,
    parts_of,
)
from ingot_compiler.lowering.groups.parse_group import read_group
from ingot_compiler.lowering.loops.loop_values import BufferNumber

_REFERENCES: Mapping[str, Callable[[int], Piece]] = {
    "node": NodeRef,
    "input": InputRef,
    "output": OutputRef,
}
_STARTED, _ENDED = "\0", "\1"
"""Where a step has its number; where a branch or a loop takes another."""
_NUMBERED = re.compile(f"[{_STARTED}{_ENDED}]")


def print_fused(fused: FusedGraph) -> str:
    """Print all of the stage."""
    return "".join(f"{line}\n" for line in _lines(fused))


def _lines(fused: FusedGraph) -> Iterator[str]:
    yield from (f"input {index}: {kind}" for index, kind in enumerate(fused.inputs))
    yield from (f"output {index}: {kind}" for index, kind in enumerate(fused.outputs))
    for index, buffer in enumerate(fused.buffers):
        yield f"buffer b{index}: {FUSED.show(buffer)}"
    yield from map(FUSED.show, fused.specialisations)
    numbers = count()
    text = _print_steps(fused.steps, "")
    yield from _NUMBERED.sub(lambda mark: _numbered(mark[0], next(numbers)), text).splitlines()
    for index, expression in enumerate(fused.constants):
        yield f"constant {index}: {print_graph(expression)}".rstrip()


def _numbered(mark: str, number: int) -> str:
    return f"  # {number}" if mark == _STARTED else ""


# ---- steps ---------------------------------------------------------------------------------------


def _print_steps(steps: Sequence[Step], space: str = "  ") -> str:
    """A line or more for each, with marks where the numbers are counted."""
    lines: list[str] = []
    for step in steps:
        first, *rest = _print_step(step).split("\n")
        lines += [f"{first}{_STARTED}", *rest]
        lines[-1] += _ENDED if parts_of(step) else ""
    return "".join(f"{space}{line}\n" for line in lines)


def _print_step(step: Step) -> str:
    if isinstance(step, Launch):
        why = "expected groups, got one that was expanded"
        raise InternalError("launches have no text in stage 6", f"program {step.program}", why)
    return "\n".join(_group_lines(step)) if isinstance(step, Group) else FUSED.show(step)


def read_steps(reader: Reader, *ends: str) -> tuple[Step, ...]:
    """The steps up to one of some words, which is left, or the end."""
    found: list[Step] = []
    while reader.token.text not in (*ends, ""):
        reader.enter(len(found))
        found.append(_read_step(reader))
        reader.leave()
    return tuple(found)


@cache
def _starts() -> Starts:
    kinds = (kind for kind in get_args(Step) if kind not in (Group, Launch))
    return FUSED.starts(kinds)


def _read_step(reader: Reader) -> Step:
    """One step; its first word says which."""
    start, words = reader.token, (*_starts(), "kernel")
    if start.text not in words:
        raise reader.fail(f"expected one of {' '.join(words)}, got {start}")
    if reader.accept("kernel"):
        return read_group(reader)
    step: Step = FUSED.read(_starts()[start.text][0][1], reader)
    if isinstance(step, SymbolSet) and len(step.symbols) != len(step.values):
        counts = f"expected {len(step.symbols)} values, got {len(step.values)}"
        raise reader.fail(counts, start)
    return step


def _steps_of(part: int) -> Speller:
    """The steps of a branch or a loop."""

    def read(reader: Reader) -> tuple[Step, ...]:
        path, reader.path = reader.path, (*reader.path, part)
        with reader.nested():
            steps = read_steps(reader, "}")
        reader.path = path
        return steps

    return Speller(_print_steps, read)


# ---- parts of steps ------------------------------------------------------------------------------


def _print_position(position: int) -> str:
    return f" {position}" if position >= 0 else ""


def _read_position(reader: Reader) -> int:
    return reader.integer() if reader.token.kind == "INTEGER" else -1


def _print_source(source: Source) -> str:
    return f" @[{', '.join(map(str, source))}]" if source else ""


def _behind(word: str, inner: Speller, nothing: object) -> Speller:
    """`` WORD VALUE``, or nothing for a value that says so."""
    return Speller(
        lambda value: "" if value == nothing else f" {word} {inner.show(value)}",
        lambda reader: inner.read(reader) if reader.accept(word) else nothing,
    )


def _several(item: Speller) -> Speller:
    """At least one, with commas between, whatever follows."""
    return Speller(
        lambda values: ", ".join(map(item.show, values)),
        lambda reader: reader.listed(lambda: item.read(reader)),
    )


def _print_text(text: Text) -> str:
    """A text in quotes; one in pieces in brackets."""
    if isinstance(text, str):
        return json.dumps(text)
    return f"[{', '.join(map(_print_piece, text.pieces))}]"


def _print_piece(piece: Piece) -> str:
    match piece:
        case str():
            return json.dumps(piece)
        case NodeRef(ordinal):
            return f"node {ordinal}"
        case InputRef(position):
            return f"input {position}"
        case OutputRef(position):
            return f"output {position}"
        case _:
            return f"size {format_dim(piece)}"


def _read_text(reader: Reader) -> Text:
    """``"what"`` or ``["in pieces", size s0]``."""
    if not reader.accept("["):
        return reader.string()
    return Message(reader.items(lambda: _read_piece(reader), "]"))


def _read_piece(reader: Reader) -> Piece:
    """A piece of a text: ``"words"``, ``node 1``, ``size 2*s0``."""
    if reader.token.kind == "STRING":
        return reader.string()
    start = reader.token
    word = reader.choice(("node", "input", "output", "size"))
    if word != "size":
        return _REFERENCES[word](reader.integer())
    size = read_dim(reader)
    if isinstance(size, int):
        raise reader.fail(f"expected a size with a symbol, got {size}", start)
    return size


def _group_lines(group: Group) -> Iterator[str]:
    """The nodes, with the types of what they make and what is only known here; then what is read
    and written."""
    anchor = f" anchor {group.anchor}" if group.anchor != -1 else ""
    device = f" on device {group.device}" if group.device else ""
    plugin = f" of {group.plugin}" if group.plugin else ""
    yield f"kernel {group.method}{plugin}{device}{anchor}{_print_source(group.source)} {{"
    types = dict(group.types)
    lines: list[str] = []
    for node in group.nodes:
        print_node(node, types, "  ", lines)
    yield from lines
    yield from (f"  reads {_operand(operand)}" for operand in group.operands)
    yield from (f"  writes {_operand(operand)}" for operand in group.results)
    said = {operand.value for operand in (*group.operands, *group.results)}
    said |= {result for node in group.nodes for result in node.results}
    yield from (f"  knows %{value}: {kind}" for value, kind in group.types if value not in said)
    if group.stop_reason:
        yield f"  stop_reason {json.dumps(group.stop_reason)}"
    yield "}"


def _operand(operand: Operand) -> str:
    strides = ", ".join(map(format_dim, operand.view.strides))
    offset = format_dim(operand.view.offset)
    return f"%{operand.value}: {operand.type} in b{operand.buffer} at {offset} strides [{strides}]"


_DIM = Speller(format_dim, read_dim)
_SYMBOL = Speller(str, lambda reader: reader.name("a symbol"))
_BUFFER = numbered("b", "a buffer (b0)")
_PAIRS = Speller(
    lambda pairs: ", ".join(map(FUSED.show, pairs)),
    lambda reader: reader.listed(lambda: FUSED.read(HeldPair, reader)),
)
FUSED: Language = Language(
    {
        int: Speller(str, Reader.integer),
        bool: choice({True: "size", False: "number"}),
        Dim: _DIM,
        DType: Speller(str, read_dtype),
        Profile: Speller(profile_text, read_profile),
        Text: Speller(_print_text, _read_text),
        CopyPart: choice(COPY_WORDS),
        Position: Speller(_print_position, _read_position),
        SymbolName: _SYMBOL,
        AlsoCondition: _behind("and", _SYMBOL, ""),
        BufferNumber: _BUFFER,
        Spare: _behind("by", _BUFFER, -1),
        Source: Speller(_print_source, read_source),
        tuple[SymbolName, ...]: _several(_SYMBOL),
        tuple[Dim, ...]: _several(_DIM),
        tuple[HeldPair, ...]: _PAIRS,
        tuple[BufferNumber, ...]: _behind("holding", _several(_BUFFER), ()),
        FirstSteps: _steps_of(0),
        OtherSteps: _steps_of(1),
    }
)
"""How buffers, steps and versions are written."""

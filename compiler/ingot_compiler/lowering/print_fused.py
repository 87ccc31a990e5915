"""Text form of a fused graph: inputs and outputs, buffers, steps, constants; ``parse_fused`` reads
it back.

In: a ``FusedGraph``. Out: text that ends with a newline. Not done here: fusion (``fuse``).

The number behind ``#`` is a comment: that of the step. The memory plan counts alike where each
group is one launch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ingot_compiler.ir.dims import format_dim
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.message import InputRef, NodeRef, OutputRef, Piece, Text
from ingot_compiler.ir.print_graph import print_graph, print_node
from ingot_compiler.ir.profile import profile_text
from ingot_compiler.lowering.fused import (
    COPY_WORDS,
    BufferSpec,
    Copy,
    FusedGraph,
    Group,
    Grow,
    HoldState,
    IfStep,
    Launch,
    LoopStep,
    Operand,
    Requirement,
    Step,
    SymbolRead,
    SymbolSet,
    step_count,
)


def print_fused(fused: FusedGraph) -> str:
    """Print all of the stage."""
    return "".join(f"{line}\n" for line in _lines(fused))


def _lines(fused: FusedGraph) -> Iterator[str]:
    yield from (f"input {index}: {kind}" for index, kind in enumerate(fused.inputs))
    yield from (f"output {index}: {kind}" for index, kind in enumerate(fused.outputs))
    yield from (f"buffer b{index}: {_buffer(buffer)}" for index, buffer in enumerate(fused.buffers))
    for each in fused.specialisations:
        yield f"specialisation from {each.first_step} where {profile_text(each.profile)}"
    yield from _steps(fused.steps, 0, "")
    for index, expression in enumerate(fused.constants):
        yield f"constant {index}: {print_graph(expression)}".rstrip()


def _buffer(buffer: BufferSpec) -> str:
    place = f" {buffer.index}" if buffer.index >= 0 else ""
    room = f"{buffer.dtype} x {format_dim(buffer.element_count)}"
    return f"{room}, {buffer.kind}{place}{_device(buffer.device)}"


def _device(device: int) -> str:
    return f" on device {device}" if device else ""


def _source(source: Sequence[int]) -> str:
    return f" @[{', '.join(map(str, source))}]" if source else ""


def _steps(steps: Sequence[Step], first: int, indent: str) -> Iterator[str]:
    number = first
    for step in steps:
        head, *rest = _step(step, number)
        yield f"{indent}{head}  # {number}"
        yield from (f"{indent}{line}" for line in rest)
        number += step_count((step,))


def _step(step: Step, number: int) -> Iterator[str]:
    match step:
        case SymbolRead():
            yield f"read {_read(step)}{_source(step.source)}"
        case SymbolSet():
            yield f"set {', '.join(step.symbols)} = {', '.join(map(format_dim, step.values))}"
        case HoldState():
            yield f"hold {_hold(step)}"
        case Grow():
            yield f"grow b{step.buffer} to {format_dim(step.element_count)}{_kept(step)}"
        case Requirement():
            what = f"{_text(step.what)}{_source(step.source)}"
            yield f"require {format_dim(step.difference)} = 0, {what}"
        case Copy():
            yield f"{COPY_WORDS[step.part]} b{step.operand} to b{step.result}{_source(step.source)}"
        case IfStep():
            yield f"if {step.condition} {{"
            yield from _steps(step.then, number + 1, "  ")
            yield "} else {"
            yield from _steps(step.otherwise, number + 1 + step_count(step.then), "  ")
            yield "}"
        case LoopStep():
            yield f"while {_loop_head(step)} {{"
            yield from _steps(step.body, number + 1, "  ")
            yield "}"
        case Group():
            yield from _group(step)
        case Launch():
            why = "expected groups, got one that was expanded"
            raise InternalError("launches have no text in stage 6", f"step {number}", why)


def _read(step: SymbolRead) -> str:
    kind = "size" if step.is_size else "number"
    element = f"b{step.buffer}[{format_dim(step.index)}]"
    most = "" if step.most is None else f" at most {step.most}"
    return f"{kind} {step.symbol} = {element}: {step.dtype}{most}"


def _hold(step: HoldState) -> str:
    pairs = ", ".join(
        f"{pair.input} in {pair.output} by {format_dim(pair.row_bytes)}" for pair in step.pairs
    )
    lengths = f"{format_dim(step.past)} to {format_dim(step.rows)}"
    return f"{', '.join(step.symbols)} from {lengths}: {pairs}"


def _kept(step: Grow) -> str:
    spare = f" by b{step.spare}" if step.spare >= 0 else ""
    return f", keep {format_dim(step.kept)}{spare}" if step.kept != 0 or spare else ""


def _loop_head(step: LoopStep) -> str:
    condition = f" and {step.condition}" if step.condition else ""
    held = f" holding {', '.join(f'b{buffer}' for buffer in step.held)}" if step.held else ""
    return f"{step.counter} < {format_dim(step.count)}{condition}{held}"


def _text(text: Text) -> str:
    """A text in quotes; one in pieces in brackets."""
    if isinstance(text, str):
        return json.dumps(text)
    return f"[{', '.join(map(_piece, text.pieces))}]"


def _piece(piece: Piece) -> str:
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


def _group(group: Group) -> Iterator[str]:
    """The nodes, with the types of what they make and what is only known here; then what is read
    and written."""
    anchor = f" anchor {group.anchor}" if group.anchor != -1 else ""
    plugin = f" of {group.plugin}" if group.plugin else ""
    yield f"kernel {group.method}{plugin}{_device(group.device)}{anchor}{_source(group.source)} {{"
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

"""``main``'s instruction list without its registers: for sizes that are known, what runs, in order.

In: a ``Program``, shapes of inputs. Out: ``StraightLine``. Not done here: its text (``main_text``),
the list (``host_program``).

Loops whose counts are numbers are laid out; what only the data decide is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingot_compiler.ir.errors import LimitError, UnsupportedError, UserError
from ingot_compiler.ir.message import Text, message
from ingot_runtime.format.evaluate import Evaluator
from ingot_runtime.format.program import OPCODES, Program
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.fused import FusedGraph
    from ingot_compiler.memory.memory_plan import MemoryPlan

INPUT, OUTPUT, WEIGHTS, WORKSPACE = "input", "output", "weights", "workspace"
_STEPS_MAX = 1 << 16
_OTHERS = message("choose others: ", OptionRef("shape", "NAME=1x3x224x224"))
_BUNDLE = "compile a bundle, and use the loader in C"
_REFUSED = {
    "read": "a value that the model computes decides what runs",
    "buffer_grow": "the data decide the size of a tensor",
    "output_buffer": "the data decide the size of an output",
    "copy": "the data decide the size of a tensor",
}


@dataclass(frozen=True, slots=True)
class BufferPlace:
    """``number``: of an input or output, else 0; where in it a buffer begins, in bytes."""

    kind: str
    number: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class CalledKernel:
    """One launch; ``messages``: numbers of texts, one per requirement of the kernel."""

    kernel: int
    buffers: tuple[BufferPlace, ...]
    scalars: tuple[int, ...]
    extent: int
    messages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StraightLine:
    """The launches in order; bytes of workspace, and of the scratch behind it; ``shapes``: of the
    outputs; ``tensors``: where inputs and outputs lie in the workspace, if they do."""

    calls: tuple[CalledKernel, ...]
    workspace_bytes: int
    scratch_bytes: int
    shapes: tuple[tuple[int, ...], ...]
    tensors: tuple[tuple[int, ...], ...] = ()


def with_tensors(line: StraightLine, plan: MemoryPlan, fused: FusedGraph) -> StraightLine:
    """Return the launches for inputs and outputs that lie in the workspace, where a plan puts
    them."""
    places = {
        (fused.buffers[item.buffer].kind, fused.buffers[item.buffer].index): item.offset_bytes or 0
        for item in plan.of(0)
    }
    tensors = {
        kind: tuple(offset for (what, _), offset in sorted(places.items()) if what == kind)
        for kind in (INPUT, OUTPUT)
    }

    def moved(place: BufferPlace) -> BufferPlace:
        if place.kind not in (INPUT, OUTPUT):
            return place
        return BufferPlace(WORKSPACE, 0, tensors[place.kind][place.number] + place.offset_bytes)

    calls = tuple(replace(call, buffers=tuple(map(moved, call.buffers))) for call in line.calls)
    size_bytes = max(line.workspace_bytes, plan.pools[0].size_bytes)
    return replace(
        line, calls=calls, workspace_bytes=size_bytes, tensors=(tensors[INPUT], tensors[OUTPUT])
    )


def straight_line(
    program: Program,
    messages: Sequence[Text],
    inputs: Sequence[Sequence[int]],
    output_ranks: Sequence[int],
) -> StraightLine:
    """Follow the program for inputs of these shapes; ``messages``: with references.

    Raises:
        UnsupportedError: the data decide what runs, or the size of a tensor.
        UserError: the program refuses these shapes. LimitError: more launches than source is for.
    """
    run = _Run(program, messages, inputs)
    run.follow()
    shapes = tuple(
        tuple(run.sizes[number, axis] for axis in range(rank))
        for number, rank in enumerate(output_ranks)
    )
    return StraightLine(tuple(run.calls), run.workspace_bytes[0], run.scratch_bytes, shapes)


class _Run(Evaluator):
    """Where buffers lie, and what is launched, while the program is followed."""

    def __init__(
        self, program: Program, messages: Sequence[Text], inputs: Sequence[Sequence[int]]
    ) -> None:
        super().__init__(program, 1)
        self.messages = messages
        self.inputs = inputs
        self.buffers: dict[int, BufferPlace] = {}
        self.calls: list[CalledKernel] = []
        self.sizes: dict[tuple[int, int], int] = {}

    def step(self, at: int) -> int:
        """Do one instruction; return the next."""
        name = OPCODES[self.program.instructions[at][0]][0]
        if name in _REFUSED:
            what = "C source of a model whose sizes or steps depend on data"
            raise UnsupportedError(what, "main", _REFUSED[name], _BUNDLE)
        return super().step(at)

    def refuse(self, message: int) -> int:
        """The program refuses these shapes."""
        why = self.messages[message]
        raise UserError("the model refuses these shapes", "main", why, _OTHERS)

    def _input_dim(self, register: int, number: int, axis: int) -> None:
        self.registers[register] = self.inputs[number][axis]

    def _output_dim(self, number: int, axis: int, register: int) -> None:
        self.sizes[number, axis] = self.registers[register]

    def _buffer_input(self, buffer: int, number: int) -> None:
        self.buffers[buffer] = BufferPlace(INPUT, number, 0)

    def _buffer_output(self, buffer: int, number: int) -> None:
        self.buffers[buffer] = BufferPlace(OUTPUT, number, 0)

    def _buffer_weights(self, buffer: int, offset_bytes: int, _: int) -> None:
        self.buffers[buffer] = BufferPlace(WEIGHTS, 0, offset_bytes)

    def _buffer_workspace(self, buffer: int, _device: int, register: int, _size: int) -> None:
        self.buffers[buffer] = BufferPlace(WORKSPACE, 0, self.registers[register])

    def _launch(
        self,
        _device: int,
        kernel: int,
        _ordinal: int,
        buffers: tuple[int, ...],
        scalars: tuple[int, ...],
        extent: int,
        _grain: int,
        messages: tuple[int, ...] = (),
    ) -> None:
        places = tuple(self.buffers[buffer] for buffer in buffers)
        values = tuple(self.registers[register] for register in scalars)
        if len(self.calls) == _STEPS_MAX:
            why = f"expected at most {_STEPS_MAX} launches, as loops are laid out, got more"
            raise LimitError("C source of a long loop", "main", why, _BUNDLE)
        if self.registers[extent] > 0:
            call = CalledKernel(kernel, places, values, self.registers[extent], messages)
            self.calls.append(call)

    _launch_checked = _launch

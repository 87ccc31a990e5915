"""``main``'s instruction list without its registers: for sizes that are known, what runs, in order.

In: a ``Program``, shapes of inputs. Out: ``StraightLine``. Not done here: its text (``main_text``),
the list (``host_program``).

Loops whose counts are numbers are laid out; what only the data decide is refused.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ingot_compiler.ir.errors import LimitError, UnsupportedError, UserError
from ingot_compiler.ir.message import Text, message
from ingot_runtime.format.program import OPCODES, Program
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

if TYPE_CHECKING:
    from ingot_compiler.lowering.fused import FusedGraph
    from ingot_compiler.memory.memory_plan import MemoryPlan

INPUT, OUTPUT, WEIGHTS, WORKSPACE = "input", "output", "weights", "workspace"
_STEPS_MAX = 1 << 16
_OTHERS = message("choose others: ", OptionRef("shape", "NAME=1x3x224x224"))
_BUNDLE = "compile a bundle, and use the loader in C"
_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": int.__floordiv__,
    "mod": operator.mod, "min": min, "max": max, "eq": operator.eq, "lt": operator.lt,
    "le": operator.le,
}  # fmt: skip
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
    """The same where inputs and outputs lie in the workspace, as a plan says that has them."""
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
    run = _Run(program, tuple(messages), inputs)
    at = 0
    while at >= 0:
        opcode, operands = program.instructions[at]
        at = run.step(OPCODES[opcode][0], operands, at)
    shapes = tuple(
        tuple(run.sizes[number, axis] for axis in range(rank))
        for number, rank in enumerate(output_ranks)
    )
    return StraightLine(tuple(run.calls), run.workspace_bytes, run.scratch_bytes, shapes)


@dataclass(slots=True)
class _Run:
    """Registers and buffers while the program is followed."""

    program: Program
    messages: tuple[Text, ...]
    inputs: Sequence[Sequence[int]]
    registers: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    buffers: dict[int, BufferPlace] = field(default_factory=dict[int, BufferPlace])
    calls: list[CalledKernel] = field(default_factory=list[CalledKernel])
    sizes: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    workspace_bytes: int = 0
    scratch_bytes: int = 0

    def step(self, name: str, operands: Sequence[int | tuple[int, ...]], at: int) -> int:
        """Do one instruction; return the next, or -1 behind the last one."""
        if name in ("launch", "launch_checked"):
            self._launch(operands)
            return at + 1
        if name in _REFUSED:
            what = "C source of a model whose sizes or steps depend on data"
            raise UnsupportedError(what, "main", _REFUSED[name], _BUNDLE)
        numbers = [each for each in operands if isinstance(each, int)]
        if name in _NUMBERS:
            result, left, right = numbers
            values = self.registers[left], self.registers[right]
            self.registers[result] = int(_NUMBERS[name](*values))
            return at + 1
        return self._others(name, numbers, at)

    def _others(self, name: str, numbers: list[int], at: int) -> int:
        registers = self.registers
        match name, numbers:
            case "return", []:
                return -1
            case "jump", [label]:
                return label
            case "branch", [condition, then, otherwise]:
                return then if registers[condition] else otherwise
            case "const", [register, value]:
                registers[register] = value
            case "input_dim", [register, number, axis]:
                registers[register] = self.inputs[number][axis]
            case "held_bytes", [register, _, _]:
                registers[register] = 0  # inputs and outputs lie apart
            case "assert", [condition, message]:
                self._require(condition, message)
            case "workspace_bytes", [_, register]:
                self.workspace_bytes = registers[register]
            case "scratch_bytes", [register]:
                self.scratch_bytes = registers[register]
            case "output_dim", [number, axis, register]:
                self.sizes[number, axis] = registers[register]
            case _:
                self._buffer(name, numbers)
        return at + 1

    def _buffer(self, name: str, numbers: list[int]) -> None:
        match name, numbers:
            case "buffer_input", [buffer, number]:
                self.buffers[buffer] = BufferPlace(INPUT, number, 0)
            case "buffer_output", [buffer, number]:
                self.buffers[buffer] = BufferPlace(OUTPUT, number, 0)
            case "buffer_weights", [buffer, offset_bytes, _]:
                self.buffers[buffer] = BufferPlace(WEIGHTS, 0, offset_bytes)
            case "buffer_workspace", [buffer, _, register, _]:
                self.buffers[buffer] = BufferPlace(WORKSPACE, 0, self.registers[register])
            case _:
                assert name == "begin", name

    def _require(self, condition: int, message: int) -> None:
        if not self.registers[condition]:
            why = self.messages[message]
            raise UserError("the model refuses these shapes", "main", why, _OTHERS)

    def _launch(self, operands: Sequence[int | tuple[int, ...]]) -> None:
        _, kernel, _, buffers, scalars, extent, _, *messages = operands
        assert isinstance(buffers, tuple)
        assert isinstance(scalars, tuple)
        assert isinstance(kernel, int)
        assert isinstance(extent, int)
        places = tuple(self.buffers[buffer] for buffer in buffers)
        values = tuple(self.registers[register] for register in scalars)
        texts = messages[0] if messages and isinstance(messages[0], tuple) else ()
        if len(self.calls) == _STEPS_MAX:
            why = f"expected at most {_STEPS_MAX} launches, as loops are laid out, got more"
            raise LimitError("C source of a long loop", "main", why, _BUNDLE)
        if self.registers[extent] > 0:
            self.calls.append(CalledKernel(kernel, places, values, self.registers[extent], texts))

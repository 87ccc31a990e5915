"""What one call of `main` does at given sizes: its memory, launches and copies, without running it.

In: a decoded program, the shapes of the inputs. Out: ``EvaluatedCall``. Not done here: kernels (a
value that the program reads from a buffer counts as 1, and a loop runs once); the wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from ingot_runtime.executor.vm_values import NUMBERS, wrap
from ingot_runtime.format.program import OPCODES, Program
from ingot_runtime.lazy_dataclass import dataclass

Origin = Literal["input", "output", "weights", "workspace", "grown"]


@dataclass(frozen=True, slots=True)
class BufferSpan:
    """A buffer: bytes ``[offset, offset + size_bytes)`` of the workspace or the weights of a
    device, or tensor number ``offset`` of the inputs or outputs (its size is its own)."""

    origin: Origin
    device: int
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LaunchStep:
    """One launch: the ``ordinal`` that traces name, a kernel of a device's library, its operands,
    the values of its scalars, and over how many units it runs."""

    ordinal: int
    device: int
    kernel: int
    buffers: tuple[BufferSpan, ...]
    scalars: tuple[int, ...]
    extent: int


@dataclass(frozen=True, slots=True)
class CopyStep:
    """One copy of ``size_bytes`` between two devices."""

    source_device: int
    target_device: int
    target: BufferSpan
    source: BufferSpan
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EvaluatedCall:
    """One call: its steps in order, and what it needs.

    ``problem``: why `main` would refuse these sizes; "" where it accepts them.
    """

    steps: tuple[LaunchStep | CopyStep, ...]
    workspace_bytes: tuple[int, ...]
    scratch_bytes: int
    output_shapes: Mapping[int, tuple[int, ...]]  # of the outputs that have axes, by number
    problem: str = ""


def evaluate_call(
    program: Program, shapes: Sequence[Sequence[int]], device_count: int
) -> EvaluatedCall:
    """Follow the program for inputs of ``shapes`` (sizes, in the order of the plan)."""
    state = _State(program, shapes, device_count)
    at = 0
    while at < len(program.instructions):
        opcode, operands = program.instructions[at]
        name = OPCODES[opcode][0]
        if name == "return":
            break
        if name == "assert" and not state.registers[_int(operands[0])]:
            state.problem = program.messages[_int(operands[1])]
            break
        at = _next(state, at, name, operands)
    outputs = {
        number: tuple(axes[axis] for axis in sorted(axes))
        for number, axes in sorted(state.outputs.items())
    }
    return EvaluatedCall(
        tuple(state.steps), tuple(state.workspace), state.scratch_bytes, outputs, state.problem
    )


def _int(operand: int | tuple[int, ...]) -> int:
    assert isinstance(operand, int), "a decoded program has its operands' kinds"
    return operand


@dataclass(slots=True)
class _State:
    """What the instructions so far have left."""

    program: Program
    shapes: Sequence[Sequence[int]]
    device_count: int
    registers: list[int] = field(init=False)
    buffers: list[BufferSpan] = field(init=False)
    workspace: list[int] = field(init=False)
    scratch_bytes: int = 0
    outputs: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    steps: list[LaunchStep | CopyStep] = field(default_factory=list[LaunchStep | CopyStep])
    problem: str = ""

    def __post_init__(self) -> None:
        self.registers = [0] * self.program.register_count
        self.buffers = [BufferSpan("grown", 0, 0, 0)] * self.program.buffer_count
        self.workspace = [0] * self.device_count


def _next(state: _State, at: int, name: str, operands: Any) -> int:
    """Run one instruction; return the index of the next one. No way leads back: a loop runs
    once."""
    if name == "jump":
        return max(at + 1, int(operands[0]))
    if name == "branch":
        taken = operands[1] if state.registers[operands[0]] else operands[2]
        return max(at + 1, int(taken))
    if name in NUMBERS:
        register, left, right = map(int, operands)
        values = state.registers
        values[register] = wrap(NUMBERS[name](values[left], values[right]))
    else:
        _STEPS[name](state, *operands)
    return at + 1


def _const(state: _State, register: int, value: int) -> None:
    state.registers[register] = value


def _input_dim(state: _State, register: int, tensor: int, axis: int) -> None:
    state.registers[register] = state.shapes[tensor][axis]


def _held_bytes(state: _State, register: int, *_: int) -> None:
    """Inputs and outputs of an evaluated call lie apart."""
    state.registers[register] = 0


def _workspace_bytes(state: _State, device: int, register: int) -> None:
    state.workspace[device] = max(state.workspace[device], state.registers[register])


def _scratch_bytes(state: _State, register: int) -> None:
    state.scratch_bytes = max(state.scratch_bytes, state.registers[register])


def _output_dim(state: _State, tensor: int, axis: int, register: int) -> None:
    state.outputs.setdefault(tensor, {})[axis] = state.registers[register]


def _nothing(state: _State, *_: int) -> None:
    """What says nothing of memory or launches."""


def _buffer_input(state: _State, buffer: int, tensor: int) -> None:
    state.buffers[buffer] = BufferSpan("input", 0, tensor, 0)


def _buffer_output(state: _State, buffer: int, tensor: int) -> None:
    state.buffers[buffer] = BufferSpan("output", 0, tensor, 0)


def _buffer_weights(state: _State, buffer: int, offset: int, size_bytes: int) -> None:
    state.buffers[buffer] = BufferSpan("weights", 0, offset, size_bytes)


def _buffer_device_weights(
    state: _State, buffer: int, device: int, offset: int, size_bytes: int
) -> None:
    state.buffers[buffer] = BufferSpan("weights", device, offset, size_bytes)


def _buffer_workspace(state: _State, buffer: int, device: int, offset: int, size: int) -> None:
    registers = state.registers
    state.buffers[buffer] = BufferSpan("workspace", device, registers[offset], registers[size])


def _buffer_grow(state: _State, buffer: int, device: int, size: int) -> None:
    # No two of them are one buffer: the number of the instruction's buffer tells them apart.
    state.buffers[buffer] = BufferSpan("grown", device, buffer, state.registers[size])


def _launch(
    state: _State,
    device: int,
    kernel: int,
    ordinal: int,
    buffers: tuple[int, ...],
    scalars: tuple[int, ...],
    extent: int,
    *_: object,
) -> None:
    state.steps.append(
        LaunchStep(
            ordinal,
            device,
            kernel,
            tuple(state.buffers[buffer] for buffer in buffers),
            tuple(state.registers[scalar] for scalar in scalars),
            state.registers[extent],
        )
    )


def _copy(
    state: _State, source_device: int, target_device: int, target: int, source: int, size: int
) -> None:
    spans = state.buffers[target], state.buffers[source]
    state.steps.append(CopyStep(source_device, target_device, *spans, state.registers[size]))


def _read(state: _State, register: int, *_: int) -> None:
    state.registers[register] = 1


_STEPS: dict[str, Callable[..., None]] = {
    "const": _const,
    "held_bytes": _held_bytes,
    "input_dim": _input_dim,
    "assert": _nothing,
    "workspace_bytes": _workspace_bytes,
    "scratch_bytes": _scratch_bytes,
    "output_dim": _output_dim,
    "begin": _nothing,
    "buffer_input": _buffer_input,
    "buffer_output": _buffer_output,
    "buffer_weights": _buffer_weights,
    "buffer_device_weights": _buffer_device_weights,
    "buffer_workspace": _buffer_workspace,
    "buffer_grow": _buffer_grow,
    "launch": _launch,
    "launch_checked": _launch,
    "copy": _copy,
    "begin_copy": _copy,
    "end_copy": _nothing,
    "read": _read,
    "output_buffer": _nothing,
}

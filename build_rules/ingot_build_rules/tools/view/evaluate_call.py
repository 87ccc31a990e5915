"""What one call of `main` does at given sizes: its memory, launches and copies, without running it.

In: a decoded program, the shapes of the inputs. Out: ``EvaluatedCall``. Not done here: kernels (a
value that the program reads from a buffer counts as 1, and a loop runs once); the wire format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from ingot_runtime.format.evaluate import END, Evaluator
from ingot_runtime.format.program import Program
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
    call = _Call(program, shapes, device_count)
    call.follow()
    outputs = {
        number: tuple(axes[axis] for axis in sorted(axes))
        for number, axes in sorted(call.outputs.items())
    }
    return EvaluatedCall(
        tuple(call.steps), tuple(call.workspace_bytes), call.scratch_bytes, outputs, call.problem
    )


class _Call(Evaluator):
    """What the instructions so far have left."""

    def __init__(
        self, program: Program, shapes: Sequence[Sequence[int]], device_count: int
    ) -> None:
        super().__init__(program, device_count)
        self.shapes = shapes
        self.buffers = [BufferSpan("grown", 0, 0, 0)] * program.buffer_count
        self.outputs: dict[int, dict[int, int]] = {}
        self.steps: list[LaunchStep | CopyStep] = []
        self.problem = ""

    def step(self, at: int) -> int:
        """Run one instruction; no way leads back: a loop runs once."""
        after = super().step(at)
        after = after if after == END else max(at + 1, after)
        return after if after < len(self.program.instructions) else END

    def refuse(self, message: int) -> int:
        """The call ends here."""
        self.problem = self.program.messages[message]
        return END

    def _input_dim(self, register: int, tensor: int, axis: int) -> None:
        self.registers[register] = self.shapes[tensor][axis]

    def _output_dim(self, tensor: int, axis: int, register: int) -> None:
        self.outputs.setdefault(tensor, {})[axis] = self.registers[register]

    def _buffer_input(self, buffer: int, tensor: int) -> None:
        self.buffers[buffer] = BufferSpan("input", 0, tensor, 0)

    def _buffer_output(self, buffer: int, tensor: int) -> None:
        self.buffers[buffer] = BufferSpan("output", 0, tensor, 0)

    def _buffer_weights(self, buffer: int, offset: int, size_bytes: int) -> None:
        self.buffers[buffer] = BufferSpan("weights", 0, offset, size_bytes)

    def _buffer_device_weights(
        self, buffer: int, device: int, offset: int, size_bytes: int
    ) -> None:
        self.buffers[buffer] = BufferSpan("weights", device, offset, size_bytes)

    def _buffer_workspace(self, buffer: int, device: int, offset: int, size: int) -> None:
        registers = self.registers
        self.buffers[buffer] = BufferSpan("workspace", device, registers[offset], registers[size])

    def _buffer_grow(self, buffer: int, device: int, size: int) -> None:
        # No two of them are one buffer: the number of the instruction's buffer tells them apart.
        self.buffers[buffer] = BufferSpan("grown", device, buffer, self.registers[size])

    def _launch(
        self,
        device: int,
        kernel: int,
        ordinal: int,
        buffers: tuple[int, ...],
        scalars: tuple[int, ...],
        extent: int,
        *_: object,
    ) -> None:
        self.steps.append(
            LaunchStep(
                ordinal,
                device,
                kernel,
                tuple(self.buffers[buffer] for buffer in buffers),
                tuple(self.registers[scalar] for scalar in scalars),
                self.registers[extent],
            )
        )

    def _copy(
        self, source_device: int, target_device: int, target: int, source: int, size: int
    ) -> None:
        spans = self.buffers[target], self.buffers[source]
        self.steps.append(CopyStep(source_device, target_device, *spans, self.registers[size]))

    def _read(self, register: int, *_: int) -> None:
        self.registers[register] = 1

    _launch_checked = _launch
    _begin_copy = _copy

    def _end_copy(self, *_: int) -> None:
        """Its bytes count where it began."""

    def _output_buffer(self, *_: int) -> None:
        """Do nothing: declaring an output moves no bytes."""

"""What each launch of a run stored, as tensors: the machine's side of a self-check.

In: the steps of a fused graph with its groups expanded, the inputs of the run, looks into buffers
after each launch. Out: arrays by value of the graph. Not done here: what they should be
(``self_check``).

Copies and haloes compute nothing that the graph names; they are judged here, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ingot_compiler.ir.dims import Dim, dim_mul, evaluate
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import (
    BufferSpec,
    Copy,
    Group,
    HoldState,
    IfStep,
    Launch,
    LoopStep,
    Operand,
    Step,
    SymbolRead,
    SymbolSet,
    View,
    all_steps,
)
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Recorded:
    """What launch number ``launch``, of ``kernel``, stored as ``value``; ``expected`` is known at
    once for copies and haloes."""

    launch: int
    kernel: str
    value: int
    content: Array
    expected: Array | None = None


class LaunchRecorder:
    """Give ``observe`` to a session; it keeps a copy of each tensor that a launch stores."""

    def __init__(
        self,
        buffers: Sequence[BufferSpec],
        steps: Sequence[Step],
        inputs: Sequence[Array],
        symbols: Mapping[str, int],
        read_constant: Callable[[int], memoryview],
    ) -> None:
        """``steps``: those that run; ``symbols``: those that the shapes of the inputs bind, the
        others are read as `main` does; ``read_constant``: the bytes of a constant, by its
        number."""
        self.recorded: list[Recorded] = []
        self.launches = 0
        self._copied: Array | None = None  # what a copy reads
        self._symbols = dict(symbols)
        self._launches = self._walk(steps)
        self._watched: dict[int, Array] = {
            buffer: np.ascontiguousarray(inputs[spec.index]).reshape(-1)
            for buffer, spec in enumerate(buffers)
            if spec.kind == "input"
        }
        self._read_later = _read_later(steps)
        for buffer in self._read_later:
            spec = buffers[buffer]
            if spec.kind == "constant":
                content = read_constant(spec.index)
                self._watched[buffer] = np.frombuffer(content, STORAGE_DTYPES[spec.dtype])

    def observe(
        self, launch: int, kernel: str, seconds: float, buffers: Sequence[memoryview]
    ) -> None:
        """Note what a launch has stored."""
        del seconds
        step = self._next_launch()
        group = step.group
        # Behind the kernel's buffers a device has its scratch.
        views = dict(zip(step.buffers, buffers[: len(step.buffers)], strict=True))
        self.launches += 1
        if not group.nodes:
            (source,) = group.operands
            if source.buffer in views:  # the last launches of a copy may read what the first left
                self._copied = self._tensor(views[source.buffer], source)
        for result in step.results:
            if result.buffer in self._read_later:
                dtype = STORAGE_DTYPES[result.type.dtype]
                self._watched[result.buffer] = np.frombuffer(bytes(views[result.buffer]), dtype)
            content, expected = self._stored(group, result, views)
            self.recorded.append(Recorded(launch, kernel, result.value, content, expected))

    def _next_launch(self) -> Launch:
        launch = next(self._launches, None)
        if launch is None:
            raise InternalError("more launches than steps", do="report the model")
        return launch

    def _walk(self, steps: Sequence[Step]) -> Iterator[Launch]:
        """The launches in the order in which `main` has them: branches and loops as the values
        decide."""
        for step in steps:
            if isinstance(step, Launch):
                yield step
            elif isinstance(step, SymbolRead):
                self._symbols[step.symbol] = int(
                    self._watched[step.buffer][evaluate(step.index, self._symbols)]
                )
            elif isinstance(step, SymbolSet):
                values = [evaluate(value, self._symbols) for value in step.values]
                self._symbols.update(zip(step.symbols, values, strict=True))
            elif isinstance(step, HoldState):  # a check lends no memory: all lie apart
                rows, past = (evaluate(dim, self._symbols) for dim in (step.rows, step.past))
                self._symbols.update(zip(step.symbols, (rows, past, 1), strict=True))
            elif isinstance(step, Copy):
                if step.result in self._read_later:
                    self._watched[step.result] = self._watched[step.operand]
            elif isinstance(step, IfStep):
                taken = step.then if self._symbols[step.condition] else step.otherwise
                yield from self._walk(taken)
            elif isinstance(step, LoopStep):
                yield from self._iterations(step)

    def _iterations(self, step: LoopStep) -> Iterator[Launch]:
        self._symbols[step.counter] = 0
        while self._symbols[step.counter] < evaluate(step.count, self._symbols):
            if step.condition and not self._symbols[step.condition]:
                break
            yield from self._walk(step.body)
            self._symbols[step.counter] += 1

    def _stored(
        self, group: Group, result: Operand, views: Mapping[int, memoryview]
    ) -> tuple[Array, Array | None]:
        if group.fills_halo:
            return self._halo(group, result, views[result.buffer])
        content = self._tensor(views[result.buffer], result)
        return content, None if group.nodes else self._copied

    def _halo(self, group: Group, result: Operand, content: memoryview) -> tuple[Array, Array]:
        """The tensor with its border, and with what must stand there; the interior is left out."""
        (node,) = group.nodes
        before, after = (node.dims(name) for name in ("before", "after"))
        shape = tuple(map(_sum, before, result.type.shape, after))
        offset = result.view.offset
        for size, stride in zip(before, result.view.strides, strict=True):
            offset = offset - dim_mul(size, stride)
        view, tensor_type = View(result.view.strides, offset), TensorType(result.type.dtype, shape)
        found = self._tensor(content, replace(result, type=tensor_type, view=view))
        starts = [evaluate(size, self._symbols) for size in before]
        sizes = [evaluate(size, self._symbols) for size in result.type.shape]
        expected = np.full_like(found, node.integer("value"))
        inside = tuple(
            slice(start, start + size) for start, size in zip(starts, sizes, strict=True)
        )
        found[inside] = expected[inside]
        return found, expected

    def _tensor(self, content: memoryview, operand: Operand) -> Array:
        """A copy of a tensor that lies in a buffer by its view."""
        flat = np.frombuffer(content, STORAGE_DTYPES[operand.type.dtype])
        shape = [evaluate(dim, self._symbols) for dim in operand.type.shape]
        strides = [evaluate(dim, self._symbols) for dim in operand.view.strides]
        offset = evaluate(operand.view.offset, self._symbols)
        if 0 in shape:
            return np.zeros(shape, flat.dtype)
        spans = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
        first = offset + sum(span for span in spans if span < 0)
        last = offset + sum(span for span in spans if span > 0)
        if not 0 <= first <= last < flat.size:
            why = f"elements {first} to {last} of {flat.size}"
            raise InternalError("a view leaves its buffer", why=why)
        strides_bytes = [stride * flat.itemsize for stride in strides]
        return np.array(as_strided(flat[offset:], shape, strides_bytes))


def _read_later(steps: Sequence[Step]) -> set[int]:
    """The buffers whose values decide what runs, directly or by copies."""
    every = list(all_steps(steps))
    found = {step.buffer for step in every if isinstance(step, SymbolRead)}
    for step in reversed(every):
        if isinstance(step, Copy) and step.result in found:
            found.add(step.operand)
    return found


def _sum(before: Dim, size: Dim, after: Dim) -> Dim:
    return before + size + after

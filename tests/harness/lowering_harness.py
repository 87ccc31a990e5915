"""Runs a graph as compiled kernels in the test process, with the memory plan's own places, beside
the interpreter.

In: a graph, arrays, a target. Out: the outputs; differences are assertions. Not done here:
``main``, bundles, the loader (``test_end_to_end``).

What a kernel must not read is NaN (or -1), what it must not write is checked: inputs, constants,
and the 64 bytes around every buffer. Every launch is cut into parts that run last part first, each
with scratch of its own.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from tests.harness.codegen_harness import NUMPY, RUNNABLE, Array
from tests.harness.ir_harness import op_name
from tests.harness.kernels_harness import Kernel
from tests.stage_checks import (
    check_fused,
    check_launches,
    check_lowered,
    check_memory,
    check_placed,
)

from ingot_compiler.backends.host.hooks import device_rules, lower_group
from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.dims import Dim, evaluate, symbols_of
from ingot_compiler.ir.graph import Graph, OptimizedGraph
from ingot_compiler.ir.precision import F32
from ingot_compiler.ir.types import COMPUTED_DTYPES, DType, TensorType, dtype_size_bytes
from ingot_compiler.lowering.constants.evaluate_constant import evaluate as evaluate_constant
from ingot_compiler.lowering.fuse import fuse
from ingot_compiler.lowering.groups.expand_groups import expand_groups
from ingot_compiler.lowering.groups.fused import (
    Copy,
    FusedGraph,
    Grow,
    IfStep,
    Launch,
    LoopStep,
    Requirement,
    Step,
    SymbolRead,
    SymbolSet,
    groups_of,
    step_count,
)
from ingot_compiler.lowering.groups.tuned_methods import ALL
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.memory.data_dependent_buffers import data_dependent_buffers
from ingot_compiler.memory.memory_plan import MemoryPlan
from ingot_compiler.memory.plan_memory import plan_memory
from ingot_compiler.oracles.interpret import bind_symbols, interpret
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.placement.place import place
from ingot_compiler.placement.virtual_device import HOST_TYPE, DeclaredDevice, VirtualDevice
from ingot_compiler.targets.target import Target

BEST = RUNNABLE[-1]
HOST_ALONE = (DeclaredDevice("host", VirtualDevice(HOST_TYPE, 0)),)
PARTS = 3  # pieces of every launch
_EDGE_BYTES = 64
_EDGE = 0xA5
_UNWRITTEN = 0xFF  # NaN, -1


class RequirementError(AssertionError):
    """Sizes of a call contradict what the graph requires of them: ``main`` would refuse."""


def _dtype_of(array: Array) -> DType:
    return next(dtype for dtype in COMPUTED_DTYPES if NUMPY[dtype] == array.dtype.name)


class Builder(GraphBuilder):
    """A graph builder that keeps the bytes of its constants."""

    def __init__(self, inputs: Sequence[TensorType]) -> None:
        super().__init__(inputs)
        self.store: dict[str, bytes] = {}

    def constant(self, array: Array, dtype: DType | None = None) -> int:
        """Add a constant (a weight)."""
        data = np.ascontiguousarray(array).tobytes()
        digest = hashlib.sha256(data).hexdigest()
        self.store[digest] = data
        return self.add(
            "constant",
            (),
            {"weight": digest, "dtype": dtype or _dtype_of(array), "shape": array.shape},
        )

    def literal(self, number: float, dtype: DType = "f32") -> int:
        """Add a literal of rank 0."""
        return self.add("literal", (), {"dtype": dtype, "shape": (), "value": (number,)})

    def op(self, name: str, *operands: int, **attributes: Attribute) -> int:
        """Add an op."""
        return self.add(op_name(name), operands, attributes)

    def read(self, digest: str) -> memoryview:
        """Return the bytes of a constant."""
        return memoryview(self.store[digest])


@dataclass(frozen=True)
class Compiled:
    """A graph down to loop programs and places; its groups are expanded."""

    fused: FusedGraph
    programs: tuple[LoopProgram, ...]
    plan: MemoryPlan
    target: Target


def compile_graph(
    graph: Graph,
    target: Target = BEST,
    *,
    passes: bool = True,
    devices: Sequence[DeclaredDevice] = HOST_ALONE,
    precision: str = F32,
    method: str | None = None,
) -> Compiled:
    """Stages 4 to 8; without ``passes`` the graph goes to fusion as it is. All ``devices`` run code
    for ``target``. ``method``: every convolution that may run by it does."""
    optimized = optimize(graph) if passes else OptimizedGraph(graph)
    placed = place(optimized, devices)
    check_placed(placed)
    rules = [device_rules(str(target))] * len(placed.devices)
    fused = fuse(placed, rules, precision, methods=[(ALL, method)] if method else ())
    check_fused(fused)
    return compile_fused(fused, target)


def compile_fused(fused: FusedGraph, target: Target) -> Compiled:
    """Stages 7 and 8; all devices run code for ``target``."""
    groups = groups_of(fused)
    lowered = [lower_group(group, str(target)) for group in groups]
    for group, item in zip(groups, lowered, strict=True):
        check_lowered(item, group, fused.buffers)
    expanded = expand_groups(fused, [item.steps for item in lowered])
    programs = tuple(program for item in lowered for program in item.programs)
    check_launches(expanded, programs)
    plan = plan_memory(expanded)
    check_memory(plan, expanded)
    return Compiled(expanded, programs, plan, target)


@functools.lru_cache(maxsize=512)
def _kernel(program: LoopProgram, target: Target) -> Kernel:
    return Kernel(program, target)


def _fenced(size_bytes: int) -> tuple[Array, Array]:
    """(memory, its inside): the inside lies at a multiple of 64 and is unwritten, with an edge on
    both sides."""
    raw = np.full(size_bytes + 3 * _EDGE_BYTES, _EDGE, np.uint8)
    start = _EDGE_BYTES + -raw.ctypes.data % _EDGE_BYTES
    inside = raw[start : start + size_bytes]
    inside[:] = _UNWRITTEN
    return raw, inside


@dataclass
class _Call:
    """One run: bindings of the symbols, the memory of every buffer."""

    compiled: Compiled
    inputs: Sequence[Array]
    read: ConstantReader
    bindings: dict[str, int]
    fences: list[tuple[Array, Array]] = field(default_factory=list[tuple[Array, Array]])
    places: dict[int, Array] = field(default_factory=dict[int, Array])
    unchanged: list[tuple[Array, bytes]] = field(default_factory=list[tuple[Array, bytes]])

    def memory(self, size_bytes: int) -> Array:
        """Fenced bytes."""
        self.fences.append(_fenced(size_bytes))
        return self.fences[-1][1]

    def allocate(self) -> None:
        """Inputs, outputs and constants in memory of their own, the workspace as planned."""
        fused = self.compiled.fused
        for number, spec in enumerate(fused.buffers):
            known = set(symbols_of(spec.element_count)) <= set(self.bindings)
            if spec.kind == "workspace" or not known:
                continue
            self._allocate_one(number)
            if spec.kind == "input":
                self.places[number][:] = (
                    np.ascontiguousarray(self.inputs[spec.index]).reshape(-1).view(np.uint8)
                )
            elif spec.kind == "constant":
                self.places[number][:] = np.frombuffer(
                    evaluate_constant(fused.constants[spec.index], self.read), np.uint8
                )
            if spec.kind != "output":
                self.unchanged.append((self.places[number], self.places[number].tobytes()))
        self._workspace()

    def _allocate_one(self, number: int) -> None:
        spec = self.compiled.fused.buffers[number]
        self.places[number] = self.memory(
            dtype_size_bytes(spec.dtype) * evaluate(spec.element_count, self.bindings)
        )

    def _workspace(self) -> None:
        starts: dict[int, tuple[int, int]] = {}
        for item in self.compiled.plan.placements:
            if item.is_data_dependent:
                continue
            after = max((starts[other][1] for other in item.after), default=0)
            start = item.offset_bytes if item.offset_bytes is not None else after
            end = start + evaluate(item.size_bytes, self.bindings)
            starts[item.buffer] = start, end + -end % _EDGE_BYTES
        device_of = {item.buffer: item.device for item in self.compiled.plan.placements}
        pools = {
            device: self.memory(
                max(
                    (end for buffer, (_, end) in starts.items() if device_of[buffer] == device),
                    default=0,
                )
            )
            for device in sorted(set(device_of.values()))
        }
        for buffer, (start, end) in starts.items():
            self.places[buffer] = pools[device_of[buffer]][start:end]

    def allocate_data_dependent(self, step: int, written: Sequence[int]) -> None:
        """Memory for the buffers whose size was only just read: those of the plan, and outputs."""
        for item in data_dependent_buffers(self.compiled.fused, self.compiled.plan).get(step, ()):
            self._allocate_one(item.buffer)
        for buffer in written:
            if buffer not in self.places:
                self._allocate_one(buffer)

    def run(self, steps: Sequence[Step], index: int) -> None:
        """Run steps, the first of which is number ``index``."""
        for step in steps:
            if isinstance(step, Launch):
                self.allocate_data_dependent(index, [operand.buffer for operand in step.results])
                self.launch(step, self.compiled.programs[step.program])
            elif isinstance(step, Copy):
                self.allocate_data_dependent(index, [step.result])
                # What begins is copied as late as it may be, and its place is in use before.
                begins = step.part == "begin"
                self.array(step.result)[:] = 0 if begins else self.array(step.operand)
            elif isinstance(step, SymbolRead):
                self.bindings[step.symbol] = int(
                    self.array(step.buffer)[evaluate(step.index, self.bindings)]
                )
            elif isinstance(step, SymbolSet):
                values = [evaluate(value, self.bindings) for value in step.values]
                self.bindings.update(zip(step.symbols, values, strict=True))
            elif isinstance(step, Grow):
                self._grow(step)
            elif isinstance(step, Requirement):
                if evaluate(step.difference, self.bindings) != 0:
                    raise RequirementError(step.what)
            else:
                assert isinstance(step, IfStep | LoopStep)
                self._control(step, index)
            index += step_count((step,))

    def _control(self, step: IfStep | LoopStep, index: int) -> None:
        if isinstance(step, LoopStep):
            self.bindings[step.counter] = 0
            count = evaluate(step.count, self.bindings)
            while self.bindings[step.counter] < count and (
                not step.condition or self.bindings[step.condition]
            ):
                self.run(step.body, index + 1)
                self.bindings[step.counter] += 1
            return
        self.allocate_data_dependent(index, ())
        if self.bindings[step.condition]:
            self.run(step.then, index + 1)
        else:
            self.run(step.otherwise, index + 1 + step_count(step.then))

    def _grow(self, step: Grow) -> None:
        size_bytes = dtype_size_bytes(self.compiled.fused.buffers[step.buffer].dtype)
        kept = (
            self.places[step.buffer][: size_bytes * evaluate(step.kept, self.bindings)]
            if step.spare >= 0 and step.buffer in self.places
            else None
        )
        self.places[step.buffer] = self.memory(
            size_bytes * evaluate(step.element_count, self.bindings)
        )
        if kept is not None:
            self.places[step.buffer][: kept.size] = kept

    def launch(self, launch: Launch, program: LoopProgram) -> None:
        """Run one kernel in parts."""
        scalars = [self.bindings[name] for name in program.scalars]
        kernel = _kernel(program, self.compiled.target)
        kernel.run([self.places[number] for number in launch.buffers], scalars, PARTS)

    def array(self, buffer: int) -> Array:
        """A buffer as flat elements."""
        spec = self.compiled.fused.buffers[buffer]
        count = evaluate(spec.element_count, self.bindings)
        return self.places[buffer][: count * dtype_size_bytes(spec.dtype)].view(NUMPY[spec.dtype])

    def check(self) -> None:
        """Nothing was written that must not be."""
        for raw, inside in self.fences:
            start = inside.ctypes.data - raw.ctypes.data
            assert (raw[:start] == _EDGE).all(), "a kernel wrote before a buffer"
            assert (raw[start + inside.size :] == _EDGE).all(), "a kernel wrote behind a buffer"
        for place_, before in self.unchanged:
            assert place_.tobytes() == before, "a kernel wrote to an input or a constant"


def run_compiled(
    compiled: Compiled, graph: Graph, inputs: Sequence[Array], read: ConstantReader
) -> list[Array]:
    """The outputs of the kernels.

    Raises:
        RequirementError: the sizes of the inputs contradict each other.
    """
    call = _Call(compiled, inputs, read, bind_symbols(graph, inputs))
    call.allocate()
    call.run(compiled.fused.steps, 0)
    call.check()
    outputs = {
        spec.index: number
        for number, spec in enumerate(compiled.fused.buffers)
        if spec.kind == "output"
    }
    shapes = [
        tuple(evaluate(dim, call.bindings) for dim in kind.shape) for kind in compiled.fused.outputs
    ]
    return [call.array(outputs[position]).reshape(shape) for position, shape in enumerate(shapes)]


def assert_close(expected: Array, actual: Array, relative: float, floor: float = 0.0) -> None:
    """Same shape and type; floats within ``relative`` of the largest finite magnitude, NaN and
    infinities alike.

    Where results may cancel to almost nothing, ``floor`` is the least magnitude that counts.
    """
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
        return
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.where(finite, 0, actual), np.where(finite, 0, expected))
    wide = expected[finite].astype(np.float64)
    scale = np.abs(wide).max(initial=0)
    error = np.abs(actual[finite].astype(np.float64) - wide).max(initial=0)
    assert error <= relative * max(scale, floor), f"error {error} of {scale}"


def check_graph(
    builder: Builder,
    outputs: Sequence[int],
    inputs: Sequence[Array],
    relative: float = 2e-5,
    targets: Sequence[Target] = (BEST,),
    *,
    passes: bool = True,
    floor: float = 0.0,
    precision: str = F32,
    method: str | None = None,
) -> None:
    """Compiled kernels give what the interpreter gives."""
    graph = builder.finish(outputs)
    expected = interpret(graph, inputs, builder.read)
    for target in targets:
        compiled = compile_graph(graph, target, passes=passes, precision=precision, method=method)
        actual = run_compiled(compiled, graph, inputs, builder.read)
        for want, have in zip(expected, actual, strict=True):
            assert_close(np.asarray(want), have, relative, floor)


def normal(seed: int, *shape: int) -> Array:
    """Normally distributed f32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def f32(*shape: Dim) -> TensorType:
    """The type of an f32 input."""
    return TensorType("f32", shape)


def sizes_of(kind: TensorType, bindings: Mapping[str, int]) -> tuple[int, ...]:
    """The shape under bindings."""
    return tuple(evaluate(dim, bindings) for dim in kind.shape)

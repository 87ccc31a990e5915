"""The steps of ``main`` behind ``begin``: launches, copies, and the branches and jumps around them.

In: steps of the fused graph with its groups expanded. Out: instructions. Not done here: the sizes
before (``main_sizes``), which steps run for which sizes (``main_program``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ingot_compiler.host_program.main_assembler import TOO_LARGE, Assembler, without_symbols
from ingot_compiler.host_program.main_blocks import BlockSpace, emit_block
from ingot_compiler.host_program.main_hold import hold_state
from ingot_compiler.host_program.main_launch import Kernel, emit_launch
from ingot_compiler.host_program.main_messages import of_nodes
from ingot_compiler.host_program.main_outputs import data_dependent_outputs, written_by
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.types import dtype_code, dtype_size_bytes
from ingot_compiler.lowering.groups.fused import (
    COPY_WORDS,
    Copy,
    Group,
    Grow,
    HoldState,
    IfStep,
    Launch,
    LoopStep,
    Requirement,
    Step,
    SymbolRead,
    SymbolSet,
    symbols_set,
)
from ingot_compiler.memory.data_dependent_buffers import data_dependent_buffers
from ingot_compiler.memory.memory_plan import ALIGNMENT_BYTES, MemoryPlan, buffer_bytes
from ingot_compiler.memory.planned_bytes import PlannedSizes


class StepEmitter:
    """Appends the instructions of steps, of all steps of a graph in their order."""

    def __init__(
        self,
        out: Assembler,
        planned: PlannedSizes,
        plan: MemoryPlan,
        kernels: Sequence[Kernel],
        scratch: Mapping[int, int],
    ) -> None:
        """``kernels``: as ``Launch.program`` counts them; ``scratch``: device -> its buffer of
        scratch."""
        self.out = out
        self.planned = planned
        self.fused = planned.fused
        self.kernels = kernels
        self.scratch = scratch
        self.hoisted: Collection[Requirement] = ()  # requirements that were checked before
        self.blocks: BlockSpace | None = None  # of the version
        self.data_dependent_outputs = data_dependent_outputs(out, planned)
        self.data_dependent_buffers = data_dependent_buffers(planned.fused, plan)
        self.index = 0  # of the next step, as ``plan_memory`` counts them
        self.ordinal = 0
        self.depth = 0  # of loops
        self.capacities: dict[int, int] = {}  # buffer -> register with the bytes of its block

    def emit(self, steps: Sequence[Step]) -> None:
        """Append the instructions of some steps."""
        for step in steps:
            for placement in self.data_dependent_buffers.get(self.index, ()):
                self.grow(placement.buffer, placement.size_bytes)
            self.index += 1
            self.step(step)

    def step(self, step: Step) -> None:
        """One step; the buffers that it is the first to name are there."""
        match step:
            case Launch():
                self.launch(step)
            case Copy():
                self.copy(step)
            case Requirement():
                self.require(step)
            case SymbolRead():
                _read_symbol(self.out, step)
            case SymbolSet():
                self.set_symbols(step)
            case HoldState():
                hold_state(self.out, step)
            case Grow():
                self.grow_kept(step)
            case IfStep():
                self.branch(step)
            case LoopStep():
                self.loop(step)
            case Group():
                raise InternalError("a group is not expanded", where=f"kind {step.kind}")

    def launch(self, step: Launch) -> None:
        """One kernel; on another device than the host, what it may use as scratch is its last
        buffer."""
        self.make_outputs({result.buffer for result in step.results})
        beside = (self.scratch[step.group.device],) if step.group.device else ()
        kernel = self.kernels[step.program]
        emit_launch(self.out, step, kernel, self.ordinal, (*step.buffers, *beside))
        self.ordinal += 1

    def require(self, step: Requirement) -> None:
        """A condition that was not checked before."""
        if step not in self.hoisted:
            check_requirement(self.out, step)

    def copy(self, step: Copy) -> None:
        """All bytes of a buffer, from one device to another, or a part of such a copy."""
        self.make_outputs({step.result})  # once: what ends has begun
        devices = (self.fused.buffers[step.operand].device, self.fused.buffers[step.result].device)
        size_bytes = self.out.dim(buffer_bytes(self.fused, step.operand))
        self.out.emit(COPY_WORDS[step.part], *devices, step.result, step.operand, size_bytes)

    def make_outputs(self, written: set[int]) -> None:
        """Outputs of sizes only known now get their blocks."""
        for buffer in sorted(written & self.data_dependent_outputs):
            self.data_dependent_outputs.remove(buffer)
            self.out.emit("buffer_grow", buffer, 0, self.out.dim(buffer_bytes(self.fused, buffer)))

    def set_symbols(self, step: SymbolSet) -> None:
        """All values first: one may use a symbol that is set."""
        values = [self.out.dim(value) for value in step.values]
        copies = (
            [self.out.binary("add", value, self.out.dim(0)) for value in values]
            if len(values) > 1
            else values
        )
        for name, value in zip(step.symbols, copies, strict=True):
            zero = self.out.dim(0)
            register = self.out.changing(name)
            self.out.emit("add", register, value, zero)
            if not isinstance(step.values[step.symbols.index(name)], int):
                self.out.bind(name, register)

    def grow(self, buffer: int, size_bytes: Dim) -> None:
        """A new block; inside a loop only when the one of an earlier iteration is too small."""
        device = self.fused.buffers[buffer].device
        if self.depth:
            self.grow_block(buffer, size_bytes, 0, -1)
        elif device:
            self.out.emit("buffer_grow", buffer, device, self.out.dim(size_bytes))
        else:
            emit_block(self.out, self.blocks, buffer, self.out.dim(size_bytes))

    def grow_kept(self, step: Grow) -> None:
        """Room for more elements behind those that are there."""
        size_bytes = dtype_size_bytes(self.fused.buffers[step.buffer].dtype)
        needed, kept = step.element_count * size_bytes, step.kept * size_bytes
        self.grow_block(step.buffer, needed, kept, step.spare)

    def grow_block(self, buffer: int, size_bytes: Dim, kept_bytes: Dim, spare: int) -> None:
        """A block of at least ``size_bytes``; one that must grow grows to twice that, so that
        moving it stays cheap."""
        out = self.out
        capacity = self.capacities.setdefault(buffer, out.register())  # 0 at first
        needed = out.binary("max", out.dim(size_bytes), out.dim(ALIGNMENT_BYTES))
        kept, zero = out.dim(kept_bytes), out.dim(0)
        grow, enough = out.label(), out.label()
        out.emit("branch", out.binary("lt", capacity, needed), grow, enough)
        out.place(grow)
        if spare >= 0:
            out.emit("buffer_grow", spare, 0, out.binary("max", kept, out.dim(ALIGNMENT_BYTES)))
            out.emit("copy", 0, 0, spare, buffer, kept)
        out.emit("add", capacity, needed, needed if self.depth else zero)
        out.emit("buffer_grow", buffer, self.fused.buffers[buffer].device, capacity)
        if spare >= 0:
            out.emit("copy", 0, 0, buffer, spare, kept)
        out.place(enough)

    def branch(self, step: IfStep) -> None:
        """Both branches, one after the other; what one has computed is not there in the other, nor
        behind."""
        out = self.out
        self.make_outputs(written_by((*step.then, *step.otherwise)))
        then, otherwise, end = out.label(), out.label(), out.label()
        out.emit("branch", out.symbols[step.condition], then, otherwise)
        before = dict(out.known)
        out.place(then)
        self.emit(step.then)
        out.emit("jump", end)
        out.place(otherwise)
        out.known = without_symbols(before, symbols_set(step.then))
        self.emit(step.otherwise)
        out.place(end)
        out.known = without_symbols(before, symbols_set((step,)))
        self.index += 1

    def loop(self, step: LoopStep) -> None:
        """Test, body, jump back."""
        out = self.out
        count, one = out.dim(step.count), out.dim(1)
        changing = symbols_set((step,))
        counter = out.changing(step.counter)
        out.emit("sub", counter, one, one)
        before = without_symbols(out.known, changing)
        again, test, body, end = (out.label() for _ in range(4))
        out.place(again)
        if step.condition:
            out.emit("branch", out.symbols[step.condition], test, end)
        out.place(test)
        out.emit("branch", out.binary("lt", counter, count), body, end)
        out.place(body)
        out.known = dict(before)
        self.depth += 1
        self.emit(step.body)
        self.depth -= 1
        out.emit("add", counter, counter, one)
        out.emit("jump", again)
        out.place(end)
        out.known = before
        self.index += 1


def _read_symbol(out: Assembler, step: SymbolRead) -> None:
    index = out.dim(step.index)
    register = out.changing(step.symbol)
    out.emit("read", register, step.buffer, index, dtype_code(step.dtype))
    if step.is_size:
        what = of_nodes("a size that the model computes is negative", step.source, out.makers)
        out.require(out.binary("le", out.dim(0), register), what)
        if step.most is not None:
            out.require(out.binary("le", register, out.dim(step.most)), TOO_LARGE)
        out.bind(step.symbol, register)


def check_requirement(out: Assembler, step: Requirement) -> None:
    """Refuse the call unless a requirement holds."""
    out.too_large = of_nodes(TOO_LARGE, step.source, out.makers)
    condition = out.binary("eq", out.dim(step.difference), out.dim(0))
    out.too_large = TOO_LARGE
    out.require(condition, of_nodes(step.what, step.source, out.makers))

"""Builds the instruction list of ``main``: sizes first, then one launch after another.

In: the fused graph with its groups expanded, the loop programs, the memory plan, where constants
lie in the weights section.
Out: a ``Program`` (``ingot_runtime.format.program``). Not done here: machine code
(``backends.host.main``), stepping (the vm).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence

from ingot_compiler.host_program.main_assembler import TOO_LARGE, Assembler, without_symbols
from ingot_compiler.host_program.main_messages import cut, of_nodes
from ingot_compiler.host_program.workspace_bytes import scratch_sizes
from ingot_compiler.ir.attributes import attribute_text
from ingot_compiler.ir.dims import (
    Dim,
    Symbol,
    dim_add,
    dim_min,
    substitute,
    symbols_of,
    terms_of,
)
from ingot_compiler.ir.errors import InternalError, LimitError, UnsupportedError
from ingot_compiler.ir.message import Text, message, nodes_text
from ingot_compiler.ir.types import dtype_code, dtype_size_bytes
from ingot_compiler.lowering.fused import (
    Copy,
    FusedGraph,
    Group,
    Grow,
    IfStep,
    Launch,
    LoopStep,
    Requirement,
    Specialisation,
    Step,
    SymbolRead,
    SymbolSet,
    all_steps,
    launches_of,
    requirements_of,
    symbols_set,
)
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.typical import typical
from ingot_compiler.memory.data_dependent_buffers import data_dependent_buffers
from ingot_compiler.memory.memory_plan import (
    ALIGNMENT_BYTES,
    BufferPlacement,
    MemoryPlan,
    buffer_bytes,
)
from ingot_runtime.format.limits import (
    BUFFER_COUNT_MAX,
    INSTRUCTION_COUNT_MAX,
    KERNEL_COUNT_MAX,
    REGISTER_COUNT_MAX,
    SIZE_BYTES_MAX,
)
from ingot_runtime.format.program import Program


class _StepEmitter:
    """The steps behind ``begin``: launches, and the branches and jumps around them."""

    def __init__(
        self,
        out: Assembler,
        fused: FusedGraph,
        programs: Sequence[LoopProgram],
        kernel_indices: Sequence[int],
        plan: MemoryPlan,
        hoisted: Sequence[Requirement],
        scratch: Mapping[int, int],
    ) -> None:
        self.out = out
        self.fused = fused
        self.scratch = scratch  # device -> its buffer of scratch
        self.kernels = list(zip(programs, kernel_indices, strict=True))
        self.hoisted = frozenset(hoisted)  # requirements that were checked before
        self.data_dependent_outputs = _data_dependent_outputs(out, fused)
        self.data_dependent_buffers = data_dependent_buffers(fused, plan)
        self.index = 0  # of the next step, as ``plan_memory`` counts them
        self.ordinal = 0
        self.depth = 0  # of loops
        self.room: dict[int, int] = {}  # buffer -> register with the bytes of its block

    def emit(self, steps: Sequence[Step]) -> None:
        """Append the instructions of some steps."""
        for step in steps:
            index = self.index
            self.index += 1
            for placement in self.data_dependent_buffers.get(index, ()):
                self.grow(placement.buffer, placement.size_bytes)
            if isinstance(step, SymbolRead):
                _read_symbol(self.out, step)
            elif isinstance(step, SymbolSet):
                self.set_symbols(step)
            elif isinstance(step, Grow):
                size_bytes = dtype_size_bytes(self.fused.buffers[step.buffer].dtype)
                self.make_room(
                    step.buffer, step.element_count * size_bytes, step.kept * size_bytes, step.spare
                )
            elif isinstance(step, Requirement):
                if step not in self.hoisted:
                    _require(self.out, step)
            elif isinstance(step, IfStep):
                self.branch(step)
            elif isinstance(step, LoopStep):
                self.loop(step)
            elif isinstance(step, Copy):
                self.copy(step)
            elif isinstance(step, Launch):
                self.launch(step)
            else:
                raise InternalError("a group is not expanded", where=f"kind {step.kind}")

    def launch(self, step: Launch) -> None:
        """One kernel; on another device than the host, what it may use as scratch is its last
        buffer."""
        self.make_outputs({result.buffer for result in step.results})
        beside = (self.scratch[step.group.device],) if step.group.device else ()
        _launch(self.out, step, *self.kernels[step.program], self.ordinal, beside)
        self.ordinal += 1

    def copy(self, step: Copy) -> None:
        """All bytes of a buffer, from one device to another."""
        self.make_outputs({step.result})
        devices = (self.fused.buffers[step.operand].device, self.fused.buffers[step.result].device)
        size_bytes = self.out.dim(buffer_bytes(self.fused, step.operand))
        self.out.emit("copy", *devices, step.result, step.operand, size_bytes)

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
        if self.depth:
            self.make_room(buffer, size_bytes, 0, -1)
        else:
            self.out.emit(
                "buffer_grow", buffer, self.fused.buffers[buffer].device, self.out.dim(size_bytes)
            )

    def make_room(self, buffer: int, size_bytes: Dim, kept_bytes: Dim, spare: int) -> None:
        """A block of at least ``size_bytes``; one that must grow grows to twice that, so that
        moving it stays cheap."""
        out = self.out
        room = self.room.setdefault(buffer, out.register())  # 0 at first
        needed, kept, zero = (
            out.binary("max", out.dim(size_bytes), out.dim(ALIGNMENT_BYTES)),
            out.dim(kept_bytes),
            out.dim(0),
        )
        grow, enough = out.label(), out.label()
        out.emit("branch", out.binary("lt", room, needed), grow, enough)
        out.place(grow)
        if spare >= 0:
            out.emit("buffer_grow", spare, 0, out.binary("max", kept, out.dim(ALIGNMENT_BYTES)))
            out.emit("copy", 0, 0, spare, buffer, kept)
        out.emit("add", room, needed, needed if self.depth else zero)
        out.emit("buffer_grow", buffer, 0, room)
        if spare >= 0:
            out.emit("copy", 0, 0, buffer, spare, kept)
        out.place(enough)

    def branch(self, step: IfStep) -> None:
        """Both branches, one after the other; what one has computed is not there in the other, nor
        behind."""
        out = self.out
        inside = list(all_steps((*step.then, *step.otherwise)))
        self.make_outputs(
            {
                result.buffer
                for item in inside
                if isinstance(item, Launch)
                for result in item.results
            }
        )
        then, otherwise, end = out.label(), out.label(), out.label()
        out.emit("branch", out.symbols[step.condition], then, otherwise)
        before = dict(out.known)
        for label, part in ((then, step.then), (otherwise, step.otherwise)):
            out.place(label)
            out.known = without_symbols(
                before, symbols_set(step.then) if label == otherwise else ()
            )
            self.emit(part)
            if label == then:
                out.emit("jump", end)
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


def build_program(
    fused: FusedGraph,
    programs: Sequence[LoopProgram],
    kernel_indices: Sequence[int],
    plan: MemoryPlan,
    constant_offsets: Sequence[int],
) -> tuple[Program, tuple[Text, ...]]:
    """Assemble ``main``; beside it what its messages refer to, in their order.

    ``fused`` has its groups expanded; ``programs[i]`` and ``kernel_indices[i]`` (position in the
    variant's kernel list) are the i-th of all programs, as ``Launch.program`` counts them;
    ``constant_offsets[i]`` is the byte offset of ``fused.constants[i]`` in the weights section.
    """
    out = Assembler(
        {
            step.symbol: step.source
            for step in all_steps(fused.steps)
            if isinstance(step, SymbolRead)
        }
    )
    _bind_inputs(out, fused)
    hoisted = [
        step for step in fused.steps if isinstance(step, Requirement) and _is_bound(out, step)
    ]
    for step in hoisted:
        _require(out, step)
    scratch = {
        device: len(fused.buffers) + number
        for number, device in enumerate(_other_devices(fused, plan))
    }
    offsets, room = _sizes(out, fused, programs, plan)
    out.emit("begin")
    _buffers(out, fused, plan, offsets, constant_offsets)
    for device, buffer in scratch.items():
        out.emit("buffer_workspace", buffer, device, *room[device])
    steps = _StepEmitter(out, fused, programs, kernel_indices, plan, hoisted, scratch)

    def run(part: Sequence[Step]) -> None:
        steps.emit(part)
        written = _written(fused.steps)
        for buffer in sorted(
            steps.data_dependent_outputs - written
        ):  # empty whatever their other sizes are
            out.emit("buffer_grow", buffer, 0, out.dim(0))
        others = written - _written(part)
        _finish_late_outputs(out, fused, part, others)
        out.emit("return")

    if fused.specialisation is None:
        run(fused.steps)
    else:
        _choose(out, fused.specialisation, run, fused.steps)
    for count, limit, unit in (
        (len(out.instructions), INSTRUCTION_COUNT_MAX, "instructions"),
        (out.register_count, REGISTER_COUNT_MAX, "registers"),
        (len(fused.buffers) + len(scratch), BUFFER_COUNT_MAX, "buffers"),
        (len(set(kernel_indices)), KERNEL_COUNT_MAX, "kernels"),
    ):
        if count > limit:
            why = f"expected at most {limit} {unit}, got {count}"
            raise LimitError(
                "the model is too large for one bundle", "main", why, "split the model"
            )
    program = Program(
        out.resolved(), out.register_count, len(fused.buffers) + len(scratch), tuple(out.messages)
    )
    return program, tuple(out.messages.values())


def _choose(
    out: Assembler,
    specialisation: Specialisation,
    run: Callable[[Sequence[Step]], None],
    steps: Sequence[Step],
) -> None:
    """``if every size is the specialisation one: the specialisation steps; else: the general ones``."""
    matches = [
        out.binary("eq", out.symbols[name], out.dim(size)) for name, size in specialisation.sizes
    ]
    condition = matches[0]
    for other in matches[1:]:
        condition = out.binary("mul", condition, other)
    general, named = out.label(), out.label()
    out.emit("branch", condition, named, general)
    out.place(general)
    known, symbols = dict(out.known), dict(out.symbols)
    run(steps[: specialisation.first_step])
    # What the general steps computed is not there when they are skipped.
    out.known, out.symbols = known, symbols
    out.place(named)
    run(steps[specialisation.first_step :])


def _bind_inputs(out: Assembler, fused: FusedGraph) -> None:
    """Registers for the symbols; every other dimension is checked once all symbols are known."""
    checks: list[tuple[int, Dim, Text]] = []
    for index, kind in enumerate(fused.inputs):
        for axis, dim in enumerate(kind.shape):
            register = out.register()
            out.emit("input_dim", register, index, axis)
            name = _only_symbol(dim)
            if name is not None and name not in out.symbols:
                out.bind(name, register)
            else:
                checks.append(
                    (register, dim, cut(message(f"input {index}, axis {axis}: expected ", dim)))
                )
    for register, dim, what in checks:
        out.require(out.binary("eq", register, out.dim(dim)), what)


def _only_symbol(dim: Dim) -> str | None:
    terms = terms_of(dim)
    if (
        len(terms) == 1
        and terms[0][1] == 1
        and len(terms[0][0]) == 1
        and isinstance(terms[0][0][0], Symbol)
    ):
        return terms[0][0][0].name
    return None


def _sizes(
    out: Assembler, fused: FusedGraph, programs: Sequence[LoopProgram], plan: MemoryPlan
) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    """Compute the totals that the caller must provide; return workspace offsets (registers by
    buffer), and for each other device offset and size of its scratch, which lies behind its
    buffers."""
    offsets: dict[int, int] = {}
    ends: dict[int, int] = {}
    room: dict[int, tuple[int, int]] = {}
    for device in (0, *_other_devices(fused, plan)):
        early = [placement for placement in plan.of(device) if not placement.is_data_dependent]
        for placement in early:
            _place(out, placement, offsets, ends)
        total = _largest(out, [ends[placement.buffer] for placement in early])
        # Beside the host there is always some: what is of no size, scratch or a buffer, must not
        # lie at the very end of the pool.
        least = [out.dim(ALIGNMENT_BYTES)] if device else []
        scratch = _rounded(out, _largest(out, [*least, *_scratch(out, fused, programs, device)]))
        if device:
            room[device] = total, scratch
            out.emit("workspace_bytes", device, out.binary("add", total, scratch))
        else:
            out.emit("workspace_bytes", 0, total)
            out.emit("scratch_bytes", scratch)
    for index, kind in enumerate(fused.outputs):
        for axis, dim in enumerate(kind.shape):
            out.emit("output_dim", index, axis, out.dim(dim if _is_known(out, dim) else -1))
    return offsets, room


def _other_devices(fused: FusedGraph, plan: MemoryPlan) -> tuple[int, ...]:
    """The devices beside the host that run something, or only hold it: a value that is copied
    there, seen in another shape, and copied back."""
    return tuple(
        sorted(
            (
                {launch.group.device for launch in launches_of(fused)}
                | {pool.device for pool in plan.pools}
            )
            - {0}
        )
    )


def _scratch(
    out: Assembler, fused: FusedGraph, programs: Sequence[LoopProgram], device: int
) -> list[int]:
    """Bytes of scratch of each kernel that has any; they must be known before the first kernel
    runs."""
    sizes = scratch_sizes(fused, programs, device)
    data_dependent = [
        ordinal for size, source in sizes.items() if not _is_known(out, size) for ordinal in source
    ]
    if data_dependent:
        raise UnsupportedError(
            "attention over a number of keys that the model computes",
            where=nodes_text(data_dependent),
            why="its scratch memory is needed before that number is known",
            do="give the number of keys by the shape of an input",
        )
    return [out.dim(size) for size in sizes if size != 0]


def _place(
    out: Assembler, placement: BufferPlacement, offsets: dict[int, int], ends: dict[int, int]
) -> None:
    buffer = placement.buffer
    if placement.offset_bytes is not None:
        assert isinstance(placement.size_bytes, int)
        offsets[buffer] = out.dim(placement.offset_bytes)
        ends[buffer] = out.dim(
            -(-(placement.offset_bytes + placement.size_bytes) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        )
        return
    offsets[buffer] = _largest(out, [ends[other] for other in placement.after])
    size = out.dim(placement.size_bytes)
    out.require(out.binary("le", size, out.dim(SIZE_BYTES_MAX)), TOO_LARGE)
    ends[buffer] = _rounded(out, out.binary("add", offsets[buffer], size))


def _largest(out: Assembler, registers: list[int]) -> int:
    total = out.dim(0)
    for register in dict.fromkeys(registers):
        total = register if total == out.dim(0) else out.binary("max", total, register)
    return total


def _rounded(out: Assembler, register: int) -> int:
    raised = out.binary("add", register, out.dim(ALIGNMENT_BYTES - 1))
    return out.binary(
        "mul", out.binary("floordiv", raised, out.dim(ALIGNMENT_BYTES)), out.dim(ALIGNMENT_BYTES)
    )


def _buffers(
    out: Assembler,
    fused: FusedGraph,
    plan: MemoryPlan,
    offsets: dict[int, int],
    constant_offsets: Sequence[int],
) -> None:
    data_dependent = {
        placement.buffer for placement in plan.placements if placement.is_data_dependent
    }
    for buffer, spec in enumerate(fused.buffers):
        if spec.kind == "input":
            out.emit("buffer_input", buffer, spec.index)
        elif spec.kind == "output":
            if all(_is_known(out, dim) for dim in fused.outputs[spec.index].shape):
                out.emit("buffer_output", buffer, spec.index)
        elif spec.kind == "constant":
            place = constant_offsets[spec.index], typical(buffer_bytes(fused, buffer))
            if spec.device:
                out.emit("buffer_device_weights", buffer, spec.device, *place)
            else:
                out.emit("buffer_weights", buffer, *place)
        elif buffer in offsets and buffer not in data_dependent:
            out.emit(
                "buffer_workspace",
                buffer,
                spec.device,
                offsets[buffer],
                out.dim(buffer_bytes(fused, buffer)),
            )


def _is_known(out: Assembler, dim: Dim) -> bool:
    return all(name in out.symbols for name in symbols_of(dim))


def _data_dependent_outputs(out: Assembler, fused: FusedGraph) -> set[int]:
    """Buffers of outputs whose size no input shape gives: they get blocks of their own."""
    return {
        buffer
        for buffer, spec in enumerate(fused.buffers)
        if spec.kind == "output"
        and not all(_is_known(out, dim) for dim in fused.outputs[spec.index].shape)
    }


def _written(steps: Sequence[Step]) -> set[int]:
    """Buffers that kernels and copies write."""
    results = {
        result.buffer
        for step in all_steps(steps)
        if isinstance(step, Launch)
        for result in step.results
    }
    return results | {step.result for step in all_steps(steps) if isinstance(step, Copy)}


def _finish_late_outputs(
    out: Assembler, fused: FusedGraph, steps: Sequence[Step], others: Collection[int]
) -> None:
    """Real sizes and addresses of those outputs; ``others`` belong to the other way to run."""
    read = symbols_set(steps)
    for buffer, spec in enumerate(fused.buffers):
        if spec.kind != "output" or buffer in others:
            continue
        shape = fused.outputs[spec.index].shape
        if any(name in read for dim in shape for name in symbols_of(dim)):
            for axis, dim in enumerate(shape):
                out.emit("output_dim", spec.index, axis, out.dim(dim))
            out.emit("output_buffer", spec.index, buffer, out.dim(buffer_bytes(fused, buffer)))


def _read_symbol(out: Assembler, step: SymbolRead) -> None:
    index = out.dim(step.index)
    register = out.changing(step.symbol)
    out.emit("read", register, step.buffer, index, dtype_code(step.dtype))
    if step.is_size:
        what = of_nodes("a size that the model computes is negative", step.source, out.makers)
        out.require(out.binary("le", out.dim(0), register), what)
        out.bind(step.symbol, register)


def _is_bound(out: Assembler, step: Requirement) -> bool:
    return all(name in out.symbols for name in symbols_of(step.difference))


def _require(out: Assembler, step: Requirement) -> None:
    out.too_large = of_nodes(TOO_LARGE, step.source, out.makers)
    condition = out.binary("eq", out.dim(step.difference), out.dim(0))
    out.too_large = TOO_LARGE
    out.require(condition, of_nodes(step.what, step.source, out.makers))


def _extent(out: Assembler, group: Group, program: LoopProgram) -> int:
    """The units to run: none where nothing is written, however many the sizes beside the empty one
    would make."""
    extent = out.dim(program.extent)
    if group.fills_halo:
        return extent  # an image without elements has a border
    first, *others = (result.type for result in group.results)
    sizes = list(dict.fromkeys(first.shape))
    if others:
        sizes = [
            functools.reduce(dim_add, (kind.element_count for kind in others), first.element_count)
        ]
    for size in sizes:
        if not isinstance(size, int) and not _vanishes(program.extent, size):
            extent = out.binary("mul", extent, out.dim(dim_min(size, 1)))
    return extent


def _vanishes(extent: Dim, size: Dim) -> bool:
    """Whether ``extent`` can be seen to be 0 where ``size`` is."""
    name = _only_symbol(size)
    return extent == size or (name is not None and substitute(extent, {name: 0}) == 0)


def _launch(
    out: Assembler,
    launch: Launch,
    program: LoopProgram,
    kernel: int,
    ordinal: int,
    beside: tuple[int, ...],
) -> None:
    group, names = launch.group, dict(launch.names)
    buffers = (*launch.buffers, *beside)
    scalars = tuple(out.symbols[names.get(name, name)] for name in program.scalars)
    extent = _extent(out, group, program)
    operands = (group.device, kernel, ordinal, buffers, scalars, extent, program.grain)
    messages = tuple(
        out.message(of_nodes(attribute_text(node.table, "what"), node.source, out.makers))
        for node in requirements_of(group)
    )
    if messages:
        out.emit("launch_checked", *operands, messages)
    else:
        out.emit("launch", *operands)

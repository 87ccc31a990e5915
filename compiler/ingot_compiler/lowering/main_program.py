"""Builds the instruction list of ``main``: sizes first, then one launch per group.

In: the fused graph, the loop programs of its groups, the memory plan, where constants lie in the weights section.
Out: a ``Program`` (``ingot_runtime.format.program``). Not done here: machine code (``codegen.main``), stepping (the vm).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Atom, Call, Dim, Symbol, symbols_of, terms_of
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.fused import FusedGraph, Group, Requirement, SymbolRead
from ingot_compiler.lowering.kinds.program import typical
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.plan_memory import ALIGNMENT_BYTES, MemoryPlan, Placement, buffer_bytes
from ingot_runtime.format.dtypes import DTYPE_CODES
from ingot_runtime.format.program import CODES, Instruction, Program

Operands = tuple[int | tuple[int, ...], ...]


class _Assembler:
    """Allocates registers and appends instructions; equal expressions share a register."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.messages: list[str] = []
        self.known: dict[Dim, int] = {}
        self.symbols: dict[str, int] = {}
        self.register_count = 0

    def emit(self, name: str, *operands: int | tuple[int, ...]) -> None:
        """Append one instruction."""
        self.instructions.append((CODES[name], operands))

    def register(self) -> int:
        """A fresh register."""
        self.register_count += 1
        return self.register_count - 1

    def binary(self, name: str, left: int, right: int) -> int:
        """A register that holds ``left name right``."""
        result = self.register()
        self.emit(name, result, left, right)
        return result

    def dim(self, dim: Dim) -> int:
        """A register that holds an expression."""
        if dim not in self.known:
            self.known[dim] = self._constant(dim) if isinstance(dim, int) else self._sum(dim)
        return self.known[dim]

    def _constant(self, value: int) -> int:
        result = self.register()
        self.emit("const", result, value)
        return result

    def _sum(self, dim: Dim) -> int:
        total: int | None = None
        for monomial, factor in terms_of(dim):
            current = None if factor == 1 and monomial else self.dim(factor)
            for atom in monomial:
                register = self._atom(atom)
                current = register if current is None else self.binary("mul", current, register)
            assert current is not None
            total = current if total is None else self.binary("add", total, current)
        assert total is not None
        return total

    def _atom(self, atom: Atom) -> int:
        if isinstance(atom, Symbol):
            if atom.name not in self.symbols:
                raise InternalError(f"symbol {atom.name} is not bound", why="an input or a read_dim must bind it")
            return self.symbols[atom.name]
        assert isinstance(atom, Call)
        return self.binary(atom.function, self.dim(atom.left), self.dim(atom.right))

    def require(self, condition: int, message: str) -> None:
        """Fail with ``message`` unless the register is non-zero."""
        if message not in self.messages:
            self.messages.append(message)
        self.emit("assert", condition, self.messages.index(message))


def build_program(
    fused: FusedGraph,
    programs: Sequence[LoopProgram],
    kernel_indices: Sequence[int],
    plan: MemoryPlan,
    constant_offsets: Sequence[int],
) -> Program:
    """Assemble ``main``.

    ``programs[i]`` and ``kernel_indices[i]`` (position in the variant's kernel list) belong to the i-th ``Group`` of
    ``fused.steps``; ``constant_offsets[i]`` is the byte offset of ``fused.constants[i]`` in the weights section.
    """
    out = _Assembler()
    _bind_inputs(out, fused)
    for step in fused.steps:
        if isinstance(step, Requirement) and _is_bound(out, step):
            _require(out, step)
    offsets = _sizes(out, fused, programs, plan)
    out.emit("begin")
    _buffers(out, fused, plan, offsets, constant_offsets)
    ordinal = 0
    late = _late_outputs(out, fused)
    for index, step in enumerate(fused.steps):
        if isinstance(step, SymbolRead):
            _read_symbol(out, step)
            continue
        if isinstance(step, Requirement):
            if step.what not in out.messages:
                _require(out, step)
            continue
        _grow_late(out, plan, index)
        for buffer in sorted({result.buffer for result in step.results} & late):
            late.remove(buffer)
            out.emit("buffer_grow", buffer, 0, out.dim(buffer_bytes(fused, buffer)))
        _launch(out, step, programs[ordinal], kernel_indices[ordinal], ordinal)
        ordinal += 1
    _finish_late_outputs(out, fused)
    out.emit("return")
    return Program(tuple(out.instructions), out.register_count, len(fused.buffers), tuple(out.messages))


def _bind_inputs(out: _Assembler, fused: FusedGraph) -> None:
    """Registers for the symbols; every other dimension is checked once all symbols are known."""
    checks: list[tuple[int, Dim, str]] = []
    for index, kind in enumerate(fused.inputs):
        for axis, dim in enumerate(kind.shape):
            register = out.register()
            out.emit("input_dim", register, index, axis)
            name = _only_symbol(dim)
            if name is not None and name not in out.symbols:
                out.symbols[name] = register
            else:
                checks.append((register, dim, f"input {index}, axis {axis}: expected {dim}"))
    for register, dim, message in checks:
        out.require(out.binary("eq", register, out.dim(dim)), message)


def _only_symbol(dim: Dim) -> str | None:
    terms = terms_of(dim)
    if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and isinstance(terms[0][0][0], Symbol):
        return terms[0][0][0].name
    return None


def _sizes(out: _Assembler, fused: FusedGraph, programs: Sequence[LoopProgram], plan: MemoryPlan) -> dict[int, int]:
    """Workspace offsets (registers by buffer), then the totals that the caller must provide."""
    offsets: dict[int, int] = {}
    ends: dict[int, int] = {}
    early = [placement for placement in plan.placements if not placement.late]
    for placement in early:
        _place(out, placement, offsets, ends)
    total = _largest(out, [ends[placement.buffer] for placement in early])
    out.emit("workspace_bytes", 0, total)
    scratch = [out.dim(program.scratch_bytes) for program in programs if program.scratch_bytes != 0]
    out.emit("scratch_bytes", _rounded(out, _largest(out, scratch)))
    for index, kind in enumerate(fused.outputs):
        for axis, dim in enumerate(kind.shape):
            out.emit("output_dim", index, axis, out.dim(dim if _is_known(out, dim) else -1))
    return offsets


def _place(out: _Assembler, placement: Placement, offsets: dict[int, int], ends: dict[int, int]) -> None:
    buffer = placement.buffer
    if placement.offset_bytes is not None:
        assert isinstance(placement.size_bytes, int)
        offsets[buffer] = out.dim(placement.offset_bytes)
        ends[buffer] = out.dim(-(-(placement.offset_bytes + placement.size_bytes) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES)
        return
    offsets[buffer] = _largest(out, [ends[other] for other in placement.after])
    ends[buffer] = _rounded(out, out.binary("add", offsets[buffer], out.dim(placement.size_bytes)))


def _largest(out: _Assembler, registers: list[int]) -> int:
    total = out.dim(0)
    for register in dict.fromkeys(registers):
        total = register if total == out.dim(0) else out.binary("max", total, register)
    return total


def _rounded(out: _Assembler, register: int) -> int:
    raised = out.binary("add", register, out.dim(ALIGNMENT_BYTES - 1))
    return out.binary("mul", out.binary("floordiv", raised, out.dim(ALIGNMENT_BYTES)), out.dim(ALIGNMENT_BYTES))


def _buffers(
    out: _Assembler, fused: FusedGraph, plan: MemoryPlan, offsets: dict[int, int], constant_offsets: Sequence[int]
) -> None:
    late = {placement.buffer for placement in plan.placements if placement.late}
    for buffer, spec in enumerate(fused.buffers):
        if spec.kind == "input":
            out.emit("buffer_input", buffer, spec.index)
        elif spec.kind == "output":
            if all(_is_known(out, dim) for dim in fused.outputs[spec.index].shape):
                out.emit("buffer_output", buffer, spec.index)
        elif spec.kind == "constant":
            out.emit("buffer_weights", buffer, constant_offsets[spec.index], typical(buffer_bytes(fused, buffer)))
        elif buffer in offsets and buffer not in late:
            out.emit("buffer_workspace", buffer, spec.device, offsets[buffer], out.dim(buffer_bytes(fused, buffer)))


def _grow_late(out: _Assembler, plan: MemoryPlan, step: int) -> None:
    """A block for every buffer that this step is the first to write and whose size was only just read."""
    for placement in plan.placements:
        if placement.late and placement.first == step:
            out.emit("buffer_grow", placement.buffer, 0, out.dim(placement.size_bytes))


def _is_known(out: _Assembler, dim: Dim) -> bool:
    return all(name in out.symbols for name in symbols_of(dim))


def _late_outputs(out: _Assembler, fused: FusedGraph) -> set[int]:
    """Buffers of outputs whose size no input shape gives: they get blocks of their own."""
    return {
        buffer
        for buffer, spec in enumerate(fused.buffers)
        if spec.kind == "output" and not all(_is_known(out, dim) for dim in fused.outputs[spec.index].shape)
    }


def _finish_late_outputs(out: _Assembler, fused: FusedGraph) -> None:
    """Real sizes and addresses of those outputs."""
    read = {step.symbol for step in fused.steps if isinstance(step, SymbolRead)}
    for buffer, spec in enumerate(fused.buffers):
        if spec.kind != "output":
            continue
        shape = fused.outputs[spec.index].shape
        if any(name in read for dim in shape for name in symbols_of(dim)):
            for axis, dim in enumerate(shape):
                out.emit("output_dim", spec.index, axis, out.dim(dim))
            out.emit("output_buffer", spec.index, buffer, out.dim(buffer_bytes(fused, buffer)))


def _read_symbol(out: _Assembler, step: SymbolRead) -> None:
    register = out.register()
    out.emit("read", register, step.buffer, out.dim(step.index), DTYPE_CODES[step.dtype])
    out.require(out.binary("le", out.dim(0), register), f"a size that the model computes is negative ({step.symbol})")
    out.symbols[step.symbol] = register


def _is_bound(out: _Assembler, step: Requirement) -> bool:
    return all(name in out.symbols for name in symbols_of(step.difference))


def _require(out: _Assembler, step: Requirement) -> None:
    out.require(out.binary("eq", out.dim(step.difference), out.dim(0)), step.what)


def _launch(out: _Assembler, group: Group, program: LoopProgram, kernel: int, ordinal: int) -> None:
    buffers = tuple(dict.fromkeys(operand.buffer for operand in (*group.operands, *group.results)))
    scalars = tuple(out.symbols[name] for name in program.scalars)
    extent = out.dim(program.extent)
    out.emit("launch", group.device, kernel, ordinal, buffers, scalars, extent, program.grain)

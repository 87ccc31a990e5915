"""The LLVM IR of one kernel: which units each eight threads run, and the function that they share.

In: a loop program. Out: ``DeviceKernel``. Not done here: PTX (``compile_kernel``), libraries
(``link_library``).

Parameters of a kernel, of eight bytes each: the address of each buffer; the scalars; the address of
scratch; the address of an i32 where a broken requirement is reported; the extent; how many units
eight threads run, one after the other. ``runtime/FORMAT.md`` states it for loaders.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.backends.cuda.architectures import GROUPS_MAX
from ingot_compiler.backends.cuda.ir_dims import emit_dim
from ingot_compiler.backends.cuda.lane_group import LANE, LANE64, LANES, MASK
from ingot_compiler.backends.cuda.memory_roots import memory_roots
from ingot_compiler.backends.cuda.thread_function import emit_function
from ingot_compiler.backends.cuda.thread_scope import ThreadScope
from ingot_compiler.backends.host.device_kernel import DeviceKernel, kernel_row
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.kernels.machines import TEAM_MACHINE
from ingot_compiler.lowering.loops.program import LoopProgram

_SHARED_BYTES_MAX = 48 << 10
_SCRATCH_SHARED_BYTES_MAX = 12 << 10  # of eight threads: four times eight are a block then
_ALIGNMENT_BYTES = 64

_SCRATCH = LlvmValue("%scratch", "ptr")
_FIRST, _LAST = LlvmValue("%first", "i64"), LlvmValue("%last", "i64")
_ANY = LlvmValue("%g.any", "i1")
_OF_LAUNCH = (
    LlvmValue("%g.scratch", "ptr"), LlvmValue("%g.report", "ptr"),
    LlvmValue("%g.extent", "i64"), LlvmValue("%g.share", "i64"),
)  # fmt: skip
_LAUNCH_SCRATCH, _REPORT, _EXTENT, _SHARE = _OF_LAUNCH

Slots = tuple[tuple[str, int], ...]


def kernel_ir(program: LoopProgram) -> DeviceKernel:
    """Write the kernel of a program. Little scratch of a known size is memory of the block, so that
    it bounds the threads of a launch no more."""
    function = kernel_module(program, TEAM_MACHINE)
    symbol, has_report = function.symbol, function.reports
    function = function.without_tables()
    roots = memory_roots(function)
    scratch = dim_floordiv(program.scratch_bytes, GROUPS_MAX)
    if isinstance(scratch, int) and 0 < scratch <= _SCRATCH_SHARED_BYTES_MAX:
        roots = replace(roots, shared=(*roots.shared, (_SCRATCH.name, scratch)))
        program = replace(program, scratch_bytes=0)
    groups = _block_groups(roots.team, roots.shared, symbol)
    scope = ThreadScope(symbol, function.arrays)
    with scope.at(scope.entry):
        group, in_block = _emit_units(scope, groups)
        _emit_scratch(scope, program, group)
        for slot in roots.own:
            scope.put(slot)
    memory = f"@{symbol}_shared"
    places = scope.mark()
    scope.branch_if(_ANY, function.blocks[0].label, "g.finish")
    code = emit_function(scope, roots, function)
    with scope.at(places):
        _emit_shared(scope, memory, in_block, roots.team, roots.shared)
    _emit_end(scope, code if has_report else None)
    arguments = (each for each in function.parameters if each not in (_FIRST, _LAST, _SCRATCH))
    kernel = scope.kernel(symbol, (*arguments, *_OF_LAUNCH), "ptx_kernel void")
    kernel = replace(kernel, attributes="nounwind", arrays=tuple(scope.tables))
    size_bytes = _size_bytes(roots.team) + _size_bytes(roots.shared) * groups
    row = f"{kernel_row(program, symbol, has_report=has_report)} {groups * LANES}"
    return DeviceKernel(symbol, row, _shared_table(memory, size_bytes) + llvm_text(kernel))


def _block_groups(team: Slots, shared: Slots, symbol: str) -> int:
    """How many times eight threads are a block: a team, or as many as have room in its memory."""
    groups, own, of_team = TEAM_MACHINE.team_units, _size_bytes(shared), _size_bytes(team)
    while groups > 1 and not team and groups * own > _SHARED_BYTES_MAX:
        groups //= 2
    if of_team + groups * own > _SHARED_BYTES_MAX:
        why = f"{of_team} bytes and {groups} times {own}, of {_SHARED_BYTES_MAX} that a block has"
        raise InternalError("a kernel needs too much shared memory", where=symbol, why=why)
    return groups


def _emit_units(w: ThreadScope, groups: int) -> tuple[LlvmValue, LlvmValue]:
    """Which units these threads run; the number of their group in the launch, and in the block."""
    thread = w.call("llvm.nvvm.read.ptx.sreg.tid.x", (), "i32")
    block = w.call("llvm.nvvm.read.ptx.sreg.ctaid.x", (), "i32")
    w.write("and", (thread, constant(LANES - 1, "i32")), LANE)
    w.write("zext", (LANE,), LANE64)
    first_lane = w.binary("and", thread, constant(32 - LANES, "i32"))
    w.write("shl", (constant((1 << LANES) - 1, "i32"), first_lane), MASK)
    in_block = w.convert("zext", w.binary("udiv", thread, constant(LANES, "i32")), "i64")
    before = w.binary("mul", w.convert("zext", block, "i64"), constant(groups, "i64"))
    group = w.binary("add", before, in_block)
    w.write("mul", (group, _SHARE), _FIRST)
    behind = w.binary("add", _FIRST, _SHARE)
    w.write("call", (behind, _EXTENT), _LAST, word="llvm.smin", overloads=(_LAST,))
    w.write("icmp", (_FIRST, _LAST), _ANY, word="slt")
    return group, in_block


def _emit_scratch(w: ThreadScope, program: LoopProgram, group: LlvmValue) -> None:
    """Where the scratch of these threads lies in the launch's, if it has any."""
    if program.scratch_bytes == 0:
        return
    symbols = {name: LlvmValue(f"%s{at}", "i64") for at, name in enumerate(program.scalars)}
    own = emit_dim(w, dim_floordiv(program.scratch_bytes, GROUPS_MAX), symbols)
    at = w.binary("mul", group, own)
    w.write("getelementptr", (_LAUNCH_SCRATCH, at), _SCRATCH, word="i8")


def _shared_table(name: str, size_bytes: int) -> str:
    if not size_bytes:
        return ""
    kind = f"[{size_bytes} x i8]"
    return f"{name} = internal addrspace(3) global {kind} poison, align {_ALIGNMENT_BYTES}\n"


def _emit_shared(
    w: ThreadScope, memory: str, in_block: LlvmValue, team: Slots, shared: Slots
) -> None:
    """Where the slots of the team, then those of these threads, lie in the block's memory."""
    if not team and not shared:
        return
    generic = LlvmValue(f"addrspacecast (ptr addrspace(3) {memory} to ptr)", "ptr")
    _emit_slots(w, generic, team)
    at = w.binary("mul", in_block, constant(_size_bytes(shared), "i64"))
    behind = w.binary("add", at, constant(_size_bytes(team), "i64"))
    _emit_slots(w, w.offset(generic, behind, "i8"), shared)


def _emit_slots(w: ThreadScope, memory: LlvmValue, slots: Slots) -> None:
    for number, (name, _) in enumerate(slots):
        at = constant(_size_bytes(slots[:number]), "i64")
        w.write("getelementptr", (memory, at), LlvmValue(name, "ptr"), word="i8")


def _size_bytes(slots: Slots) -> int:
    """Bytes of slots, each of which begins at a multiple of the alignment."""
    return sum(-(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES for _, size in slots)


def _emit_end(w: ThreadScope, code: LlvmValue | None) -> None:
    """Report a code that is not 0."""
    if code is not None:
        failed = w.compare("ne", code, constant(0, "i32"))
        w.branch_if(failed, "g.tell", "g.finish")
        w.start("g.tell")
        w.define("atomicrmw", (_REPORT, code), "i32", word="max")
    w.branch("g.finish")
    w.start("g.finish")
    w.write("ret")

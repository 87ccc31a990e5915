"""The LLVM IR of one kernel: which units each eight threads run, and the function that they share.

In: a loop program. Out: ``DeviceKernel``. Not done here: PTX (``ptx``), libraries
(``link_library``).

Parameters of a kernel, of eight bytes each: the address of each buffer; the scalars; the address of
scratch; the address of an i32 where a broken requirement is reported; the extent; how many units
eight threads run, one after the other. ``runtime/FORMAT.md`` states it for loaders.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.backends.cuda.ir_dims import dim_lines
from ingot_compiler.backends.cuda.lane_group import GROUPS_MAX, LANE, LANE64, LANES, MASK
from ingot_compiler.backends.cuda.thread_function import ThreadBody, thread_body
from ingot_compiler.backends.host.device_kernel import DeviceKernel, kernel_row
from ingot_compiler.backends.host.emit.kernel import kernel_module
from ingot_compiler.backends.host.ir_text import reports, without_arguments
from ingot_compiler.backends.host.team_machine import TEAM_MACHINE
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.loops import LoopProgram

_SHARED_BYTES_MAX = 48 << 10
_SCRATCH_SHARED_BYTES_MAX = 12 << 10  # of eight threads: four times eight are a block then
_ALIGNMENT_BYTES = 64

_SCRATCH = "%scratch"

Slots = tuple[tuple[str, int], ...]


def kernel_ir(program: LoopProgram) -> DeviceKernel:
    """Write the kernel of a program. Little scratch of a known size is memory of the block, so that
    it bounds the threads of a launch no more."""
    module = kernel_module(program, TEAM_MACHINE)
    symbol, has_report = module.symbol, reports(module.text)
    body = thread_body(without_arguments(module.text), symbol)
    scratch = dim_floordiv(program.scratch_bytes, GROUPS_MAX)
    if isinstance(scratch, int) and 0 < scratch <= _SCRATCH_SHARED_BYTES_MAX:
        body = replace(body, shared=(*body.shared, (_SCRATCH, scratch)))
        program = replace(program, scratch_bytes=0)
    groups = _block_groups(body, symbol)
    row = f"{kernel_row(program, symbol, has_report=has_report)} {groups * LANES}"
    memory = f"@{symbol}_shared"
    lines = [
        *body.tables,
        *_shared_table(memory, _room(body.team) + _room(body.shared) * groups),
        f"define ptx_kernel void @{symbol}({_parameters(program)}) nounwind {{",
        *_start(groups),
        *_scratch_lines(program),
        *body.start,
        *_shared_places(memory, body),
        "  br i1 %g.any, label %entry, label %g.finish",
        *_with_report(body.lines, has_report=has_report),
        "g.finish:",
        "  ret void",
        "}",
        "",
    ]
    return DeviceKernel(symbol, row, "\n".join(lines))


def _block_groups(body: ThreadBody, symbol: str) -> int:
    """How many times eight threads are a block: a team, or as many as have room in its memory."""
    groups, own, team = TEAM_MACHINE.team_units, _room(body.shared), _room(body.team)
    while groups > 1 and not team and groups * own > _SHARED_BYTES_MAX:
        groups //= 2
    if team + groups * own > _SHARED_BYTES_MAX:
        why = f"{team} bytes and {groups} times {own}, of {_SHARED_BYTES_MAX} that a block has"
        raise InternalError("a kernel needs too much shared memory", where=symbol, why=why)
    return groups


def _parameters(program: LoopProgram) -> str:
    return ", ".join((
        *(f"ptr %b{number}" for number in range(len(program.buffers))),
        *(f"i64 %s{number}" for number in range(len(program.scalars))),
        "ptr %g.scratch, ptr %g.report, i64 %g.extent, i64 %g.share",
    ))  # fmt: skip


def _start(groups: int) -> list[str]:
    """Which units these threads run."""
    return [
        "g.start:",
        "  %g.thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "  %g.block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        f"  {LANE} = and i32 %g.thread, {LANES - 1}",
        f"  {LANE64} = zext i32 {LANE} to i64",
        f"  %g.first_lane = and i32 %g.thread, {32 - LANES}",
        f"  {MASK} = shl i32 {(1 << LANES) - 1}, %g.first_lane",
        f"  %g.in_block32 = udiv i32 %g.thread, {LANES}",
        "  %g.in_block = zext i32 %g.in_block32 to i64",
        "  %g.block64 = zext i32 %g.block to i64",
        f"  %g.before = mul i64 %g.block64, {groups}",
        "  %g.group = add i64 %g.before, %g.in_block",
        "  %first = mul i64 %g.group, %g.share",
        "  %g.behind = add i64 %first, %g.share",
        "  %last = call i64 @llvm.smin.i64(i64 %g.behind, i64 %g.extent)",
        "  %g.any = icmp slt i64 %first, %last",
    ]


def _scratch_lines(program: LoopProgram) -> list[str]:
    """Where the scratch of these threads lies in the launch's, if it has any."""
    if program.scratch_bytes == 0:
        return []
    names = {name: f"%s{number}" for number, name in enumerate(program.scalars)}
    lines, own = dim_lines(dim_floordiv(program.scratch_bytes, GROUPS_MAX), names)
    return [
        *lines,
        f"  %g.scratch_at = mul i64 %g.group, {own}",
        f"  {_SCRATCH} = getelementptr i8, ptr %g.scratch, i64 %g.scratch_at",
    ]


def _shared_table(name: str, size_bytes: int) -> list[str]:
    if not size_bytes:
        return []
    kind = f"[{size_bytes} x i8]"
    return [f"{name} = internal addrspace(3) global {kind} poison, align {_ALIGNMENT_BYTES}"]


def _shared_places(memory: str, body: ThreadBody) -> list[str]:
    """Where the slots of the team, then those of these threads, lie in the block's memory."""
    if not body.team and not body.shared:
        return []
    generic = f"addrspacecast (ptr addrspace(3) {memory} to ptr)"
    return [
        *_slots(f"ptr {generic}", body.team),
        f"  %g.shared_at = mul i64 %g.in_block, {_room(body.shared)}",
        f"  %g.shared_behind = add i64 %g.shared_at, {_room(body.team)}",
        f"  %g.shared = getelementptr i8, ptr {generic}, i64 %g.shared_behind",
        *_slots("ptr %g.shared", body.shared),
    ]


def _slots(memory: str, slots: Slots) -> list[str]:
    return [
        f"  {name} = getelementptr i8, {memory}, i64 {_room(slots[:number])}"
        for number, (name, _) in enumerate(slots)
    ]


def _room(slots: Slots) -> int:
    """Bytes of slots, each of which begins at a multiple of the alignment."""
    return sum(-(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES for _, size in slots)


def _with_report(lines: tuple[str, ...], *, has_report: bool) -> list[str]:
    """The function, which ends where it returned a code: that is reported, unless it is 0."""
    *others, last = lines
    if not has_report:
        return [*others, "  br label %g.finish"]
    code = last.strip().removeprefix("ret i32 ")
    return [
        *others,
        f"  %g.failed = icmp ne i32 {code}, 0",
        "  br i1 %g.failed, label %g.tell, label %g.finish",
        "g.tell:",
        f"  %g.told = atomicrmw max ptr %g.report, i32 {code} monotonic",
        "  br label %g.finish",
    ]

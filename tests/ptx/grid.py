"""A launch of one kernel: all threads of all blocks, instruction by instruction.

In: a kernel, its arguments, memory. Out: memory, changed. Not done here: text (``ptx_text``),
arithmetic (``numbers``).

Threads that stand at the same instruction run it together; of those that do not, the ones furthest
back run first. With ``lanes``, an order of the places in a group of threads, all threads at the
first place run until they wait, then those at the next: who counts on another thread without
waiting for it then gets wrong numbers. Threads that wait for others (``bar``, ``shfl``, ``vote``)
run on when all for whom they wait are there, and a launch in which everybody waits ends with
``PtxError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from tests.ptx import numbers
from tests.ptx.memory import Array, GlobalMemory, Rows, require_aligned
from tests.ptx.ptx_text import PtxError, PtxInstruction, PtxKernel
from tests.ptx.traffic import Traffic

WARP = 32
STEPS_MAX = 50_000_000
_RUNS, _WAITS, _ENDED = range(3)
_FLOATS: dict[str, Any] = {"0f": np.uint32, "0d": np.uint64}
_CONDITION = 2  # place of the third operand
_COLLECTIVE = ("bar", "shfl", "vote")


class Grid:
    """One launch; ``registers`` by name, a number per thread."""

    def __init__(
        self,
        kernel: PtxKernel,
        tables: Mapping[str, int],
        memory: GlobalMemory,
        shape: tuple[int, int],
        arguments: Sequence[int],
        lanes: Sequence[int] = (),
        traffic: Traffic | None = None,
    ) -> None:
        self.lanes = lanes
        self.traffic = traffic
        self.kernel = kernel
        self.tables = tables
        self.memory = memory
        self.blocks, self.block_threads = shape
        self.count = self.blocks * self.block_threads
        self.arguments = dict(zip(kernel.parameters, arguments, strict=True))
        self.threads = np.arange(self.count)
        self.pc = np.zeros(self.count, np.int64)
        self.state = np.full(self.count, _RUNS)
        self.registers: dict[str, Array] = {}
        self._constants: dict[tuple[str, str], Array] = {}
        self.rows = {
            "shared": Rows(self.blocks, kernel.sizes_bytes["shared"]),
            "local": Rows(self.count, kernel.sizes_bytes["local"]),
        }

    # ---- order -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all threads to their end.

        Raises:
            PtxError: an instruction that there is not, a wrong access, threads that wait for ever.
        """
        steps = 0
        while True:
            running = self._next(np.flatnonzero(self.state == _RUNS))
            if not running.size:
                break
            at = self.pc[running]
            first = int(at.min())
            now = running[at == first]
            others = at[at > first]
            steps += self._run_from(first, now, int(others.min()) if others.size else -1)
            if steps > STEPS_MAX:
                raise PtxError("a launch that does not end")
        waiting = np.flatnonzero(self.state == _WAITS)
        if waiting.size:
            text = self.kernel.instructions[int(self.pc[waiting[0]])].text
            raise PtxError(f"{waiting.size} threads wait for others that do not come: {text}")

    def _next(self, running: Array) -> Array:
        """Those of the threads that can run whose turn it is."""
        place = running % max(len(self.lanes), 1)
        found = next((lane for lane in self.lanes if (place == lane).any()), None)
        return running if found is None else running[place == found]

    def _run_from(self, first: int, now: Array, others: int) -> int:
        """Run threads that stand at one place until they part, or reach the place ``others``."""
        pc, steps = first, 0
        instructions = self.kernel.instructions
        while True:
            found, steps = instructions[pc], steps + 1
            if found.opcode[0] in ("bra", "ret", "exit"):
                following = self._jump(found, now, pc)
                if following < 0:
                    return steps
                pc = following
            else:
                if found.opcode[0] in _COLLECTIVE:
                    now = self._gathered(found, now, pc)
                    if not now.size:
                        return steps
                self._execute(found, now)
                pc += 1
            is_over = self.lanes and found.opcode[0] in _COLLECTIVE
            if is_over or (others >= 0 and pc >= others):
                self.pc[now] = pc
                return steps

    def _jump(self, found: PtxInstruction, now: Array, pc: int) -> int:
        """Where all of the threads go on; -1 where they part or end."""
        taken = self._holds(found, now)
        if found.opcode[0] != "bra":
            self.state[now[taken]] = _ENDED
            self.pc[now] = pc + 1
            return -1 if taken.any() else pc + 1
        target = self.kernel.labels[found.operands[0]]
        if taken.all():
            return target
        if not taken.any():
            return pc + 1
        self.pc[now] = np.where(taken, target, pc + 1)
        return -1

    def _holds(self, found: PtxInstruction, now: Array) -> Array:
        if not found.guard:
            return np.ones(now.size, bool)
        value = self.registers[found.guard.lstrip("!")][now]
        return ~value if found.guard[0] == "!" else value

    def _gathered(self, found: PtxInstruction, now: Array, pc: int) -> Array:
        """Those of the threads at this place for whom all others are there; the rest waits."""
        here = np.zeros(self.count, bool)
        here[now] = True
        here |= (self.state == _WAITS) & (self.pc == pc)
        self.pc[here] = pc
        self.state[here] = _WAITS
        if found.opcode[:2] == ("bar", "sync"):
            group = self.threads // self.block_threads
            wanted = np.bincount(group[self.state != _ENDED], minlength=self.blocks)
            ready = here & (np.bincount(group[here], minlength=self.blocks) == wanted)[group]
        else:
            ready = self._warps_ready(found, here)
        self.state[ready] = _RUNS
        return np.flatnonzero(ready)

    def _warps_ready(self, found: PtxInstruction, here: Array) -> Array:
        """The threads whose mask names only threads that are here."""
        place = np.flatnonzero(here)
        masks = np.zeros(self.count, np.uint32)
        masks[place] = self._value(found.operands[-1], np.uint32, place)
        lane = self.threads % self.block_threads % WARP
        warp = self._warp
        present = np.zeros(int(warp[-1]) + 1, np.uint32)
        np.bitwise_or.at(present, warp[place], np.uint32(1) << lane[place].astype(np.uint32))
        outside = masks & ~present[warp]
        own = (masks >> lane.astype(np.uint32)) & 1
        if (own[place] == 0).any():
            raise PtxError(f"a thread that its own mask does not name: {found.text}")
        ready: Array = here & (outside == 0)
        return ready

    @cached_property
    def _warp(self) -> Array:
        per_block = -(-self.block_threads // WARP)
        block, thread = np.divmod(self.threads, self.block_threads)
        answer: Array = block * per_block + thread // WARP
        return answer

    # ---- instructions ----------------------------------------------------------------------------

    def _execute(self, found: PtxInstruction, now: Array) -> None:
        if found.guard:
            now = now[self._holds(found, now)]
            if not now.size:
                return
        name, opcode, operands = found.opcode[0], found.opcode, found.operands
        if self.traffic and name == "fma":
            self.traffic.products += now.size
        if name == "ld":
            self._load(opcode, operands, now)
        elif name == "st":
            self._store(opcode, operands, now)
        elif name == "atom":
            self._atomic(found, now)
        elif name == "cvta":
            self._set(operands[0], self._value(operands[1], np.uint64, now), now)
        elif name == "mov":
            self._move(opcode, operands, now)
        elif name == "shfl":
            self._shuffle(found, now)
        elif name == "vote":
            self._vote(found, now)
        elif name != "bar":
            self._compute(opcode, operands, now)

    def _compute(self, opcode: tuple[str, ...], operands: tuple[str, ...], now: Array) -> None:
        kind = numbers.TYPES[opcode[-1]]
        target, *others = operands
        if opcode[0] == "cvt":
            values = self._value(others[0], kind, now)
            result = numbers.convert(opcode, values, numbers.TYPES[opcode[-2]])
        elif opcode[0] == "setp":
            left, right = (self._value(each, kind, now) for each in others)
            result = numbers.compare(opcode, left, right)
        else:
            kinds = [_operand_type(opcode, number, kind) for number in range(len(others))]
            given = [self._value(each, its, now) for each, its in zip(others, kinds, strict=True)]
            result = numbers.compute(opcode, kind, given)
        self._set(target, result, now)

    def _move(self, opcode: tuple[str, ...], operands: tuple[str, ...], now: Array) -> None:
        target, source = operands
        if source.startswith("{"):
            half = numbers.TYPES[opcode[1]](0).itemsize // 2
            narrow = np.dtype(f"u{half}")
            low, high = (
                self._value(part, narrow, now).astype(f"u{2 * half}") for part in _braced(source)
            )
            self._set(target, low | high << low.dtype.type(8 * half), now)
        elif target.startswith("{"):
            whole = self._value(source, numbers.TYPES[opcode[1]], now)
            half = 4 * whole.dtype.itemsize
            narrow = np.dtype(f"u{half // 8}")
            for part, shift in zip(_braced(target), (0, half), strict=True):
                if part != "_":
                    self._set(part, (whole >> whole.dtype.type(shift)).astype(narrow), now)
        else:
            self._set(target, self._value(source, numbers.TYPES[opcode[1]], now), now)

    def _load(self, opcode: tuple[str, ...], operands: tuple[str, ...], now: Array) -> None:
        space, kind = opcode[1], numbers.TYPES[opcode[-1]]
        targets = _braced(operands[0])
        if space == "param":
            number = np.array(self.arguments[operands[1]], np.int64).view(kind)
            self._set(targets[0], number, now)
            return
        address = self._address(operands[1], now)
        require_aligned(address, len(targets) * np.dtype(kind).itemsize)
        if self.traffic and space == "global":
            size = len(targets) * np.dtype(kind).itemsize
            self.traffic.note_load(self._warp[now], address, size)
        elif self.traffic and space == "shared":
            self.traffic.shared_loads += now.size
        for number, target in enumerate(targets):
            at = address + np.uint64(number * np.dtype(kind).itemsize)
            if space == "global":
                values = self.memory.load(at, kind)
            else:
                values = self.rows[space].load(self._row(space, now), at, kind)
            self._set(target, values, now)

    def _store(self, opcode: tuple[str, ...], operands: tuple[str, ...], now: Array) -> None:
        space, kind = opcode[1], numbers.TYPES[opcode[-1]]
        address, sources = self._address(operands[0], now), _braced(operands[1])
        require_aligned(address, len(sources) * np.dtype(kind).itemsize)
        for number, source in enumerate(sources):
            at = address + np.uint64(number * np.dtype(kind).itemsize)
            values = np.broadcast_to(self._value(source, kind, now), now.shape)
            if space == "global":
                self.memory.store(at, values)
            else:
                self.rows[space].store(self._row(space, now), at, values)

    def _atomic(self, found: PtxInstruction, now: Array) -> None:
        if found.opcode[1:3] != ("global", "max"):
            raise PtxError(f"no instruction {found.text}")
        values = self._value(found.operands[2], numbers.TYPES[found.opcode[-1]], now)
        self.memory.maximum(self._address(found.operands[1], now), values)

    def _row(self, space: str, now: Array) -> Array:
        return now // self.block_threads if space == "shared" else now

    def _shuffle(self, found: PtxInstruction, now: Array) -> None:
        """``shfl.sync.idx``: what another lane of the segment has."""
        if found.opcode[:3] != ("shfl", "sync", "idx"):
            raise PtxError(f"no instruction {found.text}")
        target, source, lane, clamp, mask = found.operands
        width = self._value(clamp, np.int64, now)
        segment = width >> 8 & 31
        own = now % self.block_threads % WARP
        wanted = (self._value(lane, np.uint32, now).astype(np.int64) & 31 & ~segment) | (
            own & segment
        )
        masks = self._value(mask, np.uint32, now).astype(np.int64)
        if ((masks >> wanted & 1) == 0).any():
            raise PtxError(f"a lane that the mask does not name: {found.text}")
        values = np.zeros(self.count, np.uint32)
        values[now] = self._value(source, np.uint32, now)
        self._set(target, values[now - own + wanted], now)

    def _vote(self, found: PtxInstruction, now: Array) -> None:
        if found.opcode[:3] != ("vote", "sync", "any"):
            raise PtxError(f"no instruction {found.text}")
        target, source, mask = found.operands
        lane = (now % self.block_threads % WARP).astype(np.uint32)
        bits = np.zeros(int(self._warp[-1]) + 1, np.uint32)
        own = self._value(source, np.bool_, now).astype(np.uint32) << lane
        np.bitwise_or.at(bits, self._warp[now], own)
        masks = self._value(mask, np.uint32, now)
        self._set(target, (bits[self._warp[now]] & masks) != 0, now)

    # ---- operands --------------------------------------------------------------------------------

    def _set(self, name: str, values: Array, now: Array) -> None:
        bits = self.kernel.registers[name]
        kind: Any = np.dtype(np.bool_ if bits == 1 else f"u{bits // 8}")
        values = numbers.as_bits(values, kind)
        if now.size == self.count:
            self.registers[name] = np.array(np.broadcast_to(values, now.shape))
            return
        if name not in self.registers:
            self.registers[name] = np.zeros(self.count, kind)
        self.registers[name][now] = values

    def _value(self, text: str, kind: Any, now: Array) -> Array:
        """An operand, as numbers of a type; one for all threads where it is a constant."""
        found = self.registers.get(text)
        if found is not None:
            return numbers.seen_as(found if now.size == self.count else found[now], kind)
        if text.startswith("%"):
            return numbers.seen_as(self._special(text)[now], kind)
        key = (text, np.dtype(kind).str)
        if key not in self._constants:
            self._constants[key] = numbers.seen_as(self._constant(text), kind)
        return self._constants[key]

    def _constant(self, text: str) -> Array:
        """A number, or the address of a variable."""
        if text[:2] in _FLOATS:
            return np.array(int(f"0x{text[2:]}", 0), _FLOATS[text[:2]])
        if text in self.kernel.places:
            return np.array(self.kernel.places[text][1], np.uint64)
        if text in self.tables:
            return np.array(self.tables[text], np.uint64)
        return np.array(int(text.rstrip("U"), 0) % (1 << 64), np.uint64)

    def _special(self, text: str) -> Array:
        known: dict[str, Array] = {
            "%tid.x": self.threads % self.block_threads,
            "%ctaid.x": self.threads // self.block_threads,
        }
        if text not in known:
            raise PtxError(f"a register that nothing has written: {text}")
        return known[text].astype(np.uint32)

    def _address(self, text: str, now: Array) -> Array:
        base, sign, offset = text.partition("+")
        at = np.broadcast_to(self._value(base, np.uint64, now), now.shape)
        return at + np.uint64(int(offset, 0) % (1 << 64)) if sign else at


def _braced(text: str) -> list[str]:
    return [part.strip() for part in text.strip("{}").split(",")]


def _operand_type(opcode: tuple[str, ...], number: int, kind: Any) -> Any:
    """The type of an operand where it is not the instruction's."""
    if opcode[0] == "selp" and number == _CONDITION:
        return np.bool_
    if opcode[0] in ("shl", "shr", "bfe") and number > 0:
        return np.uint32
    if opcode[:2] == ("mad", "wide") and number == _CONDITION:
        return numbers.wide_type(kind)
    return kind

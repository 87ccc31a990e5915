"""The scope of the statements that are being written: symbols, locals, the vector variable, guards,
places to hoist to.

In: a writer, the target, the kernel's buffers. Out: ``EmitContext``. Not done here: writing values
and statements.

Index expressions are written once, at the innermost *frame* that binds one of their symbols: a
frame is an insertion point directly behind the binding (function entry, head of a loop body, a
``LetIndex``), so everything that does not depend on an inner loop stands outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from ingot_compiler.codegen.function_code import Code
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.program import Buffer
from ingot_compiler.targets.target import Target
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Typed:
    """A value in registers: f16 and bf16 as float, bool as i1; scalar while all lanes agree.
    ``number``: what it is, if the program says so."""

    operand: LlvmValue
    dtype: DType
    number: float | None = None


@dataclass(frozen=True, slots=True)
class Vector:
    """The vector variable: lane j stands for iteration ``first + j``; lanes outside ``mask`` (None:
    none) do not run. ``first`` is a multiple of ``lanes``; ``count``: the iterations that are left
    where they are known to be fewer than lanes, behind a known first one; ``left``: where only a run
    knows them, i32, and ``mask`` says no more than that.
    """

    name: str
    lanes: int
    first: LlvmValue
    mask: LlvmValue | None
    count: int | None = None
    left: LlvmValue | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """A symbol's value (i64, with lanes if it differs between them), the frame that made it,
    whether it may be < 0, the ``reach`` of its ``LetIndex``; ``byte``: the same where that is a
    u8."""

    operand: LlvmValue
    depth: int
    signed: bool
    reach: int = 0
    byte: LlvmValue | None = None


@dataclass(slots=True)
class EmitScope:
    """An insertion point and what was already written there: ``several`` are results of one piece of
    code."""

    lines: Code
    memo: dict[object, LlvmValue] = field(default_factory=dict[object, LlvmValue])
    several: dict[object, tuple[LlvmValue, ...]] = field(
        default_factory=dict[object, tuple[LlvmValue, ...]]
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """Elements of buffers, by buffer and index, that were loaded before the loops around this point:
    ``wide`` in all lanes, ``single`` as scalars, which ``scalars`` has of both; ``scope``: where code
    stands that needs nothing but them."""

    wide: Mapping[tuple[int, int], LlvmValue]
    single: Mapping[tuple[int, int], LlvmValue]
    scalars: Mapping[LlvmValue, LlvmValue]
    scope: EmitScope


Emitters = Mapping[type, Callable[["EmitContext", Any], None]]  # by the type of a statement


class EmitContext:
    """The state of one kernel's emission; ``scope`` restores what is bound inside it.

    ``buffers`` are the base pointers; ``scratch`` is the thread's scratch pointer; ``lanes`` is the
    number of lanes of vector loops (the target's f32 lanes, for every dtype); ``emitters``
    write the statements that have a file of their own.
    """

    __slots__ = (
        "buffers", "constants", "dtypes", "emitters", "frames", "guards", "lanes", "loaded", "locals",
        "read_only", "report", "scratch", "symbols", "target", "vector", "writer",
    )  # fmt: skip

    def __init__(
        self, writer: Writer, target: Target, buffers: Sequence[Buffer], emitters: Emitters
    ) -> None:
        self.writer = writer
        self.target = target
        self.lanes = target.f32_lanes
        self.dtypes: tuple[DType, ...] = tuple(buffer.dtype for buffer in buffers)
        self.read_only = tuple(not buffer.written for buffer in buffers)
        self.buffers = tuple(LlvmValue(f"%b{number}", "ptr") for number in range(len(buffers)))
        self.scratch = LlvmValue("%scratch", "ptr")
        # The i32 slot of what the kernel returns, once a ``Require`` was written.
        self.report: LlvmValue | None = None
        self.emitters = emitters
        self.symbols: dict[str, Binding] = {}
        self.constants: dict[str, int] = {}
        self.locals: dict[str, Typed] = {}
        self.vector: Vector | None = None
        self.guards: tuple[LlvmValue, ...] = ()
        self.frames: list[EmitScope] = [EmitScope(writer.mark())]
        self.loaded = Loaded({}, {}, {}, self.frames[0])

    @contextmanager
    def scope(self) -> Generator[None]:
        """Forget at the end what was bound inside: symbols, locals, vector variable, guards,
        frames."""
        saved = (self.symbols, self.constants, self.locals, self.vector, self.guards, self.loaded)
        depth = len(self.frames)
        self.symbols = dict(self.symbols)
        self.constants = dict(self.constants)
        self.locals = dict(self.locals)
        try:
            yield
        finally:
            self.symbols, self.constants, self.locals, self.vector, self.guards, self.loaded = saved
            del self.frames[depth:]

    def bind(
        self,
        symbols: Mapping[str, LlvmValue | int],
        *,
        signed: bool = False,
        reach: int = 0,
        byte: LlvmValue | None = None,
    ) -> None:
        """Bind symbols to i64 values that are defined just before this point; integers are folded
        into indices."""
        self.frames.append(EmitScope(self.writer.mark()))
        for name, value in symbols.items():
            self.symbols.pop(name, None)
            self.constants.pop(name, None)
            number = value if isinstance(value, int) else value.integer
            if number is not None:
                self.constants[name] = number
            else:
                assert isinstance(value, LlvmValue)
                self.symbols[name] = Binding(value, len(self.frames) - 1, signed, reach, byte)

    def is_signed(self, name: str) -> bool:
        """Whether a symbol in scope may be negative."""
        return self.symbols[name].signed

    def vectorize(
        self,
        name: str,
        first: LlvmValue,
        mask: LlvmValue | None = None,
        *,
        lanes: int = 0,
        count: int | None = None,
        left: LlvmValue | None = None,
    ) -> None:
        """Make ``name`` the vector variable of the current scope; lane 0 is iteration ``first``
        (i64), a multiple of the lanes."""
        self.bind({name: first})
        # Also a constant first iteration differs between lanes: keep the symbol.
        self.constants.pop(name, None)
        self.symbols[name] = Binding(first, len(self.frames) - 1, signed=False)
        self.vector = Vector(name, lanes or self.lanes, first, mask, count, left)

    def define(self, name: str, operand: LlvmValue, dtype: DType) -> None:
        """Name a value in registers (``Local``)."""
        self.locals[name] = Typed(operand, dtype)

    def reports(self) -> LlvmValue:
        """The slot of what the kernel returns: 0 at its entry."""
        if self.report is None:
            self.report = self.writer.slot("i32", align=4)
            with self.writer.at(self.writer.entry):
                self.writer.store(constant(0, "i32"), self.report)
        return self.report

    def active(self) -> LlvmValue | None:
        """The lanes that may touch memory: tail mask and guards that differ between lanes; None for
        all."""
        masks = [guard for guard in self.guards if guard.lanes]
        if self.vector and self.vector.mask:
            masks.insert(0, self.vector.mask)
        return self._all(masks)

    def iterations_left(self) -> LlvmValue | None:
        """The number of lanes that may touch memory, the first ones, where no guard differs between
        lanes and only a run knows it."""
        if self.vector is None or any(guard.lanes for guard in self.guards):
            return None
        return self.vector.left

    def uniform_guard(self) -> LlvmValue | None:
        """The guards that all lanes share, or None."""
        return self._all([guard for guard in self.guards if not guard.lanes])

    def _all(self, masks: Sequence[LlvmValue]) -> LlvmValue | None:
        if not masks:
            return None
        result = masks[0]
        for mask in masks[1:]:
            result = self.writer.binary("and", result, mask)
        return result

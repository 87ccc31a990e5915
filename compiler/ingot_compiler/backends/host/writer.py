"""Writes one LLVM IR function as text: typed names, blocks, loops, declarations.

In: calls that name instructions. Out: module text in final form (no pass runs over it).
Not done here: what to compute (``emit``), compiling the text (``object``).

Every value is an ``LlvmValue``; lines go to the current insertion point, which ``mark`` and ``at``
move, so that code can be placed in front of a loop after the loop was begun. Integer constants are
folded.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ingot_compiler.backends.host.targets.target import Target

_SIZES_BYTES = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "ptr": 8,
}
_SUFFIXES = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}
_FLOATS = ("half", "float", "double")

Lines = list["str | Lines"]


@dataclass(frozen=True, slots=True)
class LlvmValue:
    """An SSA name or constant: ``text`` of LLVM type ``element`` (``lanes`` 0) or
    ``<lanes x element>``."""

    text: str
    element: str
    lanes: int = 0

    @property
    def type(self) -> str:
        """The LLVM type."""
        return vector_type(self.element, self.lanes)

    @property
    def typed(self) -> str:
        """Type and text, as instructions want it."""
        return f"{self.type} {self.text}"

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating point."""
        return self.element in _FLOATS

    @property
    def integer(self) -> int | None:
        """The value of a scalar integer constant, else None."""
        return int(self.text) if not self.lanes and self.text.lstrip("-").isdigit() else None


def vector_type(element: str, lanes: int) -> str:
    """The LLVM type of ``lanes`` elements; 0 is a scalar."""
    return f"<{lanes} x {element}>" if lanes else element


def element_bits(element: str) -> int:
    """Width in registers; i1 is 1."""
    return 1 if element == "i1" else 8 * _SIZES_BYTES[element]


def float_text(value: float, element: str) -> str:
    """Write a float constant exactly, rounded to the element type first."""
    code = {"half": "e", "float": "f", "double": "d"}[element]
    if math.isfinite(value):
        try:
            value = float(struct.unpack(f"<{code}", struct.pack(f"<{code}", value))[0])
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def constant(value: float, element: str, lanes: int = 0) -> LlvmValue:
    """A constant, the same in all lanes."""
    if element == "i1":
        text = "true" if value else "false"
    else:
        text = float_text(value, element) if element in _FLOATS else str(int(value))
    return LlvmValue(f"splat ({element} {text})" if lanes else text, element, lanes)


def constants(values: Sequence[int], element: str) -> LlvmValue:
    """A vector constant with the given integers."""
    return LlvmValue(
        f"<{', '.join(f'{element} {value}' for value in values)}>", element, len(values)
    )


class Writer:
    """One function under construction, with the module's declarations and constants."""

    __slots__ = (
        "_arrays",
        "_counter",
        "_declarations",
        "_labels",
        "_sink",
        "_slots",
        "entry",
        "label",
        "lines",
        "target",
    )

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lines: Lines = []
        self._slots: Lines = []  # stack slots, first lines of the entry block
        self.entry: Lines = []  # runs once, after the slots
        self._sink = self.lines
        self._counter = 0
        self._labels = 0
        self._declarations: dict[str, str] = {}
        self._arrays: dict[str, str] = {}
        self.label = "entry"
        self.lines += ["entry:", self._slots, self.entry]

    # ---- text ------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Append an instruction without result."""
        self._sink.append("  " + text)

    def fresh(self, element: str, lanes: int = 0) -> LlvmValue:
        """A new name, to be defined by the caller."""
        self._counter += 1
        return LlvmValue(f"%v{self._counter}", element, lanes)

    def define(self, text: str, element: str, lanes: int = 0) -> LlvmValue:
        """Append ``%new = text``."""
        result = self.fresh(element, lanes)
        self.line(f"{result.text} = {text}")
        return result

    def mark(self) -> Lines:
        """Leave an insertion point here, to be filled with ``at``."""
        point: Lines = []
        self._sink.append(point)
        return point

    @contextmanager
    def at(self, point: Lines) -> Generator[None]:
        """Write straight-line code to an earlier insertion point."""
        sink, self._sink = self._sink, point
        try:
            yield
        finally:
            self._sink = sink

    def module(self, header: str, attributes: str) -> str:
        """The whole module: arrays, declarations, one function
        ``define HEADER ATTRIBUTES { ... }``."""
        body: list[str] = []
        _flatten(self.lines, body)
        parts = [self._arrays[name] for name in sorted(self._arrays)]
        parts += [self._declarations[name] for name in sorted(self._declarations)]
        return "\n".join([*parts, f"define {header} {attributes} {{", *body, "}", ""])

    # ---- arithmetic ------------------------------------------------------------------------------

    def binary(self, opcode: str, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``opcode left, right`` for operands of one type."""
        assert (left.element, left.lanes) == (right.element, right.lanes), (opcode, left, right)
        return self.define(
            f"{opcode} {left.type} {left.text}, {right.text}", left.element, left.lanes
        )

    def add(self, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """Integer sum."""
        if left.integer is not None and right.integer is not None:
            return constant(left.integer + right.integer, left.element)
        if right.integer == 0:
            return left
        return right if left.integer == 0 else self.binary("add", left, right)

    def sub(self, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """Integer difference."""
        if left.integer is not None and right.integer is not None:
            return constant(left.integer - right.integer, left.element)
        return left if right.integer == 0 else self.binary("sub", left, right)

    def mul(self, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """Integer product."""
        if left.integer is not None and right.integer is not None:
            return constant(left.integer * right.integer, left.element)
        if right.integer == 1:
            return left
        return right if left.integer == 1 else self.binary("mul", left, right)

    def fma(self, left: LlvmValue, right: LlvmValue, addend: LlvmValue) -> LlvmValue:
        """``left * right + addend``: rounded once where the target has it, else twice."""
        if self.target.has_fma:
            return self.intrinsic("fma", left, right, addend)
        return self.binary("fadd", self.binary("fmul", left, right), addend)

    def compare(self, predicate: str, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``icmp`` or ``fcmp``: i1 lanes."""
        assert (left.element, left.lanes) == (right.element, right.lanes), (predicate, left, right)
        opcode = "fcmp" if left.is_float else "icmp"
        return self.define(
            f"{opcode} {predicate} {left.type} {left.text}, {right.text}", "i1", left.lanes
        )

    def select(self, condition: LlvmValue, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``condition ? left : right``; a scalar condition may choose between vectors."""
        assert (left.element, left.lanes) == (right.element, right.lanes), (left, right)
        return self.define(
            f"select {condition.typed}, {left.typed}, {right.typed}", left.element, left.lanes
        )

    def convert(self, opcode: str, value: LlvmValue, element: str) -> LlvmValue:
        """``sext zext trunc fpext fptrunc sitofp uitofp fptosi fptoui bitcast`` lane by lane."""
        if value.element == element:
            return value
        return self.define(
            f"{opcode} {value.typed} to {vector_type(element, value.lanes)}", element, value.lanes
        )

    def intrinsic(self, name: str, *operands: LlvmValue) -> LlvmValue:
        """``llvm.NAME`` overloaded on the first operand's type, which is also the result's."""
        first = operands[0]
        return self.call(f"llvm.{name}.{suffix(first)}", operands, first.element, first.lanes)

    def call(
        self, name: str, operands: Sequence[LlvmValue], element: str, lanes: int = 0
    ) -> LlvmValue:
        """Call an intrinsic (declared on the way) that returns a value."""
        return self.define(self._call(name, operands, vector_type(element, lanes)), element, lanes)

    def call_void(self, name: str, operands: Sequence[LlvmValue]) -> None:
        """Call an intrinsic that returns nothing."""
        self.line(self._call(name, operands, "void"))

    def _call(
        self, name: str, operands: Sequence[LlvmValue], result: str, attributes: Sequence[str] = ()
    ) -> str:
        self._declarations[name] = (
            f"declare {result} @{name}({', '.join(operand.type for operand in operands)})"
        )
        notes = [f" {note}" if note else "" for note in attributes] or [""] * len(operands)
        texts = (
            f"{operand.type}{note} {operand.text}"
            for operand, note in zip(operands, notes, strict=True)
        )
        return f"call {result} @{name}({', '.join(texts)})"

    # ---- lanes -----------------------------------------------------------------------------------

    def splat(self, value: LlvmValue, lanes: int) -> LlvmValue:
        """The same scalar in every lane; vectors pass."""
        if value.lanes or not lanes:
            return value
        if not value.text.startswith("%"):
            return LlvmValue(f"splat ({value.typed})", value.element, lanes)
        kind = vector_type(value.element, lanes)
        one = self.define(
            f"insertelement {kind} poison, {value.typed}, i32 0", value.element, lanes
        )
        text = f"shufflevector {kind} {one.text}, {kind} poison, <{lanes} x i32> zeroinitializer"
        return self.define(text, value.element, lanes)

    def shuffle(
        self, left: LlvmValue, indices: Sequence[int], right: LlvmValue | None = None
    ) -> LlvmValue:
        """Choose lanes of left (then right) by number."""
        other = right.text if right else "poison"
        mask = constants(indices, "i32")
        text = f"shufflevector {left.typed}, {left.type} {other}, {mask.typed}"
        return self.define(text, left.element, len(indices))

    def extract(self, value: LlvmValue, lane: int) -> LlvmValue:
        """One lane; scalars pass."""
        return (
            self.define(f"extractelement {value.typed}, i32 {lane}", value.element)
            if value.lanes
            else value
        )

    def any_lane(self, mask: LlvmValue) -> LlvmValue:
        """Whether an i1 holds in any lane, a scalar i1."""
        if not mask.lanes:
            return mask
        bits = self.define(f"bitcast {mask.typed} to i{mask.lanes}", f"i{mask.lanes}")
        return self.define(f"icmp ne {bits.typed}, 0", "i1")

    # ---- memory ----------------------------------------------------------------------------------

    def offset(self, pointer: LlvmValue, index: LlvmValue, element: str) -> LlvmValue:
        """``pointer + index`` elements; a vector of indices gives a vector of pointers."""
        if index.integer == 0:
            return pointer
        return self.define(
            f"getelementptr {element}, {pointer.typed}, {index.typed}",
            "ptr",
            index.lanes or pointer.lanes,
        )

    def load(self, pointer: LlvmValue, element: str, lanes: int = 0, align: int = 0) -> LlvmValue:
        """Load a scalar or contiguous lanes; aligned to the element unless told better."""
        text = f"load {vector_type(element, lanes)}, {pointer.typed}, align {align or _SIZES_BYTES[element]}"
        return self.define(text, element, lanes)

    def store(self, value: LlvmValue, pointer: LlvmValue, align: int = 0) -> None:
        """Store a scalar or contiguous lanes; aligned to the element unless told better."""
        self.line(
            f"store {value.typed}, {pointer.typed}, align {align or _SIZES_BYTES[value.element]}"
        )

    def masked_load(self, pointer: LlvmValue, mask: LlvmValue, element: str) -> LlvmValue:
        """Contiguous lanes where the mask holds, 0 elsewhere; nothing else is read."""
        rest = LlvmValue("zeroinitializer", element, mask.lanes)
        notes = (f"align {_SIZES_BYTES[element]}", "", "")
        text = self._call(
            f"llvm.masked.load.{suffix(rest)}.p0", (pointer, mask, rest), rest.type, notes
        )
        return self.define(text, element, mask.lanes)

    def masked_store(self, value: LlvmValue, pointer: LlvmValue, mask: LlvmValue) -> None:
        """Store the lanes where the mask holds; nothing else is written."""
        notes = ("", f"align {_SIZES_BYTES[value.element]}", "")
        self.line(
            self._call(
                f"llvm.masked.store.{suffix(value)}.p0", (value, pointer, mask), "void", notes
            )
        )

    def gather(self, pointers: LlvmValue, mask: LlvmValue, element: str) -> LlvmValue:
        """Lanes from a vector of pointers where the mask holds, 0 elsewhere."""
        rest = LlvmValue("zeroinitializer", element, mask.lanes)
        notes = (f"align {_SIZES_BYTES[element]}", "", "")
        name = f"llvm.masked.gather.{suffix(rest)}.{suffix(pointers)}"
        return self.define(
            self._call(name, (pointers, mask, rest), rest.type, notes), element, mask.lanes
        )

    def scatter(self, value: LlvmValue, pointers: LlvmValue, mask: LlvmValue) -> None:
        """Store lanes to a vector of pointers where the mask holds."""
        notes = ("", f"align {_SIZES_BYTES[value.element]}", "")
        name = f"llvm.masked.scatter.{suffix(value)}.{suffix(pointers)}"
        self.line(self._call(name, (value, pointers, mask), "void", notes))

    def prefetch(self, pointer: LlvmValue, locality: int = 3) -> None:
        """Hint that the cache line is read soon (3: into L1, 2: into L2)."""
        arguments = (pointer, constant(0, "i32"), constant(locality, "i32"), constant(1, "i32"))
        self.call_void("llvm.prefetch.p0", arguments)

    def slot(self, element: str, count: int = 1, align: int = 64) -> LlvmValue:
        """Stack memory of the function, allocated once at its entry."""
        result = self.fresh("ptr")
        self._slots.append(f"  {result.text} = alloca {element}, i64 {count}, align {align}")
        return result

    def array(
        self, name: str, element: str, values: Sequence[str | int | float], align: int = 64
    ) -> LlvmValue:
        """A read-only array in the module, shared by name."""
        texts = (
            str(value) if element not in _FLOATS else float_text(float(value), element)
            for value in values
        )
        content = ", ".join(f"{element} {text}" for text in texts)
        kind = f"[{len(values)} x {element}]"
        self._arrays[name] = (
            f"@{name} = private unnamed_addr constant {kind} [{content}], align {align}"
        )
        return LlvmValue(f"@{name}", "ptr")

    # ---- control ---------------------------------------------------------------------------------

    def new_label(self, hint: str) -> str:
        """A label that is not used yet."""
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        """Begin a block; the previous one must have ended."""
        self._sink.append(f"{label}:")
        self.label = label

    def branch(self, label: str) -> None:
        """End the block with a jump."""
        self.line(f"br label %{label}")

    def branch_if(self, condition: LlvmValue, then: str, otherwise: str) -> None:
        """End the block with a two-way jump on a scalar i1."""
        self.line(f"br i1 {condition.text}, label %{then}, label %{otherwise}")

    def phi(self, sources: Sequence[tuple[LlvmValue, str]]) -> LlvmValue:
        """Merge values at the start of a block."""
        first = sources[0][0]
        texts = ", ".join(f"[ {operand.text}, %{label} ]" for operand, label in sources)
        return self.define(f"phi {first.type} {texts}", first.element, first.lanes)

    def if_then(self, condition: LlvmValue, body: Callable[[], None]) -> None:
        """Run ``body`` when a scalar i1 holds."""
        then, done = self.new_label("then"), self.new_label("done")
        self.branch_if(condition, then, done)
        self.start(then)
        body()
        self.branch(done)
        self.start(done)

    def loop(
        self,
        first: LlvmValue,
        last: LlvmValue,
        step: int,
        carried: Sequence[LlvmValue],
        body: Callable[[LlvmValue, tuple[LlvmValue, ...]], Sequence[LlvmValue]],
        *,
        nonempty: bool = False,
    ) -> tuple[LlvmValue, ...]:
        """``for index in range(first, last, step): carried = body(index, carried)``; returns the
        last ``carried``.

        ``nonempty`` promises at least one round; for integer bounds it is seen.
        """
        if first.integer is not None and last.integer is not None:
            if first.integer >= last.integer:
                return tuple(carried)
            nonempty = True
        before, head, done = self.label, self.new_label("loop"), self.new_label("exit")
        if nonempty:
            self.branch(head)
        else:
            self.branch_if(self.compare("slt", first, last), head, done)
        self.start(head)
        phis = self.mark()
        index = self.fresh(first.element)
        inside = tuple(self.fresh(value.element, value.lanes) for value in carried)
        results = body(index, inside)
        latch = self.label
        following = self.binary("add", index, constant(step, first.element))
        self.branch_if(self.compare("slt", following, last), head, done)
        with self.at(phis):
            for name, start, again in zip(
                (index, *inside), (first, *carried), (following, *results), strict=True
            ):
                self.line(
                    f"{name.text} = phi {name.type} [ {start.text}, %{before} ], [ {again.text}, %{latch} ]"
                )
        self.start(done)
        if nonempty:
            return tuple(results)
        return tuple(
            self.phi(((old, before), (new, latch)))
            for old, new in zip(carried, results, strict=True)
        )

    def loop_while(
        self,
        carried: Sequence[LlvmValue],
        condition: Callable[[tuple[LlvmValue, ...]], LlvmValue],
        body: Callable[[tuple[LlvmValue, ...]], Sequence[LlvmValue]],
    ) -> tuple[LlvmValue, ...]:
        """``while condition(carried): carried = body(carried)``; the condition is a scalar i1."""
        before, head, again, done = (
            self.label,
            self.new_label("test"),
            self.new_label("loop"),
            self.new_label("exit"),
        )
        self.branch(head)
        self.start(head)
        phis = self.mark()
        inside = tuple(self.fresh(value.element, value.lanes) for value in carried)
        self.branch_if(condition(inside), again, done)
        self.start(again)
        results = body(inside)
        latch = self.label
        self.branch(head)
        with self.at(phis):
            for name, start, following in zip(inside, carried, results, strict=True):
                self.line(
                    f"{name.text} = phi {name.type} [ {start.text}, %{before} ], [ {following.text}, %{latch} ]"
                )
        self.start(done)
        return inside


def suffix(operand: LlvmValue) -> str:
    """The operand's type in an overloaded intrinsic's name: ``v16f32``."""
    element = _SUFFIXES.get(operand.element, operand.element)
    return f"v{operand.lanes}{element}" if operand.lanes else element


def _flatten(lines: Lines, result: list[str]) -> None:
    for line in lines:
        if isinstance(line, str):
            result.append(line)
        else:
            _flatten(line, result)

"""One method per LLVM instruction that code generation uses: arithmetic, lanes, memory.

In: operands. Out: the instruction at the current place of a ``FunctionText``, and its result.
Integer constants are folded. Not done here: blocks, branches and loops (``writer``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.host.function_text import FunctionText
from ingot_compiler.backends.host.llvm_value import (
    SIZES_BYTES,
    LlvmValue,
    constant,
    constants,
    suffix,
    vector_type,
)


class Instructions(FunctionText):
    """A function whose straight-line code can be written."""

    __slots__ = ()

    # ---- arithmetic ------------------------------------------------------------------------------

    def binary(self, opcode: str, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``opcode left, right`` for operands of one type."""
        assert (left.element, left.lanes) == (right.element, right.lanes), (opcode, left, right)
        return self.define(f"{opcode} {left.typed}, {right.text}", left.element, left.lanes)

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
        return self.define(f"{opcode} {predicate} {left.typed}, {right.text}", "i1", left.lanes)

    def select(self, condition: LlvmValue, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``condition ? left : right``; a scalar condition may choose between vectors."""
        assert (left.element, left.lanes) == (right.element, right.lanes), (left, right)
        text = f"select {condition.typed}, {left.typed}, {right.typed}"
        return self.define(text, left.element, left.lanes)

    def choose(self, condition: LlvmValue, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``select`` between two scalars that were loaded already: LLVM neither waits for the
        condition with the load, nor jumps."""
        arms = [self.define(f"freeze {arm.typed}", arm.element) for arm in (left, right)]
        text = f"select {condition.typed}, {arms[0].typed}, {arms[1].typed}, !unpredictable !{{}}"
        return self.define(text, left.element)

    def convert(self, opcode: str, value: LlvmValue, element: str) -> LlvmValue:
        """``sext zext trunc fpext fptrunc sitofp uitofp fptosi fptoui bitcast`` lane by lane."""
        if value.element == element:
            return value
        text = f"{opcode} {value.typed} to {vector_type(element, value.lanes)}"
        return self.define(text, element, value.lanes)

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
        types = [operand.type for operand in operands]
        self._declarations[name] = f"declare {result} @{name}({', '.join(types)})"
        notes = [f" {note}" if note else "" for note in attributes] or [""] * len(operands)
        rows = zip(operands, notes, strict=True)
        texts = [f"{operand.type}{note} {operand.text}" for operand, note in rows]
        return f"call {result} @{name}({', '.join(texts)})"

    # ---- lanes -----------------------------------------------------------------------------------

    def splat(self, value: LlvmValue, lanes: int) -> LlvmValue:
        """The same scalar in every lane; vectors pass."""
        if value.lanes or not lanes:
            return value
        if not value.text.startswith("%"):
            return LlvmValue(f"splat ({value.typed})", value.element, lanes)
        kind = vector_type(value.element, lanes)
        text = f"insertelement {kind} poison, {value.typed}, i32 0"
        one = self.define(text, value.element, lanes)
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
        if not value.lanes:
            return value
        return self.define(f"extractelement {value.typed}, i32 {lane}", value.element)

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
        text = f"getelementptr {element}, {pointer.typed}, {index.typed}"
        return self.define(text, "ptr", index.lanes or pointer.lanes)

    def load(self, pointer: LlvmValue, element: str, lanes: int = 0, align: int = 0) -> LlvmValue:
        """Load a scalar or contiguous lanes; aligned to the element unless told better."""
        align = align or SIZES_BYTES[element]
        text = f"load {vector_type(element, lanes)}, {pointer.typed}, align {align}"
        return self.define(text, element, lanes)

    def store(self, value: LlvmValue, pointer: LlvmValue, align: int = 0) -> None:
        """Store a scalar or contiguous lanes; aligned to the element unless told better."""
        align = align or SIZES_BYTES[value.element]
        self.line(f"store {value.typed}, {pointer.typed}, align {align}")

    def masked_load(self, pointer: LlvmValue, mask: LlvmValue, element: str) -> LlvmValue:
        """Contiguous lanes where the mask holds, 0 elsewhere; nothing else is read."""
        return self._masked_read("load", pointer, mask, element)

    def masked_store(self, value: LlvmValue, pointer: LlvmValue, mask: LlvmValue) -> None:
        """Store the lanes where the mask holds; nothing else is written.

        Lane 0 alone is a scalar: LLVM makes it one too, and then forgets that the lane is narrowed
        on its way and writes all bytes of the wide one. It may find out later than here that a mask
        is that one, so lanes of other masks are narrowed before LLVM sees that they are stored.
        """
        if mask == constants([int(lane == 0) for lane in range(mask.lanes)], "i1"):
            self.store(self.extract(value, 0), pointer)
            return
        if not mask.is_constant and value.element in ("i8", "i16"):
            value = self._kept_apart(value)
        self._masked_write("store", value, pointer, mask)

    def _kept_apart(self, value: LlvmValue) -> LlvmValue:
        """A vector in a register of AVX-512, made by code of which LLVM knows nothing: only there
        are lanes narrowed by the store itself."""
        bits = 8 * SIZES_BYTES[value.element] * value.lanes
        if "avx512vl" not in self.target.features or bits not in (128, 256, 512):
            return value
        text = f'call {value.type} asm "", "=v,0"({value.typed})'
        return self.define(text, value.element, value.lanes)

    def gather(self, pointers: LlvmValue, mask: LlvmValue, element: str) -> LlvmValue:
        """Lanes from a vector of pointers where the mask holds, 0 elsewhere."""
        return self._masked_read("gather", pointers, mask, element)

    def load_each(self, pointers: LlvmValue, element: str) -> LlvmValue:
        """Lanes from a vector of pointers, one by one."""
        found = LlvmValue("poison", element, pointers.lanes)
        for lane in range(pointers.lanes):
            one = self.load(self.extract(pointers, lane), element)
            text = f"insertelement {found.typed}, {one.typed}, i32 {lane}"
            found = self.define(text, element, pointers.lanes)
        return found

    def scatter(self, value: LlvmValue, pointers: LlvmValue, mask: LlvmValue) -> None:
        """Store lanes to a vector of pointers where the mask holds."""
        self._masked_write("scatter", value, pointers, mask)

    def _masked_read(
        self, name: str, address: LlvmValue, mask: LlvmValue, element: str
    ) -> LlvmValue:
        rest = LlvmValue("zeroinitializer", element, mask.lanes)
        notes = (f"align {SIZES_BYTES[element]}", "", "")
        function = f"llvm.masked.{name}.{suffix(rest)}.{suffix(address)}"
        text = self._call(function, (address, mask, rest), rest.type, notes)
        return self.define(text, element, mask.lanes)

    def _masked_write(
        self, name: str, value: LlvmValue, address: LlvmValue, mask: LlvmValue
    ) -> None:
        notes = ("", f"align {SIZES_BYTES[value.element]}", "")
        function = f"llvm.masked.{name}.{suffix(value)}.{suffix(address)}"
        self.line(self._call(function, (value, address, mask), "void", notes))

    def hidden(self, pointer: LlvmValue) -> LlvmValue:
        """The same pointer, made by code of which LLVM knows nothing; for machine code alone."""
        return self.define(f'call ptr asm "", "=r,0"({pointer.typed})', "ptr")

    def team_barrier(self) -> None:
        """Wait for all units of the team; what they wrote before is there after it."""
        self.call_void("llvm.nvvm.barrier.cta.sync.aligned.all", (constant(0, "i32"),))

    def prefetch(self, pointer: LlvmValue, locality: int = 3) -> None:
        """Hint that the cache line is read soon (3: into L1, 2: into L2)."""
        arguments = (pointer, constant(0, "i32"), constant(locality, "i32"), constant(1, "i32"))
        self.call_void("llvm.prefetch.p0", arguments)

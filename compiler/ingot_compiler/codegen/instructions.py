"""One method per LLVM instruction that code generation uses: arithmetic, lanes, memory.

In: operands. Out: the instruction at the current place of a ``FunctionCode``, and its result.
Integer constants are folded. Not done here: blocks, branches and loops (``writer``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.function_code import FunctionCode, Values
from ingot_compiler.codegen.llvm_value import (
    SIZES_BYTES,
    LlvmValue,
    constant,
    constants,
    poison,
)


class Instructions(FunctionCode):
    """A function whose straight-line code can be written."""

    __slots__ = ()

    # ---- arithmetic ------------------------------------------------------------------------------

    def binary(self, opcode: str, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``opcode left, right`` for operands of one type."""
        assert (left.element, left.lanes) == (right.element, right.lanes), (opcode, left, right)
        return self.define(opcode, (left, right), left.element, left.lanes)

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
        return self.define(opcode, (left, right), "i1", left.lanes, word=predicate)

    def select(self, condition: LlvmValue, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``condition ? left : right``; a scalar condition may choose between vectors."""
        assert (left.element, left.lanes) == (right.element, right.lanes), (left, right)
        return self.define("select", (condition, left, right), left.element, left.lanes)

    def choose(self, condition: LlvmValue, left: LlvmValue, right: LlvmValue) -> LlvmValue:
        """``select`` between two scalars that were loaded already: LLVM neither waits for the
        condition with the load, nor jumps."""
        arms = [self.define("freeze", (arm,), arm.element) for arm in (left, right)]
        return self.define("select", (condition, *arms), left.element, word="unpredictable")

    def convert(self, opcode: str, value: LlvmValue, element: str) -> LlvmValue:
        """``sext zext trunc fpext fptrunc sitofp uitofp fptosi fptoui bitcast`` lane by lane."""
        if value.element == element:
            return value
        return self.define(opcode, (value,), element, value.lanes)

    def as_lanes(self, value: LlvmValue, element: str, lanes: int = 0) -> LlvmValue:
        """The bits of a vector as other lanes, or as a scalar."""
        return self.define("bitcast", (value,), element, lanes)

    def intrinsic(self, name: str, *operands: LlvmValue) -> LlvmValue:
        """``llvm.NAME`` overloaded on the first operand's type, which is also the result's."""
        first = operands[0]
        return self.call(f"llvm.{name}", operands, first.element, first.lanes, (first,))

    def call(
        self,
        name: str,
        operands: Sequence[LlvmValue],
        element: str,
        lanes: int = 0,
        overloads: Values = (),
    ) -> LlvmValue:
        """Call a function that returns a value; an intrinsic's name ends with the types of
        ``overloads``, which are left out of ``name``."""
        return self.define("call", tuple(operands), element, lanes, name, overloads=overloads)

    def call_void(self, name: str, operands: Sequence[LlvmValue]) -> None:
        """Call an intrinsic that returns nothing."""
        self.write("call", tuple(operands), word=name)

    # ---- lanes -----------------------------------------------------------------------------------

    def splat(self, value: LlvmValue, lanes: int) -> LlvmValue:
        """A vector with one scalar in every lane; a vector is returned unchanged."""
        if value.lanes or not lanes:
            return value
        if not value.name:
            return LlvmValue("", value.element, lanes, value.numbers)
        one = self.insert(poison(value.element, lanes), value, 0)
        everywhere = (one, poison(value.element, lanes), constant(0, "i32", lanes))
        return self.define("shufflevector", everywhere, value.element, lanes)

    def shuffle(
        self, left: LlvmValue, indices: Sequence[int], right: LlvmValue | None = None
    ) -> LlvmValue:
        """Choose lanes of left (then right) by number."""
        other = right or poison(left.element, left.lanes)
        operands = (left, other, constants(indices, "i32"))
        return self.define("shufflevector", operands, left.element, len(indices))

    def extract(self, value: LlvmValue, lane: int) -> LlvmValue:
        """One lane; scalars pass."""
        if not value.lanes:
            return value
        return self.define("extractelement", (value, constant(lane, "i32")), value.element)

    def insert(self, vector: LlvmValue, value: LlvmValue, lane: int) -> LlvmValue:
        """The vector with another lane."""
        operands = (vector, value, constant(lane, "i32"))
        return self.define("insertelement", operands, vector.element, vector.lanes)

    def any_lane(self, mask: LlvmValue) -> LlvmValue:
        """Whether an i1 holds in any lane, a scalar i1."""
        if not mask.lanes:
            return mask
        bits = self.as_lanes(mask, f"i{mask.lanes}")
        return self.compare("ne", bits, constant(0, bits.element))

    # ---- memory ----------------------------------------------------------------------------------

    def offset(self, pointer: LlvmValue, index: LlvmValue, element: str) -> LlvmValue:
        """``pointer + index`` elements; a vector of indices gives a vector of pointers."""
        if index.integer == 0:
            return pointer
        lanes = index.lanes or pointer.lanes
        return self.define("getelementptr", (pointer, index), "ptr", lanes, word=element)

    def load(self, pointer: LlvmValue, element: str, lanes: int = 0, align: int = 0) -> LlvmValue:
        """Load a scalar or contiguous lanes; aligned to the element unless told better."""
        align = align or SIZES_BYTES[element]
        return self.define("load", (pointer,), element, lanes, align=align)

    def store(self, value: LlvmValue, pointer: LlvmValue, align: int = 0) -> None:
        """Store a scalar or contiguous lanes; aligned to the element unless told better."""
        align = align or SIZES_BYTES[value.element]
        self.write("store", (value, pointer), align=align)

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
        if mask.name and value.element in ("i8", "i16"):
            value = self._kept_apart(value)
        self._masked_write("store", value, pointer, mask)

    def _kept_apart(self, value: LlvmValue) -> LlvmValue:
        """A vector in a register of AVX-512, made by code of which LLVM knows nothing: only there
        are lanes narrowed by the store itself."""
        bits = 8 * SIZES_BYTES[value.element] * value.lanes
        if "avx512vl" not in self.target.features or bits not in (128, 256, 512):
            return value
        return self.define("asm", (value,), value.element, value.lanes, word="=v,0")

    def gather(self, pointers: LlvmValue, mask: LlvmValue, element: str) -> LlvmValue:
        """Lanes from a vector of pointers where the mask holds, 0 elsewhere."""
        return self._masked_read("gather", pointers, mask, element)

    def load_each(self, pointers: LlvmValue, element: str) -> LlvmValue:
        """Lanes from a vector of pointers, one by one."""
        found = poison(element, pointers.lanes)
        for lane in range(pointers.lanes):
            found = self.insert(found, self.load(self.extract(pointers, lane), element), lane)
        return found

    def scatter(self, value: LlvmValue, pointers: LlvmValue, mask: LlvmValue) -> None:
        """Store lanes to a vector of pointers where the mask holds."""
        self._masked_write("scatter", value, pointers, mask)

    def _masked_read(
        self, name: str, address: LlvmValue, mask: LlvmValue, element: str
    ) -> LlvmValue:
        rest = constant(0, element, mask.lanes)
        return self.define(
            "call", (address, mask, rest), element, mask.lanes,
            word=f"llvm.masked.{name}", align=SIZES_BYTES[element], overloads=(rest, address),
        )  # fmt: skip

    def _masked_write(
        self, name: str, value: LlvmValue, address: LlvmValue, mask: LlvmValue
    ) -> None:
        self.write(
            "call", (value, address, mask), word=f"llvm.masked.{name}",
            align=SIZES_BYTES[value.element], overloads=(value, address),
        )  # fmt: skip

    def hidden(self, pointer: LlvmValue) -> LlvmValue:
        """An equal pointer, made by code of which LLVM knows nothing; for machine code alone."""
        return self.define("asm", (pointer,), "ptr", word="=r,0")

    def team_barrier(self) -> None:
        """Wait for all units of the team; what they wrote before is there after it."""
        self.call_void("llvm.nvvm.barrier.cta.sync.aligned.all", (constant(0, "i32"),))

    def prefetch(self, pointer: LlvmValue, locality: int = 3) -> None:
        """Hint that the cache line is read soon (3: into L1, 2: into L2)."""
        arguments = (pointer, constant(0, "i32"), constant(locality, "i32"), constant(1, "i32"))
        self.write("call", arguments, word="llvm.prefetch", overloads=(pointer,))

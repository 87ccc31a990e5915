"""The instructions of one thread under construction: what it has of vectors and of constants.

In: operands of a function of vectors. Out: ``ThreadScope``: the code of the kernel, whose first
block makes the constants that differ by thread, tables. Not done here: what instructions become
(``thread_function``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.backends.cuda.lane_group import (
    LANE,
    LANE64,
    LANES,
    MASK,
    element_of,
    pieces_of,
)
from ingot_compiler.codegen.kernel_ir import NOTHING, Array, Instruction
from ingot_compiler.codegen.llvm_value import (
    FLOAT_ELEMENTS,
    LlvmValue,
    constant,
    element_bits,
    poison,
)
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.kernels.machines import TEAM_MACHINE

_WAIT = Instruction(NOTHING, "call", (MASK,), "llvm.nvvm.bar.warp.sync")


class ThreadScope(Writer):
    """``tables``: the arrays of the kernel, with names that begin with its symbol."""

    __slots__ = ("_constants", "_renamed", "_symbol", "tables")

    def __init__(self, symbol: str, arrays: Sequence[Array]) -> None:
        super().__init__(TEAM_MACHINE, "g.start", "%t")
        self.tables = [replace(each, name=f"{symbol}_{each.name}") for each in arrays]
        self._symbol = symbol
        self._renamed = {f"@{each.name}": f"@{symbol}_{each.name}" for each in arrays}
        self._constants: dict[object, LlvmValue] = {}

    def put(self, instruction: Instruction) -> None:
        """Append what each thread does with its own lanes."""
        self._sink.append(
            replace(
                instruction,
                result=self.own(instruction.result),
                operands=tuple(map(self.own, instruction.operands)),
                overloads=tuple(map(self.own, instruction.overloads)),
            )
        )

    def own(self, value: LlvmValue) -> LlvmValue:
        """What a thread has of an operand."""
        if len(value.numbers) > 1:
            if value not in self._constants:
                with self.at(self.entry):
                    self._constants[value] = self._own_numbers(value)
            return self._constants[value]
        name = self._renamed.get(value.name, value.name)
        lanes = pieces_of(value.lanes) if value.lanes else 0
        return LlvmValue(name, value.element, lanes, value.numbers)

    def wait(self) -> None:
        """Let the threads of the group wait for each other here."""
        if self._sink[-1] != _WAIT:
            self._sink.append(_WAIT)

    def thread_offset(self, lanes: int) -> LlvmValue:
        """How many elements lie before those of a thread in a vector, an i64."""
        if lanes == LANES:
            return LANE64
        if lanes > LANES:
            return self._constant("mul", "i64", LANE64, constant(pieces_of(lanes), "i64"))
        return self._constant("urem", "i64", LANE64, constant(lanes, "i64"))

    def _constant(self, opcode: str, element: str, *operands: LlvmValue) -> LlvmValue:
        """What an instruction gives that stands in the first block, once."""
        key = (opcode, element, operands)
        if key not in self._constants:
            with self.at(self.entry):
                self._constants[key] = self.define(opcode, operands, element)
        return self._constants[key]

    def by_thread(self, numbers: Sequence[int]) -> LlvmValue:
        """An i32 that is ``numbers[thread]``, each from 0 to 15."""
        if len(set(numbers)) == 1:
            return constant(numbers[0], "i32")
        if list(numbers) == list(range(LANES)):
            return LANE
        word = sum(number << 4 * thread for thread, number in enumerate(numbers))
        word -= (word >> 31) << 32
        shift = self._constant("shl", "i32", LANE, constant(2, "i32"))
        moved = self._constant("lshr", "i32", constant(word, "i32"), shift)
        return self._constant("and", "i32", moved, constant(15, "i32"))

    def flag_by_thread(self, flags: Sequence[bool]) -> LlvmValue:
        """An i1 that is ``flags[thread]``."""
        if len(set(flags)) == 1:
            return constant(flags[0], "i1")
        bits = sum(int(flag) << thread for thread, flag in enumerate(flags))
        moved = self._constant("lshr", "i32", constant(bits, "i32"), LANE)
        return self._constant("trunc", "i1", moved)

    def _own_numbers(self, value: LlvmValue) -> LlvmValue:
        """The numbers of a constant that a thread has, a vector that is made in the first block."""
        lanes, count = value.lanes, pieces_of(value.lanes)
        if lanes % LANES and LANES % lanes:
            raise InternalError(f"{lanes} lanes are no share of {LANES} threads")
        made = poison(value.element, count)
        for piece in range(count):
            mine = [value.numbers[element_of(thread, piece, lanes)] for thread in range(LANES)]
            made = self.insert(made, self._own_number(value.element, mine), piece)
        return made

    def _own_number(self, element: str, numbers: Sequence[int]) -> LlvmValue:
        first, second = numbers[:2]
        if len(set(numbers)) == 1:
            return LlvmValue("", element, 0, (first,))
        if element == "i1":
            return self.flag_by_thread([number != 0 for number in numbers])
        even = [first + (second - first) * lane for lane in range(LANES)]
        if element not in FLOAT_ELEMENTS and list(numbers) == even:
            is_wide = element_bits(element) == element_bits("i64")
            lane = LANE64 if is_wide else self._constant("trunc", element, LANE64)
            moved = self.binary("mul", lane, constant(second - first, element))
            return self.binary("add", moved, constant(first, element))
        made = len(self.tables) - len(self._renamed)
        table = Array(f"{self._symbol}_lanes{made}", element, tuple(numbers), 8)
        self.tables.append(table)
        return self.load(self.offset(LlvmValue(f"@{table.name}", "ptr"), LANE64, element), element)

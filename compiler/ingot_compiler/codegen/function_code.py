"""The code of one function under construction: its instructions, and the module's arrays.

In: instructions in any order of places: ``mark`` leaves a place, ``at`` writes there later. Out:
``KernelIr``. Not done here: what instructions there are (``instructions``), how blocks branch
(``writer``).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from ingot_compiler.codegen.kernel_ir import NOTHING, Array, Block, Instruction, KernelIr
from ingot_compiler.codegen.llvm_value import LlvmValue, constant, number_of
from ingot_compiler.ir.types import DType
from ingot_compiler.targets.target import Target

Values = tuple[LlvmValue, ...]
Code = list["Instruction | str | Code"]
"""Instructions, labels of the blocks that they begin, and the code of places within."""


class FunctionCode:
    """One function under construction, with the module's arrays."""

    __slots__ = (
        "_arrays",
        "_code",
        "_counter",
        "_labels",
        "_prefix",
        "_sink",
        "_slots",
        "entry",
        "label",
        "narrowed",
        "target",
    )

    def __init__(self, target: Target, label: str = "entry", prefix: str = "%v") -> None:
        """``label``: of the first block; ``prefix``: of the names of results."""
        self.target = target
        self._slots: Code = []  # stack slots, the first instructions of the entry block
        self.entry: Code = []  # runs once, after the slots
        self._code: Code = [label, self._slots, self.entry]
        self._sink: Code = self._code
        self._counter = 0
        self._labels = 0
        self._arrays: dict[str, Array] = {}
        self._prefix = prefix
        self.label = label
        # Floats that were rounded to a type of 16 bits -> those bits: memory gets them as they are.
        self.narrowed: dict[tuple[LlvmValue, DType], LlvmValue] = {}

    def write(
        self,
        opcode: str,
        operands: Values = (),
        result: LlvmValue = NOTHING,
        word: str = "",
        align: int = 0,
        labels: tuple[str, ...] = (),
        overloads: Values = (),
    ) -> None:
        """Append an instruction, whose result the caller has named."""
        made = Instruction(result, opcode, operands, word, align, labels, overloads)
        self._sink.append(made)

    def fresh(self, element: str, lanes: int = 0) -> LlvmValue:
        """A new name, to be defined by the caller."""
        self._counter += 1
        return LlvmValue(f"{self._prefix}{self._counter}", element, lanes)

    def define(
        self,
        opcode: str,
        operands: Values,
        element: str,
        lanes: int = 0,
        word: str = "",
        align: int = 0,
        labels: tuple[str, ...] = (),
        overloads: Values = (),
    ) -> LlvmValue:
        """Append an instruction, and return its result."""
        result = self.fresh(element, lanes)
        self.write(opcode, operands, result, word, align, labels, overloads)
        return result

    def mark(self) -> Code:
        """Leave an insertion point here, to be filled with ``at``."""
        point: Code = []
        self._sink.append(point)
        return point

    @contextmanager
    def at(self, point: Code) -> Generator[None]:
        """Write straight-line code to an earlier insertion point."""
        sink, self._sink = self._sink, point
        try:
            yield
        finally:
            self._sink = sink

    def interleave(self, many: Code, few: Code) -> None:
        """Append two pieces of straight-line code that do not need one another, the instructions of
        the second spread evenly behind those of the first."""
        done = 0
        for number, each in enumerate(many, start=1):
            end = number * len(few) // len(many)
            self._sink += [each, *few[done:end]]
            done = end

    def kernel(
        self, symbol: str, parameters: Sequence[LlvmValue], result: str = "void"
    ) -> KernelIr:
        """The whole module, with a function of these parameters."""
        arrays = tuple(self._arrays[name] for name in sorted(self._arrays))
        parts: list[tuple[str, list[Instruction]]] = []
        _part(self._code, parts)
        blocks = tuple(Block(label, tuple(instructions)) for label, instructions in parts)
        attributes = self.target.function_attributes
        return KernelIr(symbol, result, tuple(parameters), attributes, arrays, blocks)

    def slot(self, element: str, count: int = 1, align: int = 64) -> LlvmValue:
        """Stack memory of the function, allocated once at its entry."""
        return self._allocated("alloca", element, (count,), align)

    def lane_slot(self, element: str, lanes: int, vectors: int) -> LlvmValue:
        """A slot for whole vectors, of which each lane reads what it wrote itself: where lanes are
        threads, memory of each thread's own."""
        if self.target.team_units == 1:
            return self.slot(element, lanes * vectors)
        return self._allocated("lane_slot", element, (lanes * vectors, lanes))

    def team_slot(self, element: str, count: int) -> LlvmValue:
        """Memory that the units of a team share; between what one writes and another reads stands
        ``team_barrier``."""
        return self._allocated("team_slot", element, (count,))

    def _allocated(
        self, opcode: str, element: str, counts: Sequence[int], align: int = 64
    ) -> LlvmValue:
        place, operands = self.fresh("ptr"), tuple(constant(count, "i64") for count in counts)
        with self.at(self._slots):
            self.write(opcode, operands, place, word=element, align=align)
        return place

    def array(self, name: str, element: str, values: Sequence[float]) -> LlvmValue:
        """A read-only array in the module, shared by name."""
        numbers = tuple(number_of(value, element) for value in values)
        self._arrays[name] = Array(name, element, numbers)
        return LlvmValue(f"@{name}", "ptr")


def _part(code: Code, blocks: list[tuple[str, list[Instruction]]]) -> None:
    """Append labels, each with the instructions up to the next one."""
    for each in code:
        if isinstance(each, Instruction):
            blocks[-1][1].append(each)
        elif isinstance(each, str):
            blocks.append((each, []))
        else:
            _part(each, blocks)

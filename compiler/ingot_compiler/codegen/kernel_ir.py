"""One kernel as typed instructions, which every back end prints or translates.

In: nothing. Out: ``KernelIr``, ``Block``, ``Instruction``, ``Array``. Not done here: making them
(``function_code``, ``instructions``, ``writer``), their text (``llvm_text``, ``c_text``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_runtime.lazy_dataclass import dataclass

NOTHING = LlvmValue("", "void")
"""The result of an instruction that gives none."""
TABLES = LlvmValue("%buffers", "ptr"), LlvmValue("%scalars", "ptr")
"""Where a kernel of the host finds the addresses of its buffers, and its scalars."""

READS = "llvm.masked.load", "llvm.masked.gather"
"""Functions that read where their first operand says."""
WRITES = "llvm.masked.store", "llvm.masked.scatter"
"""Functions that write their first operand where the second one says."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """``result = opcode operands``, with the opcodes and the order of operands of LLVM IR. Others:
    `asm` is a call of code of which LLVM knows nothing; `team_slot` allocates memory that the units
    of a team share; `lane_slot` memory for vectors of as many lanes as its second operand says, in
    which each lane reads what it wrote itself.

    ``word``: the predicate of a comparison; the function of a `call`, without the types that
    ``overloads`` has; the element that `getelementptr` counts, or that allocated memory holds; the
    constraints of `asm`; what `atomicrmw` does. ``align``: of the memory, in bytes. ``labels``:
    where `br` goes, where each operand of `phi` comes from.
    """

    result: LlvmValue
    opcode: str
    operands: tuple[LlvmValue, ...]
    word: str = ""
    align: int = 0
    labels: tuple[str, ...] = ()
    overloads: tuple[LlvmValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions from ``label`` to a jump or a return."""

    label: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """A table of constants; ``numbers`` as in ``LlvmValue``, ``align`` in bytes."""

    name: str
    element: str
    numbers: tuple[int, ...]
    align: int = 64


@dataclass(frozen=True, slots=True)
class KernelIr:
    """One function: the type of its ``result``, LLVM's ``attributes`` of it, and its arrays.

    ``symbol`` is a function of the loop program alone, so that equal kernels share it.
    """

    symbol: str
    result: str
    parameters: tuple[LlvmValue, ...]
    attributes: str
    arrays: tuple[Array, ...]
    blocks: tuple[Block, ...]

    @property
    def instructions(self) -> Iterator[Instruction]:
        """The instructions of all blocks, in order."""
        return (each for block in self.blocks for each in block.instructions)

    @property
    def reports(self) -> bool:
        """Whether it may return anything but 0."""
        return self.blocks[-1].instructions[-1].operands[0].numbers != (0,)

    def without_tables(self) -> KernelIr:
        """Return the function with its buffers and scalars as parameters, without the instructions
        that load them from the tables."""
        entry, *others = self.blocks
        places, found, kept = set(TABLES), list[LlvmValue](), list[Instruction]()
        for each in entry.instructions:
            if places.isdisjoint(each.operands):
                kept.append(each)
            elif each.opcode == "load":
                found.append(each.result)
            else:
                places.add(each.result)
        parameters = (*found, *(each for each in self.parameters if each not in TABLES))
        blocks = (Block(entry.label, tuple(kept)), *others)
        return replace(self, parameters=parameters, blocks=blocks)

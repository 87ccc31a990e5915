"""The text of a kernel in LLVM IR.

In: ``KernelIr``. Out: module text in final form (no pass runs over it). Not done here: compiling
it (``object``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.codegen.kernel_ir import Array, Instruction, KernelIr
from ingot_compiler.codegen.llvm_value import LlvmValue, number_text, suffix


def llvm_text(kernel: KernelIr) -> str:
    """Return the whole module: arrays, declarations of what is called, the function."""
    arrays = [_array(array) for array in kernel.arrays]
    called = {_callee(each): each for each in kernel.instructions if each.opcode == "call"}
    declarations = [_declaration(name, called[name]) for name in sorted(called)]
    head = f"define {kernel.result} @{kernel.symbol}({_typed(kernel.parameters)}) "
    lines = [*arrays, *declarations, f"{head}{kernel.attributes} {{"]
    for block in kernel.blocks:
        lines.append(f"{block.label}:")
        lines += [f"  {instruction_text(each)}" for each in block.instructions]
    return "\n".join([*lines, "}", ""])


def instruction_text(instruction: Instruction) -> str:
    """Return one instruction, without the blanks before it."""
    text = _FORMS.get(instruction.opcode, _of_one_type)(instruction)
    return f"{instruction.result.name} = {text}" if instruction.result.name else text


def _array(array: Array) -> str:
    texts = (f"{array.element} {number_text(each, array.element)}" for each in array.numbers)
    kind = f"[{len(array.numbers)} x {array.element}]"
    content = ", ".join(texts)
    return f"@{array.name} = private unnamed_addr constant {kind} [{content}], align {array.align}"


def _callee(instruction: Instruction) -> str:
    return ".".join([instruction.word, *[suffix(each) for each in instruction.overloads]])


def _declaration(name: str, instruction: Instruction) -> str:
    types = ", ".join([each.type for each in instruction.operands])
    return f"declare {instruction.result.type} @{name}({types})"


def _typed(operands: Sequence[LlvmValue]) -> str:
    return ", ".join([each.typed for each in operands])


def _of_one_type(instruction: Instruction) -> str:
    """The type of the operands stands once: arithmetic, comparisons."""
    head = f"{instruction.opcode} {instruction.word}" if instruction.word else instruction.opcode
    first, *others = instruction.operands
    return f"{head} {first.typed}{''.join([f', {each.text}' for each in others])}"


def _of_any_types(instruction: Instruction) -> str:
    advice = f", !{instruction.word} !{{}}" if instruction.word else ""
    return f"{instruction.opcode} {_typed(instruction.operands)}{advice}"


def _targets(instruction: Instruction) -> list[str]:
    """The condition of a jump, if it has one, and where it goes."""
    return [
        *(each.typed for each in instruction.operands),
        *(f"label %{each}" for each in instruction.labels),
    ]


def _phi(instruction: Instruction) -> str:
    pairs = zip(instruction.operands, instruction.labels, strict=True)
    sources = ", ".join(f"[ {each.text}, %{label} ]" for each, label in pairs)
    return f"phi {instruction.result.type} {sources}"


def _call(instruction: Instruction) -> str:
    """The alignment of the memory is a note of its address."""
    note = f" align {instruction.align}" if instruction.align else ""
    texts = (
        f"{each.type}{note if each.element == 'ptr' else ''} {each.text}"
        for each in instruction.operands
    )
    return f"call {instruction.result.type} @{_callee(instruction)}({', '.join(texts)})"


_CONVERSIONS = (
    "sext", "zext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui", "bitcast",
    "ptrtoint", "inttoptr",
)  # fmt: skip
_FORMS: dict[str, Callable[[Instruction], str]] = {
    **dict.fromkeys(
        _CONVERSIONS, lambda it: f"{it.opcode} {it.operands[0].typed} to {it.result.type}"
    ),
    **dict.fromkeys(("select", "insertelement", "extractelement", "shufflevector"), _of_any_types),
    "alloca": lambda it: f"alloca {it.word}, {_typed(it.operands)}, align {it.align}",
    "asm": lambda it: f'call {it.result.type} asm "", "{it.word}"({_typed(it.operands)})',
    "atomicrmw": lambda it: f"atomicrmw {it.word} {_typed(it.operands)} monotonic",
    "br": lambda it: f"br {', '.join(_targets(it))}",
    "call": _call,
    "getelementptr": lambda it: f"getelementptr {it.word}, {_typed(it.operands)}",
    "load": lambda it: f"load {it.result.type}, {_typed(it.operands)}, align {it.align}",
    "phi": _phi,
    "ret": lambda it: f"ret {_typed(it.operands) or 'void'}",
    "store": lambda it: f"store {_typed(it.operands)}, align {it.align}",
}

"""One kernel as a function of C: a statement per instruction, jumps as goto.

In: ``KernelIr``. Out: declarations of its tables, the body of the function. Not done here: the
kernel around it (a back end each).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ingot_compiler.backends.c_text import arithmetic, lanes, memory
from ingot_compiler.backends.c_text.arithmetic import Shape
from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.scope import CScope, CStatement
from ingot_compiler.backends.c_text.values import CONSTANT, GLOBAL, CValue
from ingot_compiler.codegen.kernel_ir import (
    READS,
    WRITES,
    Array,
    Block,
    Instruction,
    KernelIr,
)
from ingot_compiler.codegen.llvm_text import instruction_text
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

_BINARY = (
    "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "ashr", "lshr",
    "fadd", "fsub", "fmul", "fdiv",
)  # fmt: skip
_CONVERSIONS = ("sext", "zext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui")


@dataclass(frozen=True, slots=True)
class Source:
    """``tables`` stand before the function, ``declarations`` before the ``statements`` of its
    body."""

    parameters: tuple[CValue, ...]
    tables: tuple[str, ...]
    declarations: tuple[CStatement, ...]
    statements: tuple[CStatement, ...]


def function_source(dialect: CDialect, kernel: KernelIr) -> Source:
    """Translate a kernel.

    Raises:
        InternalError: an instruction that has no form in C.
    """
    scope = CScope(dialect)
    for each in kernel.parameters:
        space = GLOBAL if each.element == "ptr" else ""
        scope.values[each.name] = replace(scope.named(each), space=space)
    parameters = tuple(scope.values[each.name] for each in kernel.parameters)
    tables = tuple(
        _table(scope, kernel.symbol, each) for each in kernel.arrays if each.name != "zeros"
    )
    blocks = {block.label: block for block in kernel.blocks}
    for instruction in kernel.instructions:
        if instruction.opcode == "phi":
            _declare_phi(scope, instruction)
    for block in kernel.blocks:
        scope.statements.append(CStatement(f"{block.label}: ;", block.label))
        for instruction in block.instructions:
            if instruction.opcode == "br":
                _branch(scope, blocks, block, instruction)
            elif instruction.opcode != "phi":
                _translate(scope, instruction)
    return Source(parameters, tables, tuple(scope.declarations), tuple(scope.statements))


def _table(scope: CScope, prefix: str, array: Array) -> str:
    name, dialect = f"{prefix}_{array.name}", scope.dialect
    start = dialect.pointer(CONSTANT, "")
    scope.values[f"@{array.name}"] = CValue("ptr", 0, (f"(({start}){name})",), CONSTANT)
    return dialect.table(name, array)


def _declare_phi(scope: CScope, instruction: Instruction) -> None:
    """Variables that jumps assign to; each is set from a copy, as all change at once."""
    if instruction.result.element == "ptr":
        raise InternalError("an address that a loop carries has no form in C")
    made = scope.values[instruction.result.name] = scope.named(instruction.result)
    c_type = scope.dialect.type_name(made.element, made.piece_lanes)
    scope.declarations += [
        CStatement(f"  {c_type} {piece}, {piece}_next;", piece, type=c_type)
        for piece in made.pieces
    ]


def _translate(scope: CScope, instruction: Instruction) -> None:
    opcode = instruction.opcode
    if opcode in _BINARY:
        _lanewise(scope, instruction, lambda shape, texts: arithmetic.binary(opcode, shape, *texts))
    elif opcode in _CONVERSIONS:
        element = instruction.result.element
        _lanewise(
            scope,
            instruction,
            lambda shape, texts: arithmetic.convert(opcode, shape, element, *texts),
        )
    elif opcode in _STATEMENTS:
        _STATEMENTS[opcode](scope, instruction)
    else:
        raise InternalError(
            f"instruction {opcode} has no form in C", why=instruction_text(instruction)
        )


def _lanewise(
    scope: CScope, instruction: Instruction, text: Callable[[Shape, Sequence[str]], str]
) -> None:
    """Translate an instruction that does one thing in every piece of its operands."""
    values = [scope.value(each) for each in instruction.operands]
    shape = _shape(scope, values[0])
    rows = zip(*(value.pieces for value in values), strict=True)
    scope.define(instruction.result, [text(shape, row) for row in rows], values)


def _shape(scope: CScope, value: CValue) -> Shape:
    return Shape(scope.dialect, value.element, value.piece_lanes)


def _compare(scope: CScope, instruction: Instruction) -> None:
    predicate = instruction.word
    _lanewise(scope, instruction, lambda shape, texts: arithmetic.compare(predicate, shape, *texts))


def _bitcast(scope: CScope, instruction: Instruction) -> None:
    value, result = scope.value(instruction.operands[0]), instruction.result
    texts = lanes.seen_as(scope.dialect, value, result.element, result.lanes)
    scope.define(result, texts, [value])


def _negate(scope: CScope, instruction: Instruction) -> None:
    _lanewise(scope, instruction, lambda _, texts: f"-{texts[0]}")


def _freeze(scope: CScope, instruction: Instruction) -> None:
    """Translate ``freeze`` to its operand: C has no poison."""
    scope.values[instruction.result.name] = scope.value(instruction.operands[0])


def _select(scope: CScope, instruction: Instruction) -> None:
    condition, left, right = values = [scope.value(each) for each in instruction.operands]
    if left.space:
        memory.pointers_chosen(scope, instruction.result, values)
        return
    masked, shape = bool(condition.lanes), _shape(scope, left)
    conditions = condition.pieces if masked else condition.pieces * len(left.pieces)
    rows = zip(conditions, left.pieces, right.pieces, strict=True)
    texts = [arithmetic.choose(shape, *row, masked=masked) for row in rows]
    scope.define(instruction.result, texts, values)


def _insert(scope: CScope, instruction: Instruction) -> None:
    """Only into lanes that hold nothing yet, before a shuffle that gives all the first one's."""
    vector, given, _ = instruction.operands
    assert not vector.name, instruction
    scalar = scope.value(given)
    # A lane of a mask is 0 or -1, a scalar 0 or 1.
    text = f"-{scalar.text}" if vector.element == "i1" else scalar.text
    texts = lanes.splat(scope.dialect, vector.element, vector.lanes, text)
    scope.define(instruction.result, texts, [scalar])


def _shuffle(scope: CScope, instruction: Instruction) -> None:
    left, right, mask = instruction.operands
    values = scope.value(left), scope.value(right)
    scope.define_pieces(
        instruction.result, *lanes.shuffle(scope.dialect, *values, mask.lane_numbers)
    )


def _extract(scope: CScope, instruction: Instruction) -> None:
    value, lane = scope.value(instruction.operands[0]), instruction.operands[1].numbers[0]
    text = scope.dialect.lane(value, lane)
    text = f"-{text}" if value.element == "i1" else text
    scope.define_pieces(instruction.result, [text], [[scope.dialect.piece_of(value, lane)]])


def _call(scope: CScope, instruction: Instruction) -> None:
    name = instruction.word.removeprefix("llvm.")
    if instruction.word in READS:
        memory.masked_read(scope, instruction)
    elif instruction.word in WRITES:
        memory.masked_write(scope, instruction)
    elif name.endswith("pmadd.wd"):
        values = [scope.value(each) for each in instruction.operands]
        scope.define(instruction.result, scope.dialect.multiplied_pairs(*values), values)
    elif name == "fptosi.sat":
        element = instruction.result.element
        _lanewise(
            scope, instruction, lambda shape, texts: arithmetic.saturated(shape, element, *texts)
        )
    elif name != "prefetch":
        _lanewise(scope, instruction, lambda shape, texts: arithmetic.call(name, shape, texts))


def _return(scope: CScope, instruction: Instruction) -> None:
    text = scope.value(instruction.operands[0]).text
    scope.line(f"return {text}", [text])


def _branch(
    scope: CScope, blocks: Mapping[str, Block], block: Block, instruction: Instruction
) -> None:
    *thens, otherwise = instruction.labels
    for then in thens:
        condition = scope.value(instruction.operands[0]).text
        scope.statements.append(CStatement(f"  if ({condition}) {{", reads=(condition,)))
        _jump(scope, blocks[then], block.label)
        scope.statements.append(CStatement("  }"))
    _jump(scope, blocks[otherwise], block.label)


def _jump(scope: CScope, target: Block, source: str) -> None:
    """Assign what the phis of a block take from another one, and go there."""
    pairs = list[tuple[str, str]]()
    for phi in target.instructions:
        if phi.opcode != "phi":
            break
        value = scope.value(phi.operands[phi.labels.index(source)])
        pairs += zip(scope.values[phi.result.name].pieces, value.pieces, strict=True)
    for variable, text in pairs:
        scope.line(f"{variable}_next = {text}", [text], makes=variable)
    for variable, _ in pairs:
        scope.line(f"{variable} = {variable}_next", makes=variable)
    scope.line(f"goto {target.label}", jumps=target.label)


_STATEMENTS: dict[str, Callable[[CScope, Instruction], None]] = {
    "alloca": memory.stack,
    "bitcast": _bitcast,
    "call": _call,
    "extractelement": _extract,
    "fcmp": _compare,
    "fneg": _negate,
    "freeze": _freeze,
    "getelementptr": memory.address,
    "icmp": _compare,
    "insertelement": _insert,
    "load": memory.load,
    "ret": _return,
    "select": _select,
    "shufflevector": _shuffle,
    "store": memory.store,
}

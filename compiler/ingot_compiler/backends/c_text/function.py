"""One function of LLVM IR as a function of C: a statement per instruction, jumps as goto.

In: the text of a module. Out: declarations of its tables, the body of the function. Not done here:
the kernel around it (a back end each).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ingot_compiler.backends.c_text import arithmetic, lanes, memory
from ingot_compiler.backends.c_text.arithmetic import Shape
from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.scope import CScope
from ingot_compiler.backends.c_text.values import CONSTANT, CValue
from ingot_compiler.backends.host.ir_text import (
    Array,
    Block,
    Instruction,
    IrFunction,
    operands,
    parts,
    phi_sources,
    read_function,
    typed,
)
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

_BINARY = (
    "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "ashr", "lshr",
    "fadd", "fsub", "fmul", "fdiv",
)  # fmt: skip
_CONVERSIONS = ("sext", "zext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui")
_CALL = re.compile(r"(<\d+ x \w+>|\w+) @llvm\.([\w.]+)\((.*)\)$")
_SUFFIX = re.compile(r"(\.(v\d+)?(i\d+|f\d+|p0))+$")


@dataclass(frozen=True, slots=True)
class Source:
    """``tables`` stand before the function, ``declarations`` before the ``lines`` of its body."""

    tables: tuple[str, ...]
    declarations: tuple[str, ...]
    lines: tuple[str, ...]


def function_source(
    dialect: CDialect, text: str, prefix: str, arguments: dict[str, CValue]
) -> Source:
    """Translate the function of a module; ``prefix`` begins names of tables, ``arguments`` are what
    it finds, by the names of LLVM IR.

    Raises:
        InternalError: an instruction that has no form in C.
    """
    function = read_function(text)
    scope = CScope(dialect, prefix, arguments)
    tables = tuple(_table(scope, array) for array in function.arrays if array.name != "zeros")
    _declare_phis(scope, function)
    for block in function.blocks:
        scope.lines.append(f"{block.label}: ;")
        for instruction in block.instructions:
            _translate(scope, function, block, instruction)
    return Source(tables, tuple(scope.declarations), tuple(scope.lines))


def _table(scope: CScope, array: Array) -> str:
    name, dialect = f"{scope.prefix}_{array.name}", scope.dialect
    start = dialect.pointer(CONSTANT, "")
    scope.values[f"@{array.name}"] = CValue("ptr", 0, (f"(({start}){name})",), CONSTANT)
    return dialect.table(name, array.element, array.values)


def _declare_phis(scope: CScope, function: IrFunction) -> None:
    """Variables that jumps assign to; each is set from a copy, as all change at once."""
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.opcode == "phi":
                kind, _ = phi_sources(instruction.rest)
                if kind.element == "ptr":
                    raise InternalError("an address that a loop carries has no form in C")
                made = scope.named(instruction.result, kind.element, kind.lanes)
                scope.values[instruction.result] = made
                for piece in made.pieces:
                    declared = memory.declared(scope.dialect, made, f"{piece}, {piece}_next")
                    scope.declarations.append(f"  {declared}")


def _translate(scope: CScope, function: IrFunction, block: Block, found: Instruction) -> None:
    name, opcode, rest = found.result, found.opcode, found.rest
    if name in scope.values:  # an argument, or a phi
        return
    if opcode in _BINARY:
        _lanewise(scope, name, rest, lambda shape, texts: arithmetic.binary(opcode, shape, *texts))
    elif opcode in ("icmp", "fcmp"):
        _compare(scope, name, rest)
    elif opcode in _CONVERSIONS:
        _convert(scope, name, opcode, rest)
    elif opcode == "store":
        memory.store(scope, rest)
    elif opcode in _STATEMENTS:
        _STATEMENTS[opcode](scope, name, rest)
    elif opcode == "br":
        _branch(scope, function, block, rest)
    elif opcode == "ret":
        scope.line(f"return {scope.value(typed(rest)).text}")
    else:
        raise InternalError(f"instruction {opcode} has no form in C", why=rest)


def _lanewise(
    scope: CScope, name: str, rest: str, text: Callable[[Shape, Sequence[str]], str]
) -> None:
    """The same in every piece."""
    values = [scope.value(operand) for operand in operands(rest)]
    rows = zip(*(value.pieces for value in values), strict=True)
    shape = _shape(scope, values[0])
    scope.define(name, shape.element, values[0].lanes, [text(shape, row) for row in rows])


def _shape(scope: CScope, value: CValue) -> Shape:
    return Shape(scope.dialect, value.element, value.piece_lanes)


def _compare(scope: CScope, name: str, rest: str) -> None:
    predicate, _, others = rest.partition(" ")
    left, right = (scope.value(operand) for operand in operands(others))
    rows = zip(left.pieces, right.pieces, strict=True)
    texts = [arithmetic.compare(predicate, _shape(scope, left), *row) for row in rows]
    scope.define(name, "i1", left.lanes, texts)


def _convert(scope: CScope, name: str, opcode: str, rest: str) -> None:
    source, _, target = rest.rpartition(" to ")
    value, kind = scope.value(typed(source)), typed(f"{target} x")
    shape = _shape(scope, value)
    texts = [arithmetic.convert(opcode, shape, kind.element, piece) for piece in value.pieces]
    scope.define(name, kind.element, kind.lanes, texts)


def _bitcast(scope: CScope, name: str, rest: str) -> None:
    source, _, target = rest.rpartition(" to ")
    kind = typed(f"{target} x")
    texts = lanes.seen_as(scope.dialect, scope.value(typed(source)), kind.element, kind.lanes)
    scope.define(name, kind.element, kind.lanes, texts)


def _negate(scope: CScope, name: str, rest: str) -> None:
    value = scope.value(typed(rest))
    scope.define(name, value.element, value.lanes, [f"-{piece}" for piece in value.pieces])


def _freeze(scope: CScope, name: str, rest: str) -> None:
    """The same value: C has no poison."""
    scope.values[name] = scope.value(typed(rest))


def _select(scope: CScope, name: str, rest: str) -> None:
    condition, left, right = (scope.value(operand) for operand in operands(rest))
    if left.space:
        memory.pointers_chosen(scope, name, (condition, left, right))
        return
    masked, shape = bool(condition.lanes), _shape(scope, left)
    conditions = condition.pieces if masked else condition.pieces * len(left.pieces)
    rows = zip(conditions, left.pieces, right.pieces, strict=True)
    texts = [arithmetic.choose(shape, *row, masked=masked) for row in rows]
    scope.define(name, left.element, left.lanes, texts)


def _insert(scope: CScope, name: str, rest: str) -> None:
    """Only into lanes that hold nothing yet, before a shuffle that gives all the first one's."""
    vector, scalar, _ = operands(rest)
    assert vector.text == "poison", rest
    text = scope.value(scalar).text
    # A lane of a mask is 0 or -1, a scalar 0 or 1.
    text = f"-{text}" if vector.element == "i1" else text
    texts = lanes.splat(scope.dialect, vector.element, vector.lanes, text)
    scope.define(name, vector.element, vector.lanes, texts)


def _shuffle(scope: CScope, name: str, rest: str) -> None:
    left, right, mask = operands(rest)
    texts = lanes.shuffle(scope.dialect, scope.value(left), scope.value(right), mask.text)
    scope.define(name, left.element, mask.lanes, texts)


def _extract(scope: CScope, name: str, rest: str) -> None:
    vector, lane = operands(rest)
    value = scope.value(vector)
    text = scope.dialect.lane(value, int(lane.text))
    scope.define(name, value.element, 0, [f"-{text}" if value.element == "i1" else text])


def _call(scope: CScope, name: str, rest: str) -> None:
    found = _CALL.match(rest)
    if found is None:
        raise InternalError("a call has no form in C", why=rest)
    result, function, arguments = found.groups()
    short = _SUFFIX.sub("", function)
    if short in ("masked.load", "masked.gather"):
        memory.masked_read(scope, name, result, arguments)
    elif short in ("masked.store", "masked.scatter"):
        memory.masked_write(scope, arguments)
    elif short.endswith("pmadd.wd"):
        left, right = (scope.value(operand) for operand in operands(arguments))
        kind = typed(f"{result} x")
        texts = scope.dialect.multiplied_pairs(left, right)
        scope.define(name, kind.element, kind.lanes, texts)
    elif short == "fptosi.sat":
        kind = typed(f"{result} x")
        (value,) = (scope.value(operand) for operand in operands(arguments))
        shape = _shape(scope, value)
        texts = [arithmetic.saturated(shape, kind.element, piece) for piece in value.pieces]
        scope.define(name, kind.element, kind.lanes, texts)
    elif short != "prefetch":
        _lanewise(scope, name, arguments, lambda shape, texts: arithmetic.call(short, shape, texts))


def _branch(scope: CScope, function: IrFunction, block: Block, rest: str) -> None:
    if rest.startswith("label"):
        _jump(scope, function, block, rest.removeprefix("label %"))
        return
    condition, *labels = parts(rest)
    then, otherwise = (label.removeprefix("label %") for label in labels)
    scope.lines.append(f"  if ({scope.value(typed(condition)).text}) {{")
    _jump(scope, function, block, then)
    scope.lines.append("  }")
    _jump(scope, function, block, otherwise)


def _jump(scope: CScope, function: IrFunction, block: Block, label: str) -> None:
    """Assign what the phis of the block at ``label`` take from this one, and go there."""
    target = next(each for each in function.blocks if each.label == label)
    pairs = list[tuple[str, str]]()
    for phi in target.instructions:
        if phi.opcode != "phi":
            break
        kind, sources = phi_sources(phi.rest)
        text = next(text for text, source in sources if source == block.label)
        value = scope.value(typed(f"{kind.type} {text}"))
        pairs += zip(scope.values[phi.result].pieces, value.pieces, strict=True)
    for variable, text in pairs:
        scope.line(f"{variable}_next = {text}")
    for variable, _ in pairs:
        scope.line(f"{variable} = {variable}_next")
    scope.line(f"goto {label}")


_STATEMENTS: dict[str, Callable[[CScope, str, str], None]] = {
    "alloca": memory.stack,
    "bitcast": _bitcast,
    "call": _call,
    "extractelement": _extract,
    "fneg": _negate,
    "freeze": _freeze,
    "getelementptr": memory.address,
    "insertelement": _insert,
    "load": memory.load,
    "select": _select,
    "shufflevector": _shuffle,
}

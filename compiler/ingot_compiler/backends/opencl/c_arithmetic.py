"""Instructions that compute lane by lane, as expressions of C.

In: an instruction and the pieces of its operands. Out: the text of one piece of the result. Not
done here: memory, lanes that change places, jumps.

Integers wrap: C leaves signed overflow open, so they are computed without a sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.backends.opencl.c_values import (
    converted,
    scalar_name,
    scalar_text,
    size_bytes,
    type_name,
    unsigned_name,
)
from ingot_compiler.ir.errors import InternalError

_FLOAT = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
_WRAPPING = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "shl": "<<",
    "udiv": "/",
    "urem": "%",
    "lshr": ">>",
}
_SIGNED = {"sdiv": "/", "srem": "%", "ashr": ">>", "and": "&", "or": "|", "xor": "^"}
_ORDERED = {"eq": "==", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_FUNCTIONS = {
    "floor": "FLOOR", "ceil": "CEIL", "roundeven": "ROUND_EVEN", "trunc": "TRUNC",
}  # fmt: skip
_EXTREMES = {"min": "<", "max": ">"}
_SIGN_BITS = {"float": "0x80000000u", "double": "0x8000000000000000UL"}


def binary(opcode: str, element: str, lanes: int, left: str, right: str) -> str:
    """Arithmetic and logic of two operands of one type."""
    if opcode in _FLOAT:
        return f"{left} {_FLOAT[opcode]} {right}"
    if opcode in _SIGNED:
        text = f"{left} {_SIGNED[opcode]} {right}"
        return text if lanes > 1 else f"({type_name(element)})({text})"
    unsigned = unsigned_name(element, lanes)
    text = f"as_{unsigned}({left}) {_WRAPPING[opcode]} as_{unsigned}({right})"
    kind = type_name(element, lanes)
    # Narrow scalars are computed as int, of which the low bits are kept.
    return f"as_{kind}({text})" if lanes > 1 else f"as_{kind}(({unsigned})({text}))"


def compare(predicate: str, element: str, lanes: int, left: str, right: str) -> str:
    """``icmp`` and ``fcmp``: 0 or 1, lanes 0 or -1."""
    if element in ("float", "double"):
        text = _float_comparison(predicate, left, right)
    else:
        text = _integer_comparison(predicate, element, lanes, left, right)
    if lanes == 1:
        return f"-({text})"
    same_width = element in ("i32", "i1", "float")
    return f"({text})" if not lanes or same_width else converted(f"int{lanes}", lanes, text)


def _float_comparison(predicate: str, left: str, right: str) -> str:
    if predicate in ("uno", "ord"):
        text = f"({left} != {left}) | ({right} != {right})"
        return text if predicate == "uno" else f"({left} == {left}) & ({right} == {right})"
    if predicate == "one":
        return f"({left} < {right}) | ({left} > {right})"
    if predicate == "une":
        return f"{left} != {right}"
    if predicate[0] != "o":
        raise InternalError(f"no comparison {predicate} in OpenCL C")
    return f"{left} {_ORDERED[predicate[1:]]} {right}"


def _integer_comparison(predicate: str, element: str, lanes: int, left: str, right: str) -> str:
    if predicate in ("eq", "ne"):
        return f"{left} {'==' if predicate == 'eq' else '!='} {right}"
    if predicate[0] == "u" and element != "i1":
        unsigned = unsigned_name(element, lanes)
        left, right = f"as_{unsigned}({left})", f"as_{unsigned}({right})"
    elif predicate[0] == "u" and lanes:  # true is -1
        left, right = right, left
    return f"{left} {_ORDERED[predicate[1:]]} {right}"


def choose(lanes: int, element: str, condition: str, left: str, right: str, *, masked: bool) -> str:
    """``select``; ``masked``: the condition has lanes too."""
    if masked and lanes > 1 and element in ("i8", "i16", "i64", "double", "ptr"):
        wide = {"double": "long"}.get(scalar_name(element), scalar_name(element))
        condition = converted(f"{wide}{lanes}", lanes, condition)
    return f"{condition} ? {left} : {right}"


def convert(opcode: str, source: str, target: str, lanes: int, text: str) -> str:
    """Conversions of numbers, lane by lane; not ``bitcast``."""
    kind = type_name(target, lanes)
    if source == "i1" and lanes and opcode != "sext":
        text = f"({text} & 1)"
    elif source == "i1" and not lanes and opcode == "sext":
        text = f"(-{text})"
    if opcode in ("zext", "uitofp") and source != "i1":
        text = f"as_{unsigned_name(source, lanes)}({text})"
    if target == "i1":
        return f"-({text} & 1)" if lanes else f"{text} & 1"
    if opcode == "fptoui":
        unsigned = unsigned_name(target, lanes)
        return f"as_{kind}({converted(unsigned, lanes, text)})"
    return converted(kind, lanes, text)


def call(name: str, element: str, lanes: int, operands: Sequence[str]) -> str:
    """An intrinsic, by the first part of its name."""
    if name == "fma":
        left, right, addend = operands
        return f"{left} * {right} + {addend}"
    if name in _FUNCTIONS:
        return f"{_FUNCTIONS[name]}({', '.join(operands)})"
    if name[1:] in _EXTREMES:
        return _extreme(name, element, lanes, operands)
    if name in _OTHERS:
        return _OTHERS[name](element, lanes, operands)
    raise InternalError(f"no intrinsic {name} in OpenCL C")


def saturated(source: str, target: str, lanes: int, text: str) -> str:
    """``fptosi.sat``: what does not fit becomes the nearest integer, NaN 0."""
    kind, bits = type_name(target, lanes), 8 * size_bytes(target)
    least, most = (scalar_text(str(number), target, 0) for number in _range(bits))
    floats, masked = type_name(source, lanes), size_bytes(source) != size_bytes(target)
    low, high = (f"({floats})({sign}0x1p{bits - 1})" for sign in ("-", ""))
    below, whole, above = (
        converted(kind, lanes, f"({condition})") if masked and lanes > 1 else f"({condition})"
        for condition in (f"{text} < {low}", f"{text} == {text}", f"{text} >= {high}")
    )
    inside = f"{below} ? ({kind})({least}) : {converted(kind, lanes, text)}"
    return f"{above} ? ({kind})({most}) : ({whole} ? ({inside}) : ({kind})(0))"


def _range(bits: int) -> tuple[int, int]:
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _extreme(name: str, element: str, lanes: int, operands: Sequence[str]) -> str:
    """``smin smax umin umax``."""
    left, right = operands
    sides = operands
    if name[0] == "u":
        unsigned = unsigned_name(element, lanes)
        sides = [f"as_{unsigned}({operand})" for operand in operands]
    condition = f"({sides[0]} {_EXTREMES[name[1:]]} {sides[1]})"
    return f"{condition} ? {left} : {right}"


def _magnitude(element: str, lanes: int, operands: Sequence[str]) -> str:
    unsigned, bit = unsigned_name(element, lanes), _SIGN_BITS[element]
    return f"as_{type_name(element, lanes)}(as_{unsigned}({operands[0]}) & ({unsigned})(~{bit}))"


def _with_sign(element: str, lanes: int, operands: Sequence[str]) -> str:
    """``copysign``."""
    unsigned, bit = unsigned_name(element, lanes), _SIGN_BITS[element]
    size, sign = (f"as_{unsigned}({operand})" for operand in operands)
    bits = f"({size} & ({unsigned})(~{bit})) | ({sign} & ({unsigned}){bit})"
    return f"as_{type_name(element, lanes)}({bits})"


def _square_root(element: str, lanes: int, operands: Sequence[str]) -> str:
    function = f"SQRT_{scalar_name(element)}"
    if lanes <= 1:
        return f"{function}({operands[0]})"
    texts = ", ".join(f"{function}({operands[0]}.s{lane})" for lane in range(lanes))
    return f"({type_name(element, lanes)})({texts})"


def _funnel(element: str, lanes: int, operands: Sequence[str]) -> str:
    """``fshl``: the upper half of two numbers beside each other, shifted left."""
    high, low, by = operands
    unsigned, bits = unsigned_name(element, lanes), {"i32": 32, "i64": 64}[element]
    high, low, by = (f"as_{unsigned}({text})" for text in (high, low, by))
    # In two steps: a shift by all bits would be none.
    text = f"({high} << ({by} & {bits - 1})) | (({low} >> 1) >> (~{by} & {bits - 1}))"
    return f"as_{type_name(element, lanes)}({text})"


_OTHERS: dict[str, Callable[[str, int, Sequence[str]], str]] = {
    "copysign": _with_sign,
    "fabs": _magnitude,
    "fshl": _funnel,
    "sqrt": _square_root,
}

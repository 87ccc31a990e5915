"""Instructions that compute lane by lane, as expressions of C.

In: an instruction and the pieces of its operands. Out: the text of one piece of the result. Not
done here: memory, lanes that change places, jumps.

Integers wrap: C leaves signed overflow open, so they are computed without a sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.values import size_bytes
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

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
_ROUNDINGS = ("floor", "ceil", "roundeven", "trunc")
_EXTREMES = {"min": "<", "max": ">"}
_SIGN_BITS = {"float": "0x80000000u", "double": "0x8000000000000000U"}
Pieces = Sequence[str]


@dataclass(frozen=True, slots=True)
class Shape:
    """The dialect, and what each operand is: an element, its lanes in a piece."""

    dialect: CDialect
    element: str
    lanes: int

    @property
    def name(self) -> str:
        """The type."""
        return self.dialect.type_name(self.element, self.lanes)

    @property
    def unsigned(self) -> str:
        """The integer of its width without a sign."""
        return self.dialect.unsigned_name(self.element, self.lanes)

    def bits(self, text: str) -> str:
        """The bits of a number, as the unsigned integer of its width."""
        return self.dialect.as_unsigned(self.element, self.lanes, text)

    def of_bits(self, text: str) -> str:
        """Back from it."""
        return self.dialect.from_unsigned(self.element, self.lanes, text)


def binary(opcode: str, shape: Shape, left: str, right: str) -> str:
    """Arithmetic and logic of two operands of one type."""
    if opcode in _FLOAT:
        return f"{left} {_FLOAT[opcode]} {right}"
    if opcode in _SIGNED:
        text = f"{left} {_SIGNED[opcode]} {right}"
        return text if shape.lanes > 1 else f"({shape.name})({text})"
    text = f"{shape.bits(left)} {_WRAPPING[opcode]} {shape.bits(right)}"
    # Narrow scalars are computed as int, of which the low bits are kept.
    return shape.of_bits(text if shape.lanes > 1 else f"({shape.unsigned})({text})")


def compare(predicate: str, shape: Shape, left: str, right: str) -> str:
    """``icmp`` and ``fcmp``: 0 or 1, lanes 0 or -1."""
    if shape.element in ("float", "double"):
        text = _float_comparison(predicate, shape, left, right)
    else:
        text = _integer_comparison(predicate, shape, left, right)
    if shape.lanes == 1:
        return f"-({text})"
    return shape.dialect.mask_of(shape.element, shape.lanes, text) if shape.lanes else f"({text})"


def _float_comparison(predicate: str, shape: Shape, left: str, right: str) -> str:
    either, both = ("|", "&") if shape.lanes > 1 else shape.dialect.either_both
    if predicate in ("uno", "ord"):
        text = f"({left} != {left}) {either} ({right} != {right})"
        return text if predicate == "uno" else f"({left} == {left}) {both} ({right} == {right})"
    if predicate == "one":
        return f"({left} < {right}) {either} ({left} > {right})"
    if predicate == "une":
        return f"{left} != {right}"
    if predicate[0] != "o":
        raise InternalError(f"no comparison {predicate} in C")
    return f"{left} {_ORDERED[predicate[1:]]} {right}"


def _integer_comparison(predicate: str, shape: Shape, left: str, right: str) -> str:
    if predicate in ("eq", "ne"):
        return f"{left} {'==' if predicate == 'eq' else '!='} {right}"
    if predicate[0] == "u" and shape.element != "i1":
        left, right = shape.bits(left), shape.bits(right)
    elif predicate[0] == "u" and shape.lanes:  # true is -1
        left, right = right, left
    return f"{left} {_ORDERED[predicate[1:]]} {right}"


def choose(shape: Shape, condition: str, left: str, right: str, *, masked: bool) -> str:
    """``select``; ``masked``: the condition has lanes too."""
    if not masked or shape.lanes <= 1:
        return f"{condition} ? {left} : {right}"
    dialect, lanes = shape.dialect, shape.lanes
    if shape.element in ("i8", "i16", "i64", "double", "ptr"):
        wide = {"double": "i64"}.get(shape.element, shape.element)
        condition = dialect.converted(wide, lanes, condition)
    return dialect.chosen(shape.element, lanes, condition, left, right)


def convert(opcode: str, source: Shape, target: str, text: str) -> str:
    """Conversions of numbers, lane by lane; not ``bitcast``."""
    dialect, lanes = source.dialect, source.lanes
    if source.element == "i1" and lanes and opcode != "sext":
        text = f"({text} & 1)"
    elif source.element == "i1" and not lanes and opcode == "sext":
        text = f"(-{text})"
    if opcode in ("zext", "uitofp") and source.element != "i1":
        text = source.bits(text)
    if target == "i1":
        return f"-({text} & 1)" if lanes else f"{text} & 1"
    if opcode == "fptoui":
        wide = dialect.converted_unsigned(target, lanes, text)
        return dialect.from_unsigned(target, lanes, wide)
    return dialect.converted(target, lanes, text)


def call(name: str, shape: Shape, operands: Pieces) -> str:
    """An intrinsic, by the first part of its name."""
    if name == "fma":
        left, right, addend = operands
        return f"{left} * {right} + {addend}"
    if name in _ROUNDINGS or name == "sqrt":
        return shape.dialect.rounded(name, shape.element, shape.lanes, operands[0])
    if name[1:] in _EXTREMES:
        return _extreme(name, shape, operands)
    if name in _OTHERS:
        return _OTHERS[name](shape, operands)
    raise InternalError(f"no intrinsic {name} in C")


def saturated(source: Shape, target: str, text: str) -> str:
    """``fptosi.sat``: what does not fit becomes the nearest integer, NaN 0."""
    dialect, lanes = source.dialect, source.lanes
    goal, bits = Shape(dialect, target, lanes), 8 * size_bytes(target)
    ends = (-(1 << bits - 1), (1 << bits - 1) - 1)
    least, most = (_all(goal, dialect.scalar_text(end, target, 0)) for end in ends)
    low, high = (_all(source, f"{sign}0x1p{bits - 1}") for sign in ("-", ""))
    masked = size_bytes(source.element) != size_bytes(target) and lanes > 1
    below, whole, above = (
        dialect.converted(target, lanes, f"({condition})") if masked else f"({condition})"
        for condition in (f"{text} < {low}", f"{text} == {text}", f"{text} >= {high}")
    )

    def chosen(condition: str, left: str, right: str) -> str:
        if lanes > 1:
            return dialect.chosen(target, lanes, condition, left, right)
        return f"{condition} ? {left} : {right}"

    inside = chosen(below, least, dialect.converted(target, lanes, text))
    return chosen(above, most, f"({chosen(whole, f'({inside})', _all(goal, '0'))})")


def _all(shape: Shape, text: str) -> str:
    """A number in every lane, converted where the text has another type."""
    if shape.lanes > 1:
        return shape.dialect.splat(shape.element, shape.lanes, text)
    return f"({shape.name})({text})"


def _extreme(name: str, shape: Shape, operands: Pieces) -> str:
    """``smin smax umin umax``."""
    left, right = operands
    sides = [shape.bits(operand) for operand in operands] if name[0] == "u" else operands
    condition = f"({sides[0]} {_EXTREMES[name[1:]]} {sides[1]})"
    if shape.lanes > 1:
        return shape.dialect.chosen(shape.element, shape.lanes, condition, left, right)
    return f"{condition} ? {left} : {right}"


def _sign(shape: Shape) -> str:
    suffix = shape.dialect.long_suffix if shape.element == "double" else ""
    return f"{_SIGN_BITS[shape.element]}{suffix}"


def _magnitude(shape: Shape, operands: Pieces) -> str:
    others = shape.dialect.splat_unsigned(shape.element, shape.lanes, f"~{_sign(shape)}")
    return shape.of_bits(f"{shape.bits(operands[0])} & {others}")


def _with_sign(shape: Shape, operands: Pieces) -> str:
    """``copysign``."""
    dialect, bit = shape.dialect, _sign(shape)
    size, sign = (shape.bits(operand) for operand in operands)
    others, one = (
        dialect.splat_unsigned(shape.element, shape.lanes, text) for text in (f"~{bit}", bit)
    )
    return shape.of_bits(f"({size} & {others}) | ({sign} & {one})")


def _funnel(shape: Shape, operands: Pieces) -> str:
    """``fshl``: the upper half of two numbers beside each other, shifted left."""
    high, low, by = (shape.bits(operand) for operand in operands)
    bits = {"i32": 32, "i64": 64}[shape.element]
    # In two steps: a shift by all bits would be none.
    return shape.of_bits(
        f"({high} << ({by} & {bits - 1})) | (({low} >> 1) >> (~{by} & {bits - 1}))"
    )


_OTHERS: dict[str, Callable[[Shape, Pieces], str]] = {
    "copysign": _with_sign,
    "fabs": _magnitude,
    "fshl": _funnel,
}

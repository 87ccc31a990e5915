"""Reads what the texts of all stages have in common: size expressions, tensor types, attributes.

In: a ``Reader`` that stands before one. Out: its value. Not done here: nodes (``parse_graph``),
statements and steps (the parsers of their stages).

A size expression is ``-a*b + 2*floordiv(c, 4) - (d + 1)*e``: products of integers, symbols,
functions and parentheses.
"""

from __future__ import annotations

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import FUNCTIONS, RESERVED, Dim, dim_add, dim_mul, symbol
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.sizes.profile import Profile, SizeRange
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.ir.types import DTYPES, DType, TensorType

_GOES_ON = frozenset("+-*(")  # a size expression, behind its first word
_FACTOR_COUNT_MAX = 64  # of one product; each is sorted into those before it


def read_dim(reader: Reader) -> Dim:
    """A size expression, in its canonical form."""
    start = reader.token
    if start.kind in ("INTEGER", "NAME") and reader.ahead() not in _GOES_ON:
        return _factor(reader)
    try:
        with reader.nested():
            return _sum(reader)
    except LimitError as error:
        raise reader.fail(f"{error.what}: {error.why}", start) from None


def _sum(reader: Reader) -> Dim:
    negative = reader.accept("-")
    total = _product(reader)
    if negative:
        total = dim_mul(total, -1)
    while reader.at("+") or reader.at("-"):
        factor = 1 if reader.take().text == "+" else -1
        total = dim_add(total, dim_mul(_product(reader), factor))
    return total


def _product(reader: Reader) -> Dim:
    total = _factor(reader)
    for _ in range(_FACTOR_COUNT_MAX):
        if not reader.accept("*"):
            return total
        total = dim_mul(total, _factor(reader))
    raise reader.fail(f"expected at most {_FACTOR_COUNT_MAX} factors, got more")


def _factor(reader: Reader) -> Dim:
    if reader.token.kind == "INTEGER":
        return reader.integer()
    if reader.accept("("):
        inner = read_dim(reader)
        reader.expect(")")
        return inner
    start = reader.token
    name = reader.name("a size")
    if not reader.accept("("):
        if name in RESERVED:
            raise reader.fail(f"expected a size, got {name}", start)
        return symbol(name)
    if name not in FUNCTIONS:
        raise reader.fail(
            f"expected a function out of {' '.join(sorted(FUNCTIONS))}, got {name}", start
        )
    left = read_dim(reader)
    reader.expect(",")
    right = read_dim(reader)
    reader.expect(")")
    return FUNCTIONS[name](left, right)


def read_profile(reader: Reader) -> Profile:
    """``s0 = 3, s1 = 1 to 8``."""
    return reader.listed(lambda: _read_range(reader))


def _read_range(reader: Reader) -> SizeRange:
    name = reader.name("a symbol")
    reader.expect("=")
    least = reader.integer()
    return SizeRange(name, least, reader.integer() if reader.accept("to") else least)


def read_dtype(reader: Reader) -> DType:
    """An element type."""
    start = reader.token
    name = reader.name("an element type")
    for dtype in DTYPES:
        if dtype == name:
            return dtype
    raise reader.fail(f"expected an element type out of {' '.join(DTYPES)}, got {name}", start)


def read_type(reader: Reader) -> TensorType:
    """``f32[s0, 3]``."""
    dtype = read_dtype(reader)
    reader.expect("[")
    return TensorType(dtype, reader.items(lambda: read_dim(reader), "]"))


def read_element(reader: Reader) -> tuple[str, int, Dim, DType]:
    """``n = b0[INDEX]: i64``: a symbol, and the element of a buffer that it stands for."""
    name = reader.name("a symbol")
    reader.expect("=")
    buffer = reader.buffer()
    reader.expect("[")
    index = read_dim(reader)
    reader.expect("]", ":")
    return name, buffer, index, read_dtype(reader)


def read_attribute(reader: Reader) -> Attribute:
    """``true``, ``-1.5``, ``"text"``, ``2*s0 + 1``, ``[..]``."""
    if reader.token.kind == "STRING":
        return reader.string()
    if reader.at("true") or reader.at("false"):
        return reader.take().text == "true"
    if reader.accept("["):
        with reader.nested():
            return reader.items(lambda: read_attribute(reader), "]")
    return read_float(reader) if at_float(reader) else read_dim(reader)


def at_float(reader: Reader) -> bool:
    """Whether a float comes next, perhaps with a minus."""
    token = reader.token
    text = reader.ahead() if token.text == "-" else token.text
    return text in ("inf", "nan") or (text[:1].isdecimal() and not text.isdecimal())


def read_float(reader: Reader) -> float:
    """``-1.5``, ``inf``, ``nan``."""
    sign = -1.0 if reader.accept("-") else 1.0
    if not at_float(reader) or reader.at("-"):
        raise reader.fail(f"expected a float, got {reader.token}")
    return sign * float(reader.take().text)

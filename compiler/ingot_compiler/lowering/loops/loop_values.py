"""The values of a loop program: what is computed for one element, and the arguments of a call.

In: nothing. Out: ``Value``, ``ExternArgument``. Not done here: what is done with them (``loops``).

Values of dtype f16 and bf16 are computed in f32 and rounded where they are stored or cast, to their
own type too; bool is a byte.
"""

from __future__ import annotations

from typing import Annotated, get_args
from typing import Literal as OneOf

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType
from ingot_runtime.lazy_dataclass import dataclass

Variable = Annotated[str, "a symbol that a statement binds"]
BufferNumber = Annotated[int, "of the kernel's buffers"]
WholeBuffer = Annotated[int, "of a buffer, written with its first element"]
FunctionName = Annotated[str, "of a library"]
Index = Annotated[Dim, "of an element of a buffer"]
Comparison = OneOf["less", "less_equal", "equal"]
COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)
NARROW: tuple[DType, ...] = ("i8", "u8", "i16", "u16")
"""Types of what ``quantize`` gives and of its zero points."""


@dataclass(frozen=True, slots=True)
class Load:
    """Element ``index`` of buffer number ``buffer``."""

    buffer: BufferNumber
    index: Index


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal number; one of f16 or bf16 is an f32 number, not rounded to its type. What a graph
    says in such a type is representable already; the epsilon of a norm need not be."""

    value: bool | int | float
    dtype: DType


@dataclass(frozen=True, slots=True)
class FromIndex:
    """An index expression as a value."""

    index: Dim
    dtype: DType


@dataclass(frozen=True, slots=True)
class Compare:
    """``left function right`` on index expressions, a bool value: guards of padding and ranges."""

    function: Comparison
    left: Dim
    right: Dim


@dataclass(frozen=True, slots=True)
class Local:
    """A named value in scope: a ``Let``, a ``Reduce`` result, or a contraction's accumulator."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Apply:
    """``function(arguments)``; functions are the names of elementwise core ops, with attributes
    folded into the name (``gelu_none``, ``gelu_tanh``), ``cast`` to ``dtype``, and ``quantize``:
    ``(x, scale, zero, low, high)`` is ``cast(min(max(round(x / scale) + zero, low), high))``, where
    x and scale are f32, zero is an integer of at most 16 bits, the limits are literals that are
    whole. ``dtype`` is the result's."""

    function: str
    arguments: tuple[Value, ...]
    dtype: DType


Value = Load | Constant | FromIndex | Compare | Local | Apply


@dataclass(frozen=True, slots=True)
class Address:
    """Where element ``index`` of buffer number ``buffer`` lies: an argument of ``CallExtern``."""

    buffer: BufferNumber
    index: Index


ExternArgument = Address | FromIndex | Constant

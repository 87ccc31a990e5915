"""What values are that meet: the results of two branches, what a loop carries around.

In: a context, values. Out: ``ValueKind``, a value as one of another kind, a value made again of its
tensors. Not done here: branches and loops themselves (``control``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.compose import full
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.sequences import add_value, value_of
from ingot_compiler.frontend.build.values import (
    KnownSequence,
    Maybe,
    Nothing,
    RaggedSequence,
    Shaped,
    Strings,
    Value,
)
from ingot_compiler.frontend.families.sequences.ragged import empty, flat, pack, shape_of
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.message import message
from ingot_compiler.ir.types import DType, TensorType
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ValueKind:
    """``what``: tensor, strings, shaped, sequence, optional, nothing, or empty (a sequence that is
    known to have no elements). ``dtype``: None for strings; ``rank``: None where a run decides;
    ``of``: what an optional holds."""

    what: str
    dtype: DType | None = None
    rank: int | None = None
    of: ValueKind | None = None


def kind_of(context: OpContext, value: int) -> ValueKind:
    """What a value is."""
    found = value_of(context, value)
    match found:
        case None:
            return ValueKind("tensor", context.dtype_of(value), context.rank_of(value))
        case Strings():
            return ValueKind("strings", None, len(shape_of(context, value)))
        case KnownSequence(items) if not items:
            return ValueKind("empty")
        case KnownSequence():
            return _of_packed(context, pack(context, found))
        case RaggedSequence():
            return _of_packed(context, found)
        case Shaped(data, _):
            return ValueKind("shaped", _dtype(context, data))
        case Nothing():
            return ValueKind("nothing")
        case Maybe(inner, _):
            return ValueKind("optional", of=kind_of(context, inner))


def _of_packed(context: OpContext, packed: RaggedSequence) -> ValueKind:
    return ValueKind("sequence", _dtype(context, packed.data), packed.rank)


def _dtype(context: OpContext, data: int) -> DType | None:
    return None if data < 0 else context.dtype_of(data)


def joined(one: ValueKind, other: ValueKind) -> ValueKind:
    """The kind that both can be seen as.

    Raises:
        Unsupported: there is none.
    """
    if one == other:
        return one
    whats = {one.what, other.what}
    if whats & {"nothing", "optional"}:
        inner = [
            kind.of or kind if kind.what == "optional" else kind
            for kind in (one, other)
            if kind.what != "nothing"
        ]
        return ValueKind("optional", of=inner[0] if len(inner) == 1 else joined(*inner))
    if whats == {"empty", "sequence"}:
        return one if one.what == "sequence" else other
    if whats <= {"sequence", "shaped", "tensor", "strings"} and one.dtype == other.dtype:
        if whats == {"sequence"}:
            return replace(one, rank=None)
        if "sequence" not in whats and len(whats) == 1 and one.what != "shaped":
            return ValueKind("shaped", one.dtype)
        if "sequence" not in whats and "shaped" in whats:
            return ValueKind("shaped", one.dtype)
    raise Unsupported(
        message(f"a value that is {described(one)} here and {described(other)} there")
    )


def described(kind: ValueKind) -> str:
    """A kind for messages."""
    if kind.what == "optional" and kind.of:
        return f"an optional, {described(kind.of)}"
    element = "strings" if kind.what in ("strings", "sequence") and not kind.dtype else kind.dtype
    rank = "" if kind.rank is None else f" of rank {kind.rank}"
    return f"{kind.what} {element or ''}{rank}".strip()


def as_kind(context: OpContext, value: int, kind: ValueKind) -> int:
    """A value as one of a kind that it was joined into."""
    own = kind_of(context, value)
    found = value_of(context, value)
    if kind.what == "optional" and kind.of is not None:
        return _as_optional(context, value, kind.of)
    if kind.what == "shaped" and own.what != "shaped":
        shape = context.integers(shape_of(context, value))
        return add_value(context, Shaped(flat(context, value), shape))
    if kind.what == "sequence" and isinstance(found, (KnownSequence, RaggedSequence)):
        packed = _packed_as(context, found, kind)
        return value if packed == found else add_value(context, replace(packed, rank=kind.rank))
    return value


def _packed_as(
    context: OpContext, sequence: KnownSequence | RaggedSequence, kind: ValueKind
) -> RaggedSequence:
    if isinstance(sequence, KnownSequence) and not sequence.items:
        if kind.dtype is None:
            raise Unsupported("an empty sequence of strings beside one that a run decides")
        return empty(context, kind.dtype, kind.rank)
    return pack(context, sequence)


def _as_optional(context: OpContext, value: int, kind: ValueKind) -> int:
    found = value_of(context, value)
    if isinstance(found, Nothing):
        return add_value(context, Maybe(_nothing(context, kind), context.scalar("bool", 0)))
    if isinstance(found, Maybe):
        inner = as_kind(context, found.value, kind)
        return add_value(context, Maybe(inner, found.given))
    return add_value(context, Maybe(as_kind(context, value, kind), context.scalar("bool", 1)))


def _nothing(context: OpContext, kind: ValueKind) -> int:
    """Some value of a kind, which nobody looks at."""
    if kind.dtype is None or kind.what not in ("sequence", "tensor"):
        raise Unsupported(f"an optional that may hold nothing, {described(kind)}")
    if kind.what == "sequence":
        return add_value(context, empty(context, kind.dtype, kind.rank))
    return full(context, kind.dtype, 0, (0,) * (kind.rank or 0))


def input_types(context: OpContext, kind: ValueKind) -> list[TensorType]:
    """Types of the tensors of a value of some kind, of sizes that are not known."""
    if kind.what == "optional" and kind.of is not None:
        return [*input_types(context, kind.of), TensorType("bool", ())]
    if kind.what in ("nothing", "empty"):
        return []
    if kind.what == "tensor":
        return [_open(context, kind.dtype or "f32", kind.rank or 0)]
    if kind.what == "strings":
        return _flat_types(context, None, kind.rank or 0)
    if kind.what == "shaped":
        return [*_flat_types(context, kind.dtype, 1), _open(context, "i64", 1)]
    length, rank = map(symbol, context.fresh_symbols(2))
    shapes = (length, rank if kind.rank is None else kind.rank)
    return [*_flat_types(context, kind.dtype, 1), TensorType("i64", shapes)]


def _open(context: OpContext, dtype: DType, rank: int) -> TensorType:
    return TensorType(dtype, tuple(map(symbol, context.fresh_symbols(rank))))


def _flat_types(context: OpContext, dtype: DType | None, rank: int) -> list[TensorType]:
    if dtype is not None:
        return [_open(context, dtype, rank)]
    spans = tuple(map(symbol, context.fresh_symbols(rank)))
    return [TensorType("i64", (*spans, 2)), _open(context, "u8", 1)]


def remade(context: OpContext, kind: ValueKind, tensors: Iterator[int]) -> int:
    """A value of a kind, of the tensors that come next."""
    if kind.what == "tensor":
        return next(tensors)
    return add_value(context, _remade(context, kind, tensors))


def _remade(context: OpContext, kind: ValueKind, tensors: Iterator[int]) -> Value:
    if kind.what == "optional" and kind.of is not None:
        return Maybe(remade(context, kind.of, tensors), next(tensors))
    if kind.what == "nothing":
        return Nothing()
    if kind.what == "empty":
        return KnownSequence(())
    if kind.what == "strings":
        return Strings(next(tensors), next(tensors))
    if kind.dtype is None:
        data = add_value(context, Strings(next(tensors), next(tensors)))
    else:
        data = next(tensors)
    if kind.what == "shaped":
        return Shaped(data, next(tensors))
    return RaggedSequence(data, next(tensors), kind.rank)


def all_remade(context: OpContext, kinds: Sequence[ValueKind], tensors: Sequence[int]) -> list[int]:
    """Values of kinds, of the tensors of all."""
    left = iter(tensors)
    return [remade(context, kind, left) for kind in kinds]

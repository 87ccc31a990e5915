"""Values that are no tensors while a model is translated: sequences, optionals, strings, tensors
whose number of dimensions only a run knows.

In: value ids of tensors. Out: value ids that stand for several tensors, or for none. Not done here:
what is computed with them (``packed_sequences``, ``strings``, ``ops``), their form in a bundle
(``value_forms``).

Such a value has no node in the graph. Its id is below that of an absent result, so that no tensor
has it.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KnownSequence:
    """A sequence whose length is known: the values in it."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RaggedSequence:
    """A sequence whose length a run decides: ``data``: the elements of all, one after the other, of
    rank 1; ``shapes``: i64[length, r], what an element of a smaller rank lacks is -1; ``rank``: of
    each element, None where a run decides; ``common``: sizes that all elements are known to have,
    None along the other axes; empty where none is known."""

    data: int
    shapes: int
    rank: int | None
    common: tuple[Dim | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Shaped:
    """A tensor whose rank a run decides: ``data`` of rank 1, ``shape``: i64[rank]."""

    data: int
    shape: int


@dataclass(frozen=True, slots=True)
class Strings:
    """A tensor of strings: ``spans``: i64[.., 2], where each begins and ends in ``pool``, which is
    u8[bytes]."""

    spans: int
    pool: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """An optional that holds nothing."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional that a run decides: ``value``, where the bool ``given`` is true."""

    value: int
    given: int


Value = KnownSequence | RaggedSequence | Shaped | Strings | Nothing | Maybe

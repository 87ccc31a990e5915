"""What the frontend knows of a small tensor's elements: numbers, and expressions over symbols.

In: elements. Out: ``KnownValues``, or those that are found when somebody asks. Not done here: what
follows for the result of an op (``propagate``), what to do with it (``context``).

Known values are numpy object arrays of the tensor's shape; an element is an integer expression
(``Dim``), a float, or None when it is not known. Bools are 0 and 1. A float tensor may hold an
expression: its value is that integer, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.dims import Dim, Sum, terms_of
from ingot_runtime.lazy_dataclass import dataclass

Element = Dim | float | None
KnownValues = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class DeferredValue:
    """Known values of floats, found when somebody asks for them: a graph does not depend on weights
    that nobody asks for.

    ``depth``: how many such stand behind one another.
    """

    find: Callable[[], KnownValues | None]
    depth: int = 1


def known_or_none(known_values: KnownValues | DeferredValue | None) -> KnownValues | None:
    """Find them now."""
    return known_values.find() if isinstance(known_values, DeferredValue) else known_values


def as_known_values(values: Sequence[Element], shape: tuple[int, ...]) -> KnownValues:
    """Row-major values as known values of that shape."""
    flat = np.empty(len(values), np.object_)
    flat[:] = values
    return flat.reshape(shape)


def are_numbers(known_values: KnownValues) -> bool:
    """Whether every element is an integer or a float."""
    return all(isinstance(item, (int, float)) for item in known_values.flat)


def is_known(known_values: KnownValues) -> bool:
    """Whether every element is an integer expression."""
    return all(isinstance(item, (int, Sum)) for item in known_values.flat)


def symbols_appear(known_values: KnownValues) -> bool:
    """Whether some element is not a plain integer."""
    return any(isinstance(item, Sum) and terms_of(item) for item in known_values.flat)


def tells_something(known_values: KnownValues | DeferredValue) -> bool:
    """Whether some element is known, or may be."""
    return isinstance(known_values, DeferredValue) or any(
        item is not None for item in known_values.flat
    )

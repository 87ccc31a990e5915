"""What a value is made of in the end.

In: a value of frozen dataclasses, tuples, mappings, sets. Out: everything in it that is none of
these. Not done here: what for.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import cast

from ingot_build_rules.engine.actions.artifact import Artifact


def leaves(value: object) -> Iterator[object]:
    """Yield the parts, in order; an artifact is one of them, whatever it holds."""
    if isinstance(value, Artifact | str):  # most are
        yield value
    elif isinstance(value, tuple | list | set | frozenset):
        for item in cast("tuple[object, ...]", value):
            yield from leaves(item)
    elif isinstance(value, Mapping):
        for item in cast("Mapping[object, object]", value).items():
            yield from leaves(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name in _field_names(type(value)):
            yield from leaves(getattr(value, name))
    else:
        yield value


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))

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
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Artifact | str | int):  # most are
            yield value
        elif isinstance(value, tuple | list | set | frozenset):
            waiting += [*cast("tuple[object, ...]", value)][::-1]
        elif isinstance(value, Mapping):
            waiting += [*cast("Mapping[object, object]", value).items()][::-1]
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            waiting += [getattr(value, name) for name in _field_names(type(value))]
        else:
            yield value


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    """The last one first."""
    return tuple(field.name for field in dataclasses.fields(kind))[::-1]

"""Digests of values: the same for equal values in every process, on every machine.

In: values made of frozen dataclasses, tuples, mappings, strings, bytes, numbers and artifacts. Out:
sha256 digests. Not done here: keys (``key``), storage. Never ``hash()``, ``repr()`` of unknown
objects or pickle: none of them is stable.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import struct
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Protocol, cast

from ingot_build_rules.engine.actions.artifact import Artifact


class _Hash(Protocol):
    def update(self, data: bytes | bytearray | memoryview, /) -> None: ...


def digest(value: object) -> str:
    """Return 64 hex digits that name ``value``.

    Raises:
        TypeError: a part of the value has no canonical encoding.
    """
    state = hashlib.sha256()
    _feed(state, value)
    return state.hexdigest()


def _feed(state: _Hash, value: object) -> None:
    """Write a prefix-free encoding: a letter for the kind, a length where it varies, then the
    content."""
    if isinstance(value, str):  # most are
        _feed_bytes(state, b"s", value.encode("utf-8", "surrogatepass"))
    elif value is None or isinstance(value, bool):
        state.update({None: b"n", True: b"t", False: b"f"}[value])
    elif isinstance(value, int):
        _feed_bytes(state, b"i", str(value).encode())
    elif isinstance(value, float):
        state.update(b"d" + struct.pack("<d", value))
    elif isinstance(value, bytes | bytearray | memoryview):
        _feed_bytes(state, b"b", cast("bytes | memoryview", value))
    elif isinstance(value, Artifact):
        _feed_bytes(state, b"r" if value.raw else b"a", value.digest.encode())
    else:
        _feed_parts(state, value)


def _feed_bytes(state: _Hash, kind: bytes, content: bytes | bytearray | memoryview) -> None:
    size_bytes = content.nbytes if isinstance(content, memoryview) else len(content)
    state.update(kind + struct.pack("<Q", size_bytes))
    state.update(content)


def _feed_parts(state: _Hash, value: object) -> None:
    parts = list(_parts(value))
    state.update(b"(" + struct.pack("<Q", len(parts)))
    for part in parts:
        _feed(state, part)


@functools.cache
def _compared_names(kind: type) -> tuple[str, ...]:
    """The fields that are content: what equal values may differ in, such as a kept hash, is not."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.compare)


def _parts(value: object) -> Iterator[object]:
    """Yield what a composite value consists of, its kind first."""
    if isinstance(value, tuple | list):
        yield "sequence"
        yield from cast("tuple[object, ...]", value)
    elif isinstance(value, Mapping):
        yield "mapping"
        yield from chain.from_iterable(sorted(cast("Mapping[str, object]", value).items()))
    elif isinstance(value, set | frozenset):
        yield "set"
        yield from sorted(digest(item) for item in cast("frozenset[object]", value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield type(value).__qualname__
        for name in _compared_names(type(value)):
            yield getattr(value, name)
    else:
        raise TypeError(f"no canonical encoding of {type(value).__name__}")

"""Values as bytes, the same for equal values in every process; and the values again. Never pickle.

In: frozen dataclasses of listed classes, tuples, numbers, texts, bytes, artifacts. Out: names of
the classes, then the value as msgpack. Not done here: storage, digests. Only the listed classes are
ever built from bytes, whatever the bytes say.

A tuple is an array, anything else of ours a map of one entry: number of its kind -> its parts. So
msgpack's own loops do all but one call per object. Lists would come back as tuples and mappings not
at all: no artifact has any.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, cast

from ingot_build_rules.engine.actions.artifact import Artifact, Loader
from ingot_build_rules.engine.actions.message_pack import pack, unpack

_ARTIFACT, _INTEGER, _FIRST_CLASS = 0, 1, 16
_HEAD_BYTES = 4
Parts = Callable[[object], tuple[object, ...]]


class Codec:
    """Encodes and decodes; ``modules``: name of a class -> module that defines it, imported when it
    is first met."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules
        self._parts: dict[type, Parts] = {}
        self._classes: dict[str, Callable[..., object]] = {}

    def encode(self, value: object) -> tuple[bytes, tuple[str, ...]]:
        """Return the bytes, and the digests of the artifacts inside, in order of first appearance.

        Raises:
            TypeError: a part of the value is of no listed class.
        """
        writer = _Writer(self)
        body = pack(value, default=writer.plain)
        names = ",".join(writer.numbers).encode()
        return len(names).to_bytes(_HEAD_BYTES, "big") + names + body, tuple(writer.refs)

    def decode(self, content: bytes | memoryview, loader: Loader) -> Any:
        """Return the value that ``content`` encodes.

        Raises:
            ValueError: not made by ``encode``.
        """
        return self.decode_with_refs(content, loader)[0]

    def decode_with_refs(
        self, content: bytes | memoryview, loader: Loader
    ) -> tuple[Any, tuple[str, ...]]:
        """Return the value and what ``encode`` returned with its bytes.

        Raises:
            ValueError: not made by ``encode``.
        """
        view = memoryview(content)
        end = _HEAD_BYTES + int.from_bytes(view[:_HEAD_BYTES], "big")
        try:
            names = str(view[_HEAD_BYTES:end], "ascii")
            classes = [self._class(name) for name in names.split(",")] if names else []
            reader = _Reader(classes, loader)
            value = unpack(
                view[end:], use_list=False, strict_map_key=False, object_hook=reader.build
            )
        except Exception as error:  # noqa: BLE001
            # A constructor may refuse what it gets in any way.
            raise ValueError(f"not an encoded value: {error}") from None
        return value, tuple(reader.refs)

    def parts(self, kind: type) -> Parts:
        """Return the function from a value of a listed class to the fields that make it."""
        if kind not in self._parts:
            name = kind.__qualname__
            if self._modules.get(name) != kind.__module__:
                raise TypeError(f"{kind.__module__}.{name} is not among the classes of artifacts")
            # What a class keeps for itself (a hash) is not an argument of its constructor.
            self._parts[kind] = _getter(
                [field.name for field in dataclasses.fields(kind) if field.init]
            )
        return self._parts[kind]

    def _class(self, name: str) -> Callable[..., object]:
        if name not in self._classes:
            self._classes[name] = getattr(importlib.import_module(self._modules[name]), name)
        return self._classes[name]


def _getter(names: list[str]) -> Parts:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


class _Writer:
    """One value on its way to plain ones; ``numbers``: class name -> its number in this value."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._known: dict[type, tuple[int, Parts]] = {}
        self.numbers: dict[str, int] = {}
        self.refs: dict[str, None] = {}

    def plain(self, value: object) -> object:
        """Called for what msgpack does not know."""
        kind = type(value)
        known = self._known.get(kind)
        if known is None:
            if not dataclasses.is_dataclass(kind):
                return self._other(value)
            parts = self._codec.parts(kind)
            number = self.numbers.setdefault(kind.__qualname__, _FIRST_CLASS + len(self.numbers))
            known = self._known[kind] = (number, parts)
        return {known[0]: known[1](value)}

    def _other(self, value: object) -> object:
        if isinstance(value, Artifact):
            self.refs[value.digest] = None
            return {_ARTIFACT: (value.raw, bytes.fromhex(value.digest))}
        if isinstance(value, int):  # of more than 64 bits
            return {_INTEGER: str(value)}
        raise TypeError(f"no encoding of {type(value).__qualname__}")


class _Reader:
    def __init__(self, classes: list[Callable[..., object]], loader: Loader) -> None:
        self._classes = classes
        self._loader = loader
        self.refs: dict[str, None] = {}

    def build(self, table: dict[Any, Any]) -> object:
        ((number, parts),) = table.items()
        if type(number) is int and number >= _FIRST_CLASS:
            return self._classes[number - _FIRST_CLASS](*parts)
        if number == _INTEGER:
            return int(parts)
        raw, digest = cast("tuple[object, object]", parts)
        if number != _ARTIFACT or type(digest) is not bytes or len(digest) != 32:
            raise ValueError("unknown kind")
        self.refs[digest.hex()] = None
        return Artifact[object](digest.hex(), self._loader, raw=bool(raw))

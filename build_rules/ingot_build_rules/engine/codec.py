"""Values as bytes, the same for equal values in every process; and the values again. Never pickle.

In: frozen dataclasses of listed classes, tuples, lists, mappings, sets, numbers, texts, bytes, artifacts. Out: msgpack.
Not done here: storage, digests. Only the listed classes are ever built from bytes, whatever the bytes say.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

from ingot_build_rules.engine.artifact import Artifact, Loader
from ingot_build_rules.engine.message_pack import pack, unpack

_TUPLE, _LIST, _MAPPING, _SET, _ARTIFACT, _INTEGER, _FIRST_CLASS = 0, 1, 2, 3, 4, 5, 16
_ATOMS = frozenset((str, bytes, bool, float, type(None)))
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 64) - 1


class Codec:
    """Encodes and decodes; ``modules``: name of a class -> module that defines it, imported when it is first met."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules
        self._parts: dict[type, Callable[[object], tuple[object, ...]]] = {}
        self._classes: dict[str, Callable[..., object]] = {}

    def encode(self, value: object) -> tuple[bytes, tuple[str, ...]]:
        """Return the bytes, and the digests of the artifacts inside, in order of first appearance.

        Raises:
            TypeError: a part of the value is of no listed class.
        """
        writer = _Writer(self)
        body = writer.plain(value)
        return pack([list(writer.numbers), body]), tuple(writer.refs)

    def decode(self, content: bytes | memoryview, loader: Loader) -> Any:
        """Return the value that ``content`` encodes.

        Raises:
            ValueError: not made by ``encode``.
        """
        return self.decode_with_refs(content, loader)[0]

    def decode_with_refs(self, content: bytes | memoryview, loader: Loader) -> tuple[Any, tuple[str, ...]]:
        """Return the value and what ``encode`` returned with its bytes.

        Raises:
            ValueError: not made by ``encode``.
        """
        try:
            names, body = unpack(content)
            reader = _Reader([self._class(str(name)) for name in names], loader)
            return reader.build(body), tuple(reader.refs)
        except Exception as error:  # noqa: BLE001  # a constructor may refuse what it gets in any way
            raise ValueError(f"not an encoded value: {error}") from None

    def parts(self, kind: type) -> Callable[[object], tuple[object, ...]]:
        """Return the function from a value of a listed class to the fields that make it."""
        if kind not in self._parts:
            name = kind.__qualname__
            if self._modules.get(name) != kind.__module__:
                raise TypeError(f"{kind.__module__}.{name} is not among the classes of artifacts")
            # What a class keeps for itself (a hash) is not an argument of its constructor.
            names = [field.name for field in dataclasses.fields(kind) if field.init]
            self._parts[kind] = (
                attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
            )
        return self._parts[kind]

    def _class(self, name: str) -> Callable[..., object]:
        if name not in self._classes:
            self._classes[name] = getattr(importlib.import_module(self._modules[name]), name)
        return self._classes[name]


class _Writer:
    """One value on its way to plain lists; ``numbers``: class name -> its number in this value."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._known: dict[type, tuple[int, Callable[[object], tuple[object, ...]]]] = {}
        self.numbers: dict[str, int] = {}
        self.refs: dict[str, None] = {}

    def plain(self, value: object) -> object:
        kind = type(value)
        if kind in _ATOMS:
            return value
        if kind is int:
            return value if _INTEGER_MIN <= cast("int", value) <= _INTEGER_MAX else [_INTEGER, str(value)]
        if kind is tuple:
            items = cast("tuple[object, ...]", value)
            # Most items are atoms, and a call for each would cost more than all the rest.
            return [_TUPLE, *[item if type(item) in _ATOMS else self.plain(item) for item in items]]
        known = self._known.get(kind)
        if known is None:
            if not dataclasses.is_dataclass(kind):
                return self._other(value)
            parts = self._codec.parts(kind)
            number = self.numbers.setdefault(kind.__qualname__, _FIRST_CLASS + len(self.numbers))
            known = self._known[kind] = (number, parts)
        number, parts = known
        return [number, *[item if type(item) in _ATOMS else self.plain(item) for item in parts(value)]]

    def _other(self, value: object) -> object:
        if isinstance(value, Artifact):
            self.refs[value.digest] = None
            return [_ARTIFACT, value.raw, bytes.fromhex(value.digest)]
        if isinstance(value, memoryview | bytearray):
            return bytes(cast("memoryview | bytearray", value))
        if isinstance(value, list):
            return [_LIST, *map(self.plain, cast("list[object]", value))]
        if isinstance(value, Mapping):
            items = cast("Mapping[object, object]", value).items()
            return [_MAPPING, *[self.plain(part) for item in items for part in item]]
        if isinstance(value, set | frozenset):
            parts = [self.plain(part) for part in cast("frozenset[object]", value)]
            return [_SET, *sorted(parts, key=pack)]
        raise TypeError(f"no encoding of {type(value).__qualname__}")


class _Reader:
    def __init__(self, classes: list[Callable[..., object]], loader: Loader) -> None:
        self._classes = classes
        self._loader = loader
        self.refs: dict[str, None] = {}

    def build(self, item: object) -> object:
        if type(item) is not list:
            return item
        head, *rest = cast("Sequence[Any]", item)
        if head >= _FIRST_CLASS:
            parts = [part if type(part) is not list else self.build(part) for part in rest]
            return self._classes[cast("int", head) - _FIRST_CLASS](*parts)
        if head == _TUPLE:
            return tuple([part if type(part) is not list else self.build(part) for part in rest])
        if head == _LIST:
            return list(map(self.build, rest))
        if head == _MAPPING:
            parts = list(map(self.build, rest))
            return dict(zip(parts[::2], parts[1::2], strict=True))
        if head == _SET:
            return frozenset(map(self.build, rest))
        if head == _INTEGER:
            return int(rest[0])
        raw, digest = rest
        if head != _ARTIFACT or type(digest) is not bytes or len(digest) != 32:
            raise ValueError("not an encoded value: unknown kind")
        self.refs[digest.hex()] = None
        return Artifact[object](digest.hex(), self._loader, raw=bool(raw))

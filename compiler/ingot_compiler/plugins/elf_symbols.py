"""The symbols of a relocatable ELF object: what it defines for others, what it wants of them.

In: bytes. Out: ``ObjectSymbols``, or ValueError. Not done here: linking. 64-bit little-endian, as
all targets are (ELF-64 Object File Format, version 1.5).
"""

from __future__ import annotations

import struct

from ingot_runtime.lazy_dataclass import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATABLE, _SYMTAB, _LOCAL, _WEAK = 1, 2, 0, 2


@dataclass(frozen=True, slots=True)
class ObjectSymbols:
    """Names of symbols that are not local to the object."""

    defined: frozenset[str]
    undefined: frozenset[str]


def read_symbols(content: bytes) -> ObjectSymbols:
    """Read the symbol table.

    Raises:
        ValueError: it is no relocatable ELF object, or a damaged one.
    """
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < _HEADER.size:
        raise ValueError("expected a 64-bit little-endian ELF object, got other bytes")
    _, kind, _, _, _, _, at, _, _, _, _, size, count, _ = _HEADER.unpack_from(content)
    if kind != _RELOCATABLE:
        raise ValueError(f"expected a relocatable ELF object (type 1), got type {kind}")
    try:
        sections = [_SECTION.unpack_from(content, at + size * index) for index in range(count)]
        return _symbols(content, sections)
    except (struct.error, IndexError) as error:
        raise ValueError("expected an ELF object, got one with a damaged table") from error


def _symbols(content: bytes, sections: list[tuple[int, ...]]) -> ObjectSymbols:
    defined: set[str] = set()
    undefined: set[str] = set()
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        table = content[section[4] : section[4] + section[5]]
        strings = sections[section[6]]
        names = content[strings[4] : strings[4] + strings[5]]
        for name_at, info, _, place, _, _ in _SYMBOL.iter_unpack(table):
            name = names[name_at : names.index(0, name_at)].decode("utf-8", "replace")
            if info >> 4 != _LOCAL and name and not (place == 0 and info >> 4 == _WEAK):
                (defined if place else undefined).add(name)
    return ObjectSymbols(frozenset(defined), frozenset(undefined))

"""msgpack with types, which the package has none of, and with every text that Python has.

In: plain values. Out: ``pack``, ``unpack``. Not done here: values that are not plain (``codec``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack

# The package has no types.
_package: Any = msgpack
_pack, _unpack = _package.packb, _package.unpackb
UnpackException: type[Exception] = msgpack.exceptions.UnpackException
"""Raised for some of what is not msgpack, ``ValueError`` for the rest."""
# A path need not be UTF-8: Python writes its bytes as lone surrogates.
_ERRORS = "surrogatepass"


def pack(value: object, default: Callable[[object], object] | None = None) -> bytes:
    """Return the bytes of plain values; ``default`` makes others plain.

    Raises:
        TypeError: a value is not plain.
    """
    content: bytes = _pack(value, unicode_errors=_ERRORS, default=default)
    return content


def unpack(content: bytes | memoryview, **settings: bool | Callable[[Any], object]) -> Any:
    """Return the values, sequences as lists unless ``use_list=False``.

    Raises:
        ValueError, UnpackException: not made by ``pack``.
    """
    return _unpack(content, unicode_errors=_ERRORS, **settings)

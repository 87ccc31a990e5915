"""msgpack with types; the package has none.

In: plain values. Out: ``pack``, ``unpack``, the error of the latter. Not done here: values that are not plain (``codec``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack

UnpackException: type[Exception] = msgpack.exceptions.UnpackException
"""Raised for some of what is not msgpack, ``ValueError`` for the rest."""
pack: Callable[..., bytes] = msgpack.packb  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportAssignmentType]
unpack: Callable[..., Any] = msgpack.unpackb  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

"""Pools as the user writes them: ``fast=200kB``, ``slow``.

In: texts, the names of devices. Out: the same with limits in bytes, in order. Not done here:
planning (``ingot_compiler.memory``), who gives the memory (``export.library_pools``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_compiler.ir.errors import UserError
from ingot_runtime.format.limits import DEVICE_COUNT_MAX
from ingot_runtime.option_ref import OptionRef
from ingot_runtime.option_values import read_size

RESERVED = ("workspace", "constants")
"""Pools that every library has."""


def read_pools(texts: Sequence[str], devices: Collection[str]) -> tuple[str, ...]:
    """Check pools and write their limits in bytes; ``devices``: names that are taken.

    Raises:
        UserError: a size that is none, a name twice or taken, more than a bundle holds.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, size = text.partition("=")
        if name in found or name in devices or name in RESERVED or not name:
            others = ", ".join([*devices, *RESERVED, *found])
            why = f"expected another name than {others}"
            raise UserError(f"pool name taken: {name!r}", OptionRef("pool", text), why)
        found[name] = f"{name}={_limit(text, size)}" if equals else name
    if len(found) + len(devices) > DEVICE_COUNT_MAX:
        why = f"expected at most {DEVICE_COUNT_MAX - len(devices)} beside the devices, got {len(found)}"
        raise UserError("too many pools", OptionRef("pool", texts[-1]), why, "join some of them")
    return tuple(found.values())


def _limit(text: str, size: str) -> int:
    found = read_size(size)
    if found is None:
        why = f"expected a size such as 200kB or 1MiB, got {size!r}"
        do = "write fast=200kB, or the name alone for one that grows"
        raise UserError("wrong size of a pool", OptionRef("pool", text), why, do)
    return found

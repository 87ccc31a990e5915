"""The hook ``link_image`` of devices that run the host's code: the objects of kernels to a library.

In: objects of kernels and support. Out: the bytes of a library section. Not done here: the linker's
ways (``host.link``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.targets.target import parse_target


def link_library(
    kernels: Sequence[tuple[str, bytes]], main: bytes | None, support: bytes, target: str
) -> bytes:
    """Link a library; ``kernels`` are (symbol, object) in the order of its kernel table.

    Raises:
        InternalError: a `main`, or what does not link. BuildError: no linker on this machine.
    """
    if main is not None:
        raise InternalError("a library with a main", where=f"target {target}")
    symbols = [symbol for symbol, _ in kernels]
    return link_image(
        (*kernels, ("support", support)), symbols, SUPPORT_EXPORTS, parse_target(target)
    )

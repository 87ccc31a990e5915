"""The hook ``link_image`` of the host: the objects of one variant to its image.

In: objects of kernels, `main` and support. Out: the image's bytes. Not done here: the linker's ways
(``link``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.main.main import MAIN_EXPORTS
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.targets.target import parse_target


def link_variant(
    kernels: Sequence[tuple[str, bytes]], main: bytes | None, support: bytes, target: str
) -> bytes:
    """Link a variant; ``kernels`` are (symbol, object) in the order of the image's kernel table.

    Raises:
        InternalError: no `main`, or what does not link. BuildError: no linker on this machine.
    """
    if main is None:
        raise InternalError("a variant without main", where=f"target {target}")
    objects = (*kernels, ("main", main), ("support", support))
    symbols = [symbol for symbol, _ in kernels]
    return link_image(objects, symbols, {**SUPPORT_EXPORTS, **MAIN_EXPORTS}, parse_target(target))

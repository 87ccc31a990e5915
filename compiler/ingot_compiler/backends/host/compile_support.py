"""The hook ``compile_support`` of processors: the native code that every image of a target needs.

In: a target. Out: one ELF object. Not done here: the functions (``support``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.support import compile_support as support
from ingot_compiler.targets.target import parse_target


def compile_support(target: str) -> bytes:
    """Return the object."""
    return support.compile_support(parse_target(target))

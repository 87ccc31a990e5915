"""The hook ``compile_support`` of processors: the native code that every image of a target needs.

In: a target. Out: one ELF object. Not done here: the functions (``support``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.object import compile_object
from ingot_compiler.backends.host.support import support_module
from ingot_compiler.backends.host.targets.target import parse_target


def compile_support(target: str) -> bytes:
    """Return the object."""
    chosen = parse_target(target)
    return compile_object(support_module(chosen), chosen)

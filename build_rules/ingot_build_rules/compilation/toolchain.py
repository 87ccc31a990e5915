"""What a bundle's lock says of the tools that made it.

In: the installed packages. Out: (name, version or digest) pairs. Not done here: digests of our own
code, which are in keys (``engine.cache.code_digest``): two versions of it that make the same
artifacts make the same bundle.
"""

from __future__ import annotations

import functools
import sys

from ingot_build_rules.engine.cache.file_digests import file_digest
from ingot_build_rules.engine.cache.installed import installed_versions
from ingot_compiler.backends.host.zig import zig_path
from ingot_runtime import __version__

_PACKAGES = ("llvmlite", "ziglang")
Toolchain = tuple[tuple[str, str], ...]
"""(name, version or digest) of what a bundle's lock names."""


@functools.cache
def zig_digest() -> str:
    """The sha256 of the linker and C compiler, 64 hex digits: 186 MB, once per process that has no
    other way to know."""
    return file_digest(zig_path())


def toolchain(zig: str) -> Toolchain:
    """Versions of Ingot and of what it generates code with, and the digest of ``zig``, the linker
    and C compiler."""
    versions = installed_versions(_PACKAGES, sys.path).items()
    return (("ingot", __version__), *versions, ("zig", zig))

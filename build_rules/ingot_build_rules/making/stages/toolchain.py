"""The tools that made a bundle, as its lock states them.

In: the installed packages. Out: (name, version) pairs, the same on every machine that has these
versions. Not done here: digests of programs and of our own code, which are in keys
(``own_code``): two programs that make the same artifacts make the same bundle.
"""

from __future__ import annotations

import sys

from ingot_build_rules.engine.cache.installed import installed_versions
from ingot_runtime import __version__

_PACKAGES = ("llvmlite", "ziglang")
Toolchain = tuple[tuple[str, str], ...]
"""(name, version) of what a bundle's lock names."""


def toolchain() -> Toolchain:
    """Versions of Ingot and of what it generates code with."""
    return (("ingot", __version__), *installed_versions(_PACKAGES, sys.path).items())

"""The one line that says that a file was made for this machine alone.

In: a compilation for ``native``. Out: a sentence, or none. Not done here: what ``native`` stands
for (``compilation.options``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_build_rules.compilation.options import resolve_target
from ingot_runtime.format.features import LEVELS

_PORTABLE = {
    "x86-64": ("x86-64-v3", "x86-64-v2"),
    "aarch64": ("aarch64",),
    "riscv64": ("riscv64",),
}
"""Architecture -> the levels that many machines have, the best first."""
_RUNS_ON = {
    "x86-64-v2": "any x86-64 since 2009",
    "x86-64-v3": "any x86-64 with AVX2, 2013 and later",
    "aarch64": "any aarch64",
    "riscv64": "any RV64GC",
}


def portable_note(output: str, requested: Sequence[str]) -> str | None:
    """Return what to say of a file for the targets ``requested`` (none means ``native``); None if
    it is not for this machine alone, or runs on most others as well."""
    if requested and "native" not in requested:
        return None
    native = resolve_target("native")
    portable = next(level for level in _PORTABLE[native.arch] if _has(native.features, level))
    beyond = sorted(set(native.features) - set(LEVELS[portable]))
    if not beyond:
        return None
    return (
        f"note: {output} is for processors like this one: it needs {' '.join(beyond)} beside "
        f"{portable}. Make a portable one with --target {portable} ({_RUNS_ON[portable]})"
    )


def _has(features: Sequence[str], level: str) -> bool:
    return set(LEVELS[level]) <= set(features)

"""The one line that says that a file was made for this machine alone.

In: a compilation for ``native``. Out: a sentence, or none. Not done here: what ``native`` stands
for (``options.options``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_build_rules.making.options.host_target import resolve_target
from ingot_build_rules.making.project.model import ProjectModel
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
    return _note(f"{output} is", "it needs", "--target {0}")


def project_note(project: ProjectModel, built: Collection[str]) -> str | None:
    """Return what to say of those bundles of a project that were built now; None where all of them
    run on most machines."""
    texts = {target.name: target.text for target in project.targets}
    outputs = [
        bundle.output
        for bundle in project.bundles
        if bundle.name in built
        and "native" in [texts.get(it, it) for it in map(str, bundle.options.targets)]
    ]
    remedy = 'targets = ["{0}"] in ingot.toml'
    if len(outputs) > 1:
        return _note(f"{len(outputs)} bundles are", "they need", remedy)
    return _note(f"{outputs[0]} is", "it needs", remedy) if outputs else None


def _note(subject: str, needs: str, remedy: str) -> str | None:
    native = resolve_target("native")
    portable = next(level for level in _PORTABLE[native.arch] if _has(native.features, level))
    beyond = sorted(set(native.features) - set(LEVELS[portable]))
    if not beyond:
        return None
    return (
        f"note: {subject} for processors like this one: {needs} {' '.join(beyond)} besides "
        f"{portable}. Portable ones: {remedy.format(portable)} ({_RUNS_ON[portable]})"
    )


def _has(features: Sequence[str], level: str) -> bool:
    return set(LEVELS[level]) <= set(features)

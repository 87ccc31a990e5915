"""Where the results of two builds begin to differ.

In: what two bundles record. Out: the stages that differ though nothing that they were made from
does. Not done here: whose fault it is (``find_blame``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ingot_build_rules.tools.reproduce.bundle_record import BundleRecord, Stage
from ingot_runtime.lazy_dataclass import dataclass

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "infer_types": (),
    "optimize": ("infer_types",),
    "place": ("optimize",),
    "fuse": ("place",),
    "lower": ("fuse",),
    "codegen": (),  # only kernels of the same loops are compared
    "plan_memory": ("fuse",),
    "codegen_main": ("fuse", "lower", "codegen", "plan_memory"),
    "link": ("lower", "codegen", "codegen_main"),
}
MADE_FROM: Mapping[str, str] = {
    "infer_types": "model",
    "optimize": "graph",
    "place": "optimized graph",
    "fuse": "placed graph",
    "lower": "fused graph",
    "codegen": "loops",
    "plan_memory": "fused graph",
    "codegen_main": "kernels and memory plan",
    "link": "objects",
}
"""Rule -> what people call its inputs."""
RULES_OF: Mapping[str, tuple[str, ...]] = {
    "infer_types": ("import_model", "infer_types"),
    "link": ("codegen_support", "link"),
}
"""Stage -> its rule and those before it whose results nobody records, where it is not one of its
own name alone."""
_EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "ziglang": ("codegen_support", "link"),
    "llvmlite": ("codegen", "codegen_main", "link"),
    "ingot": tuple(_NEEDS),
}
"""Part of the toolchain -> the rules whose results it may change."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A stage that differs though what it needs does not: ``recorded`` became ``present``, of
    ``kernel`` if it is one's."""

    rule: str
    target: str
    recorded: str
    present: str
    kernel: str = ""


def find_origins(old: BundleRecord, new: BundleRecord) -> list[Origin]:
    """Return where results begin to differ, in the order of the stages."""
    present = {(stage.rule, stage.target): stage for stage in new.stages}
    differing: set[tuple[str, str]] = set()
    origins: list[Origin] = []
    for stage in old.stages:
        key = stage.rule, stage.target
        origin = _compared(stage, present.get(key, stage))
        if origin is None:
            continue
        differing.add(key)
        needs = {(rule, target) for rule in _NEEDS[stage.rule] for target in ("", stage.target)}
        if needs.isdisjoint(differing):
            origins.append(origin)
    return origins


def _compared(old: Stage, new: Stage) -> Origin | None:
    if old.rule == "lower":
        gone, came = _without(old, new), _without(new, old)
        return Origin(old.rule, old.target, gone, came) if gone or came else None
    if old.rule == "codegen":
        code = {kernel.loops: kernel.code for kernel in new.kernels}
        changed = [
            kernel for kernel in old.kernels if code.get(kernel.loops, kernel.code) != kernel.code
        ]
        return (
            Origin(old.rule, old.target, changed[0].code, code[changed[0].loops], changed[0].symbol)
            if changed
            else None
        )
    return (
        Origin(old.rule, old.target, old.digest, new.digest) if old.digest != new.digest else None
    )


def _without(left: Stage, right: Stage) -> str:
    """The first kernel of ``left`` whose loops ``right`` has not."""
    known = {kernel.loops for kernel in right.kernels}
    return next(
        (f"kernel {kernel.symbol}" for kernel in left.kernels if kernel.loops not in known), ""
    )


def unexplained(origins: Iterable[Origin], tools: Collection[str]) -> list[Origin]:
    """Leave out what changed ``tools`` may have caused."""
    explained = {rule for tool in tools for rule in _EXPLAINS.get(tool, ())}
    return [origin for origin in origins if origin.rule not in explained]

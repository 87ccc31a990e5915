"""Where two bundles part: the first section and the first kernel that differ.

In: two described bundles. Out: ``BundleDifference``. Not done here: why (``blame``), every difference (``ingot_artifacts.inspect.diff``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What runs comes first, then what only tells of it: a record that differs is no news where code does. Manifest and tree
# repeat plan and weights.
_ORDER = ("plan", "code", "program", "weights", "debug", "lock", "manifest", "tree")


@dataclass(frozen=True, slots=True)
class KernelDifference:
    """At ``launch`` of ``target`` the kernel ``old`` became ``new`` (one of them may be ""): other loops, or other code of the same.

    ``nodes``: the user's nodes that the launch computes.
    """

    target: str
    launch: int
    old: str
    new: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        kernel = self.old if self.old == self.new else f"{self.old or 'nothing'} (now {self.new or 'nothing'})"
        return f"kernel {kernel} of {', '.join(self.nodes) or 'layout'}"


@dataclass(frozen=True, slots=True)
class BundleDifference:
    """``section``: the first, such as ``code 0``, "" for the header alone; ``target``: the variant that it belongs to.

    ``sections``: all that differ, in the order of the file.
    """

    section: str
    target: str
    sections: tuple[str, ...]
    kernel: KernelDifference | None

    def __str__(self) -> str:
        parts = [f"section {self.section}" if self.section else "header"]
        parts += [f"variant {self.target}"] if self.target else []
        return ", ".join([*parts, *([str(self.kernel)] if self.kernel else [])])


def bundle_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> BundleDifference:
    """Compare two bundles as ``describe_bundle`` describes them."""
    left, right = _sections(old), _sections(new)
    names = [
        name for name in [*left, *(name for name in right if name not in left)] if left.get(name) != right.get(name)
    ]
    first = min(names, key=lambda name: (_ORDER.index(name.split()[0]), name), default="")
    kind, _, number = first.partition(" ")
    variants: list[dict[str, Any]] = old["variants"]
    target = str(variants[int(number)]["target"]) if kind in ("code", "program") and int(number) < len(variants) else ""
    targets = [target] if target else [str(variant["target"]) for variant in variants]
    kernels = filter(None, (_kernel(old, new, target) for target in targets))
    return BundleDifference(first, target, tuple(names), next(kernels, None))


def _sections(described: Mapping[str, Any]) -> dict[str, str]:
    rows: list[dict[str, Any]] = described["sections"]
    trees = {row["id"]: row["sha256"] for row in rows if row["kind"] == "tree"}
    return {f"{row['kind']} {row['id']}": str(row["sha256"] or trees.get(row["id"])) for row in rows}


def _kernel(old: Mapping[str, Any], new: Mapping[str, Any], target: str) -> KernelDifference | None:
    """Find the first launch with another kernel, or another object of the same one."""
    left, right = _launches(old, target), _launches(new, target)
    for launch in range(max(len(left), len(right))):
        before = left[launch] if launch < len(left) else ("", "", ())
        after = right[launch] if launch < len(right) else ("", "", ())
        if before[:2] != after[:2]:
            return KernelDifference(target, launch, before[0], after[0], after[2] or before[2])
    return None


def _launches(described: Mapping[str, Any], target: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Symbol, digest of its object, and nodes of every launch."""
    stages: Mapping[str, Any] = described["lock"].get("stages", {}).get("targets", {}).get(target, {})
    objects: Mapping[str, str] = stages.get("kernels", {})
    launches: list[dict[str, Any]] = described["debug"].get("launches", {}).get(target, [])
    return [
        (launch["kernel"], objects.get(launch["kernel"], ""), tuple(f"{name} ({op})" for name, op in launch["nodes"]))
        for launch in launches
    ]

"""Where two bundles part: the first section and the first kernel that differ.

In: two described bundles. Out: ``BundleDifference``. Not done here: why (``blame``), every
difference (``ingot_artifacts.inspect.diff``).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from ingot_build_rules.tools.reproduce.bundle_record import BundleRecord, RecordedLaunch
from ingot_runtime.lazy_dataclass import dataclass

# What runs comes first, then what only tells of it: a record that differs is no news where code
# does. Manifest and tree repeat plan and weights.
_ORDER = ("plan", "code", "program", "weights", "debug", "lock", "manifest", "tree")


@dataclass(frozen=True, slots=True)
class KernelDifference:
    """At ``launch`` of ``target`` the kernel ``old`` became ``new`` (one of them may be ""): other
    loops, or other code of the same.

    ``nodes``: name and op of the user's nodes that the launch computes.
    """

    target: str
    launch: int
    old: str
    new: str
    nodes: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        kernel = (
            self.old
            if self.old == self.new
            else f"{self.old or 'nothing'} (now {self.new or 'nothing'})"
        )
        nodes = ", ".join(f"{name} ({op})" for name, op in self.nodes)
        return f"kernel {kernel} of {nodes or 'layout'}"


@dataclass(frozen=True, slots=True)
class BundleDifference:
    """``section``: the first, such as ``code 0``, "" for the header alone; ``target``: the variant
    that it belongs to.

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


@dataclass(frozen=True, slots=True)
class Side:
    """One of two bundles: as ``describe_bundle`` describes it, and what it records."""

    described: Mapping[str, Any]
    record: BundleRecord


def bundle_difference(old: Side, new: Side) -> BundleDifference:
    """Compare two bundles that differ."""
    left, right = _sections(old.described), _sections(new.described)
    names = [
        name
        for name in [*left, *(name for name in right if name not in left)]
        if left.get(name) != right.get(name)
    ]
    first = min(names, key=lambda name: (_ORDER.index(name.split()[0]), name), default="")
    kind, _, number = first.partition(" ")
    targets = [str(variant["target"]) for variant in old.described["variants"]]
    target = (
        targets[int(number)] if kind in ("code", "program") and int(number) < len(targets) else ""
    )
    kernels = (_kernel(old.record, new.record, name) for name in ([target] if target else targets))
    return BundleDifference(first, target, tuple(names), next(filter(None, kernels), None))


def _sections(described: Mapping[str, Any]) -> dict[str, str]:
    rows: list[dict[str, Any]] = described["sections"]
    trees = {row["id"]: row["digest"] for row in rows if row["kind"] == "tree"}
    return {
        f"{row['kind']} {row['id']}": str(row["digest"] or trees.get(row["id"])) for row in rows
    }


def _kernel(old: BundleRecord, new: BundleRecord, target: str) -> KernelDifference | None:
    """Find the first launch with another kernel, or another object of the same one."""
    pairs = zip_longest(
        old.launches.get(target, ()),
        new.launches.get(target, ()),
        fillvalue=RecordedLaunch("", "", ()),
    )
    for number, (left, right) in enumerate(pairs):
        if (left.kernel, left.code) != (right.kernel, right.code):
            nodes = right.nodes or left.nodes
            return KernelDifference(target, number, left.kernel, right.kernel, nodes)
    return None

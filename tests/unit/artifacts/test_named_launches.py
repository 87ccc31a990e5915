"""Launches and versions have names under which those of two bundles can be compared."""

from __future__ import annotations

from typing import Any

from ingot_artifacts.inspect.named_launches import launches_by_name, versions_by_name

TARGET = "x86-64-v3"
GEMM, RELU = [["/a", "Gemm"]], [["/a", "Gemm"], ["/b", "Relu"]]


def described(*nodes: list[list[str]], versions: list[dict[str, Any]] | None = None) -> Any:
    """Return what of a description is looked at."""
    debug: dict[str, Any] = {"launches": {TARGET: [{"nodes": each} for each in nodes]}}
    if versions is not None:
        debug["versions"] = {TARGET: versions}
    return {"debug": debug}


def version(launches: int, **sizes: str) -> dict[str, Any]:
    """Return a version as bundles have it."""
    return {"sizes": [list(size) for size in sizes.items()], "refused": False, "launches": launches}


def test_launches_have_their_nodes() -> None:
    """A launch more at the front gives no other launch another name."""
    few, more = described(GEMM), described(RELU, GEMM)
    gemm, relu = f"{TARGET} /a (Gemm)", f"{TARGET} /a (Gemm), /b (Relu)"
    assert list(launches_by_name(few)) == [gemm]
    assert launches_by_name(more) == {relu: {"nodes": RELU}, gemm: {"nodes": GEMM}}


def test_launches_of_the_same_nodes_are_counted() -> None:
    """Those of one group, and those without a node."""
    assert list(launches_by_name(described(GEMM, GEMM, GEMM, []))) == [
        f"{TARGET} /a (Gemm)",
        f"{TARGET} /a (Gemm), launch 2",
        f"{TARGET} /a (Gemm), launch 3",
        f"{TARGET} no node",
    ]


def test_launches_of_versions() -> None:
    """The general version has the names that it has alone; the others say their sizes."""
    several = described(GEMM, GEMM, versions=[version(1), version(1, batch="1..8", width="3")])
    special = f"{TARGET} for batch = 1..8, width = 3"
    assert list(launches_by_name(several)) == [
        f"{TARGET} /a (Gemm)",
        f"{TARGET} /a (Gemm) for batch = 1..8, width = 3",
    ]
    general = f"{TARGET} for any other sizes"
    row = {"refused": False, "launches": 1}
    assert versions_by_name(several) == {general: row, special: row}
    assert versions_by_name(described(GEMM)) == {general: row}


def test_bundles_that_tell_nothing() -> None:
    """No launches, no names."""
    assert launches_by_name({"debug": {}}) == versions_by_name({"debug": {}}) == {}

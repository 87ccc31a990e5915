"""Pools of the user: buffers lie in the first that has room, no pool is larger than it may be, every
loader and a library give the bits of a bundle without pools."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.c_library import SharedLibrary, export
from tests.harness.end_to_end_harness import (
    assert_same_bits,
    make_model,
    node,
    run_all_ways,
    tensor,
)
from tests.unit.end_to_end.test_models import Cases

import ingot
from ingot_build_rules.making.project.parse import parse_project
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.memory.parse_memory import parse_memory
from ingot_compiler.memory.print_memory import print_memory

TARGET = "x86-64-v3"
FAST_BYTES = 8192


@pytest.fixture(scope="module")
def cases() -> Cases:
    return Cases("resnet", dynamic=False)


@pytest.fixture(scope="module")
def bundle(cases: Cases, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ResNet whose values do not all fit into the fast pool."""
    path = tmp_path_factory.mktemp("pools") / "m.ingot"
    ingot.compile(cases.path, targets=[TARGET], pools=["fast=8KiB", "slow"]).save(path)
    return path


@pytest.mark.broad
def test_every_loader_gives_the_same_bits(cases: Cases, bundle: Path, tmp_path: Path) -> None:
    """The loader in Python, native and stepped, the one in C, and a library."""
    ingot.compile(cases.path, targets=[TARGET]).save(tmp_path / "plain.ingot")
    wanted = run_all_ways(tmp_path / "plain.ingot", cases.feeds)
    library = SharedLibrary(export(bundle, tmp_path, "--shared", "--pool", "fast=internal"))
    for plain, pooled, feed in zip(
        wanted, run_all_ways(bundle, cases.feeds), cases.feeds, strict=True
    ):
        assert_same_bits(plain, pooled)
        assert_same_bits(plain, library.run(feed))
    pools = {pool["name"]: pool for pool in library.metadata["pools"]}
    assert list(pools) == ["constants", "workspace", "fast", "slow"]
    assert 0 < pools["fast"]["size_bytes"] <= FAST_BYTES
    assert pools["slow"]["size_bytes"] > 0
    assert [pool["from_caller"] for pool in pools.values()] == [False, True, False, True]


@pytest.mark.broad
def test_inspect_tells_of_pools(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its bytes; none of them runs anything."""
    assert main(["inspect", str(bundle)]) == 0
    told = capsys.readouterr().out
    assert "fast: host:0" in told
    rows = [line.split() for line in told.splitlines() if "memory of the host" in line]
    assert [row[:3] for row in rows] == [["fast:", "0", "launches,"], ["slow:", "0", "launches,"]]


def test_text_of_a_plan_with_pools(cases: Cases) -> None:
    """Printed and read back it is the same; each buffer is where its pool is."""
    text = ingot.compile(cases.path, targets=[TARGET], pools=["fast=8KiB", "slow"]).text("memory")
    plan = text[text.index("planner") :]
    assert print_memory(parse_memory(plan)) == plan.rstrip("\n") + "\n"
    assert "device 1 fast: " in plan
    assert "device 2 slow: " in plan


def test_a_pool_that_is_too_small_is_named(cases: Cases) -> None:
    """With the bytes that it lacks, and the nodes whose value has no place."""
    with pytest.raises(UserError, match="pools are too small") as caught:
        ingot.compile(cases.path, targets=[TARGET], pools=["fast=8KiB", "slow=1KiB"])
    assert "fast (8192 bytes) lacks " in caught.value.why
    assert "slow (1024 bytes) lacks " in caught.value.why
    assert "node " in str(caught.value.where)


@pytest.mark.parametrize(
    ("pools", "said"),
    [
        (["fast=8KiB", "fast"], "pool name taken: 'fast'"),
        (["host"], "pool name taken: 'host'"),
        (["constants"], "pool name taken: 'constants'"),
        (["=8KiB"], "pool name taken: ''"),
        (["fast=much"], "wrong size of a pool"),
    ],
)
def test_wrong_pools(cases: Cases, pools: list[str], said: str) -> None:
    """Each is refused before anything is compiled."""
    with pytest.raises(UserError, match=said):
        ingot.compile(cases.path, targets=[TARGET], pools=pools)


def test_more_pools_than_a_bundle_holds(cases: Cases) -> None:
    """Each is a device of the bundle's table."""
    with pytest.raises(UserError, match="too many pools"):
        ingot.compile(cases.path, targets=[TARGET], pools=[f"p{number}" for number in range(16)])


def test_open_sizes_have_no_pools() -> None:
    """Whether a value fits into a limit must be known: the node is named."""
    model = make_model(
        [
            node("Relu", "x", "h", name="/relu"),
            node("Softmax", "h", "p"),
            node("MatMul", "p h", "y"),
        ],
        [tensor("x", ["n", "n"])],
        [tensor("y", ["n", "n"])],
    )
    with pytest.raises(UnsupportedError, match="pools hold values of fixed sizes") as caught:
        ingot.compile(model, targets=[TARGET], pools=["fast=8KiB", "slow"])
    assert "node" in str(caught.value.where)


def test_the_same_bundle_from_command_and_project(
    cases: Cases, bundle: Path, tmp_path: Path
) -> None:
    """``--pool``, ``pools`` of ``ingot.toml`` and ``pools=`` say the same."""
    options = ["--target", TARGET, "--pool", "fast=8KiB", "--pool", "slow", "-q"]
    assert main(["compile", str(cases.path), "-o", str(tmp_path / "m.ingot"), *options]) == 0
    assert (tmp_path / "m.ingot").read_bytes() == bundle.read_bytes()
    text = '[model.m]\nsource = "m.onnx"\n[bundle.b]\nmodel = "m"\npools = ["fast=8KiB", "slow"]\n'
    (spec,) = parse_project(text, "ingot.toml").bundles
    assert spec.options.choices.pools == ("fast=8KiB", "slow")


def test_limits_of_an_export(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit of a library's own pools, constants too: the pool and the bytes that it lacks."""
    arguments = ["export", str(bundle), "--library", "-o", str(tmp_path)]
    assert main([*arguments, "--pool", "constants=internal,1KiB"]) == 1
    assert "pool 'constants' lacks " in capsys.readouterr().err
    assert main([*arguments, "--pool", "constants=internal,1MiB"]) == 0

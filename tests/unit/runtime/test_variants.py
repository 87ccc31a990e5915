"""One bundle with a variant per CPU level: the best that a machine has runs, each gives the right
answer, none is forced on a machine that lacks a feature.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.end_to_end_harness import make_model, node, reference, tensor
from tests.harness.lowering_harness import assert_close, normal

import ingot
import ingot_runtime
from ingot_runtime.executor.session import Session
from ingot_runtime.format.features import LEVELS
from ingot_runtime.loader import cpu

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
HERE = tuple(target for target in TARGETS if set(LEVELS[target]) <= cpu.machine_features())
RELATIVE = 1e-5
MODEL = make_model(
    [
        node("Conv", "x w0", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
        node("Conv", "r w1", "d", pads=[1, 1, 1, 1], group=8), node("Flatten", "d", "f"), node("MatMul", "f w2", "m"),
        node("Softmax", "m", "y"),
    ],
    [tensor("x", ["n", 3, 6, 6])],
    [tensor("y", ["n", 11])],
    {"w0": normal(0, 8, 3, 3, 3), "w1": normal(1, 8, 1, 3, 3), "w2": normal(2, 288, 11) / 8},
)  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three x86-64 variants and one of another architecture."""
    path = tmp_path_factory.mktemp("variants") / "m.ingot"
    ingot.compile(MODEL, targets=[*TARGETS, "aarch64"]).save(path)
    return path


def answer(session: Session) -> Array:
    """The output for a fixed input."""
    return session.run({"x": normal(3, 2, 3, 6, 6)})["y"]


EXPECTED = reference(MODEL, {"x": normal(3, 2, 3, 6, 6)})["y"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("executor", ["aot", "vm"])
def test_each_forced_in_turn(bundle: Path, target: str, executor: str) -> None:
    """A variant that can run here gives the right answer; one that cannot is refused by the names
    of what is missing."""
    if target in HERE:
        session = ingot_runtime.load(bundle, variant=target, executor=executor)
        assert session.loaded.variant.target == target
        assert_close(EXPECTED, answer(session), RELATIVE)
    else:
        missing = sorted(set(LEVELS[target]) - cpu.machine_features())
        with pytest.raises(ingot_runtime.IncompatibleError, match=missing[0]):
            ingot_runtime.load(bundle, variant=target, executor=executor)


def test_the_best_is_taken(bundle: Path) -> None:
    """Without a wish, the highest level that this machine has."""
    assert ingot_runtime.load(bundle).loaded.variant.target == str(RUNNABLE[-1])


@pytest.mark.parametrize("target", HERE)
def test_masked_features_leave_the_best_that_is_left(bundle: Path, target: str) -> None:
    """With the features of one level, and with one feature of the next level missing, that level's
    variant runs."""
    forced = answer(ingot_runtime.load(bundle, variant=target))
    later = TARGETS[TARGETS.index(target) + 1 :]
    masks = [frozenset(LEVELS[target])]
    if later:
        masks += [
            frozenset(LEVELS[later[-1]]) - {feature}
            for feature in set(LEVELS[later[0]]) - set(LEVELS[target])
        ]
    for mask in masks:
        session = ingot_runtime.load(bundle, features=mask)
        assert session.loaded.variant.target == target
        np.testing.assert_array_equal(answer(session), forced)


def test_nothing_fits(bundle: Path) -> None:
    """Below the lowest level every variant is named with what it lacks, and what to do; exit code
    5."""
    with pytest.raises(ingot_runtime.IncompatibleError) as caught:
        ingot_runtime.load(bundle, features=frozenset(LEVELS["x86-64-v2"]) - {"ssse3"})
    text = str(caught.value)
    assert "x86-64-v2 lacks ssse3" in text
    assert "x86-64-v3 lacks avx, avx2" in text
    assert "aarch64 lacks" in text
    assert caught.value.exit_code == 5


@pytest.mark.broad
def test_another_architecture_alone(tmp_path: Path) -> None:
    """A bundle for a foreign CPU compiles here and is refused here."""
    path = tmp_path / "foreign.ingot"
    ingot.compile(MODEL, targets=["riscv64"]).save(path)
    with pytest.raises(
        ingot_runtime.IncompatibleError, match=r"riscv64 lacks .*this processor \(x86-64\)"
    ):
        ingot_runtime.load(path)


def test_all_variants_read_the_same_weights(bundle: Path) -> None:
    """Every level and architecture reads all of the one copy of the weights."""
    ranges = {variant.ranges for variant in ingot_runtime.load(bundle).loaded.plan.variants}
    (found,) = ranges
    assert sum(size_bytes for _, size_bytes in found) >= 288 * 11 * 4


def test_variants_share_what_they_pack_alike(tmp_path: Path) -> None:
    """Equal constants are stored once: two variants of the same layout cost their weights once."""
    wide = make_model(
        [node("Gather", "table i", "y")],
        [tensor("i", [3], 7)],
        [tensor("y", None)],
        {"table": normal(0, 999, 64)},
    )
    sizes: list[int] = []
    for index, targets in enumerate((TARGETS[:1], TARGETS)):
        path = tmp_path / f"{index}.ingot"
        ingot.compile(wide, targets=targets).save(path)
        sizes.append(
            sum(
                row.size_bytes
                for row in ingot_runtime.load(path).loaded.source.sections
                if row.name.startswith("section weights")
            )
        )
    assert sizes[0] == sizes[1] >= 999 * 64 * 4

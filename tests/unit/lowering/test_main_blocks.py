"""Blocks whose sizes only the data decide: small ones need no callback."""

import numpy as np
import pytest
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime
from ingot_compiler.host_program.main_blocks import BLOCK_SPACE_BYTES
from ingot_runtime.executor.grow import Grow

CHAIN_LENGTH = 5
ROW_BYTES = 8  # an index


@pytest.fixture(scope="module")
def bundle() -> bytes:
    """Places of what is not 0, run through ops that cannot be one kernel; only their sum is
    told."""
    nodes = [node("NonZero", "x", "v0")]
    nodes += [node("CumSum", f"v{at} axis", f"v{at + 1}") for at in range(CHAIN_LENGTH)]
    nodes += [node("ReduceSum", f"v{CHAIN_LENGTH}", "y", keepdims=0)]
    model = make_model(
        nodes, [tensor("x", ["n"])], [tensor("y", [], 7)], {"axis": np.array(1, np.int64)}
    )
    return ingot.compile(model).to_bytes()


def expected(x: np.ndarray) -> int:
    """What numpy computes."""
    found = np.flatnonzero(x)
    for _ in range(CHAIN_LENGTH):
        found = np.cumsum(found)
    return int(found.sum())


@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize(
    ("count", "is_large"),
    [
        (0, False),
        (1, False),
        (BLOCK_SPACE_BYTES // ROW_BYTES // (2 * CHAIN_LENGTH), False),
        (BLOCK_SPACE_BYTES // ROW_BYTES // 2, True),  # the first ones find space
        (BLOCK_SPACE_BYTES // ROW_BYTES, True),
        (BLOCK_SPACE_BYTES // ROW_BYTES + 1, True),
    ],
)
def test_small_blocks_need_no_callback(
    bundle: bytes, executor: str, count: int, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The callback of the machine code is not even made; results are numpy's wherever blocks
    lie."""
    asked: list[str] = []
    make, allocate = Grow.make, Grow.allocate

    def noted_make(grow: Grow) -> None:
        asked.append("callback")
        make(grow)

    def noted_allocate(grow: Grow, device: int, size_bytes: int) -> int:
        asked.append("block")
        return allocate(grow, device, size_bytes)

    monkeypatch.setattr(Grow, "make", noted_make)
    monkeypatch.setattr(Grow, "allocate", noted_allocate)
    session = ingot_runtime.load(bundle, executor=executor)
    x = np.zeros(3 * count + 5, np.float32)
    x[np.random.default_rng(count).permutation(len(x))[:count]] = 1
    for _ in range(2):
        assert int(session.run({"x": x})["y"]) == expected(x)
    assert bool(asked) == is_large

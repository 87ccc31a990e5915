"""Native code stays inside of what it is given: every buffer ends, and begins, where no memory can
be touched, and holds poison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.hostile import trials
from tests.hostile.tiny import WIDTH, tiny_contents, tree_entry
from tests.unit.end_to_end.test_models import DYNAMIC, STATIC, Cases
from tests.unit.ir.test_control_flow import _HEAD as TEXT_HEAD  # pyright: ignore[reportPrivateUsage]
from tests.unit.ir.test_control_flow import CASES as CONTROL_FLOW

import ingot
from ingot_artifacts.bundle.write import write_bundle

ALGORITHMS = 6  # threads and executor: 3; before and behind a fence
QUICK_MODELS = ("resnet", "lstm")
QUICK_CONTROL_FLOW = ("early exit", "a scan along other axes and backwards")


def require_inside(bundle: Path, feeds: Sequence[Mapping[str, Array]]) -> None:
    """In every way of running: the same bits as without fences, no signal, nothing written beside a
    buffer."""
    stored = {
        f"{number:04}/{name}": array
        for number, feed in enumerate(feeds)
        for name, array in feed.items()
    }
    np.savez(bundle.with_suffix(".npz"), allow_pickle=False, **stored)
    ends = trials.run_driver(
        "fenced_runs", str(bundle), str(bundle.with_suffix(".npz")), seconds=1800
    )
    assert {end: cases for end, cases in ends.items() if end != "right"} == {}
    assert len(ends["right"]) == ALGORITHMS


def check_model(name: str, folder: Path, *, dynamic: bool) -> None:
    """One export of ``tests/models``."""
    cases = Cases(name, dynamic=dynamic)
    ingot.compile(cases.path).save(folder / "m.ingot")
    require_inside(folder / "m.ingot", cases.feeds)


@pytest.mark.broad
@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", QUICK_MODELS)
def test_exports(name: str, tmp_path: Path) -> None:
    """Convolutions, products, recurrent layers of real exporters."""
    check_model(name, tmp_path, dynamic=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATIC)
def test_all_exports(name: str, tmp_path: Path) -> None:
    """Every architecture that there is."""
    check_model(name, tmp_path, dynamic=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", DYNAMIC)
def test_all_dynamic_exports(name: str, tmp_path: Path) -> None:
    """The same at sizes that the call decides."""
    check_model(name, tmp_path, dynamic=True)


def check_control_flow(name: str, folder: Path) -> None:
    """One graph with regions."""
    text, feeds = CONTROL_FLOW[name]
    ingot.compile(parser.parse_model(TEXT_HEAD + text)).save(folder / "m.ingot")
    require_inside(folder / "m.ingot", feeds)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("name", QUICK_CONTROL_FLOW)
def test_control_flow(name: str, tmp_path: Path) -> None:
    """Loop and Scan."""
    check_control_flow(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_all_control_flow(name: str, tmp_path: Path) -> None:
    """Loop, Scan, If."""
    check_control_flow(name, tmp_path)


@pytest.mark.broad
def test_sizes_that_calls_and_data_decide(tmp_path: Path) -> None:
    """Products, softmax and a result that only the data measure, at sizes around those of a
    vector."""
    nodes = [
        node("MatMul", "x w", "p"),
        node("Softmax", "p", "y"),
        node("Relu", "x", "r"),
        node("NonZero", "r", "places"),
    ]
    weights = {"w": np.random.default_rng(1).standard_normal((7, 33)).astype(np.float32)}
    outputs = [tensor("y", None), tensor("places", None, 7)]
    ingot.compile(make_model(nodes, [tensor("x", ["rows", 7])], outputs, weights)).save(
        tmp_path / "m.ingot"
    )
    draw = np.random.default_rng(2)
    feeds = [
        {"x": draw.standard_normal((rows, 7)).astype(np.float32)}
        for rows in (0, 1, 3, 8, 17, 700, 5000)
    ]
    require_inside(tmp_path / "m.ingot", feeds)


def test_hand_written_kernel(tmp_path: Path) -> None:
    """Weights that are 32 bytes of a MiB, outputs of no, few and many rows."""
    write_bundle(tiny_contents("batch"), tmp_path / "m.ingot", tree_entry)
    draw = np.random.default_rng(3)
    feeds = [
        {"x": draw.standard_normal((rows, WIDTH)).astype(np.float32)} for rows in (0, 1, 5, 5000)
    ]
    require_inside(tmp_path / "m.ingot", feeds)


def test_a_fence_holds(tmp_path: Path) -> None:
    """A read of the byte behind an array, or before it, is a signal; a write beside it on its own
    page is seen."""
    import ctypes

    from tests.hostile.fences import Fenced

    def read(place: Fenced, offset: int) -> str:
        return f"read {ctypes.string_at(place.address + offset, 1)!r}"

    before, behind = Fenced(100, at_end=True), Fenced(100, at_end=False)
    assert trials.in_fresh_child(lambda: read(before, 100)) == "signal 11"
    assert trials.in_fresh_child(lambda: read(behind, -1)) == "signal 11"
    assert before.is_intact()
    ctypes.memset(before.address - 1, 0, 1)
    assert not before.is_intact()

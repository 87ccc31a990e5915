"""Results above 32 KiB are arrays over memory that the session gives out again once nobody holds
them: of sizes that the shapes give, and of sizes that only the data decide."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from onnx import TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime
from ingot_runtime import Session
from ingot_runtime.executor import arrays
from ingot_runtime.loader.block import Block

_ROWS, _WIDTH = 5000, 64


@pytest.fixture(params=["aot", "vm"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """The rows that a mask picks, and all rows doubled."""
    made = make_model(
        [node("Compress", "x mask", "picked", axis=0), node("Add", "x x", "all")],
        [tensor("x", (_ROWS, _WIDTH)), tensor("mask", (_ROWS,), TensorProto.BOOL)],
        [tensor("picked", ("n", _WIDTH)), tensor("all", (_ROWS, _WIDTH))],
    )
    ingot.compile(made).save(tmp_path / "m.ingot")
    with ingot_runtime.load(tmp_path / "m.ingot", executor=request.param) as loaded:
        yield loaded


def _call(session: Session, seed: int, part: float) -> tuple[dict[str, Array], dict[str, Array]]:
    """(What comes, what should come)."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((_ROWS, _WIDTH)).astype(np.float32)
    mask = random.random(_ROWS) < part
    return session.run({"x": x, "mask": mask}), {"picked": x[mask], "all": x + x}


@pytest.mark.sweep(60)
@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 1.0])
def test_results_that_are_held_stay_as_they_are(session: Session, part: float) -> None:
    """Also a view of one alone, and when the session is closed."""
    held = [_call(session, seed, part) for seed in range(5)]
    views = [(found["picked"][1:], want["picked"][1:]) for found, want in held[3:]]
    for found, want in held[:3]:
        for name, array in want.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].flags.writeable
    del held
    gc.collect()
    for seed in range(5, 8):
        _call(session, seed, part)
    session.close()
    for view, array in views:
        np.testing.assert_array_equal(view, array)


@pytest.mark.parametrize("name", ["picked", "all"])
def test_memory_of_a_result_that_is_gone_is_given_out_again(session: Session, name: str) -> None:
    """A caller that keeps the last result has two blocks, in turns."""

    def address(found: dict[str, Array]) -> int:
        place: int = found[name].__array_interface__["data"][0]
        return place

    found: dict[str, Array] = {}
    places: list[int] = []
    for _ in range(6):
        found, want = _call(session, 0, 0.5)
        places.append(address(found))
        np.testing.assert_array_equal(found[name], want[name])
    assert places[2:] == [places[0], places[1]] * 2


@pytest.mark.parametrize("rows", [4000, 5000])
def test_a_result_with_a_bound(rows: int, tmp_path: Path) -> None:
    """Of up to 1 MiB, its memory is that of the caller: `main` asks for none, and any number of
    rows is right."""
    made = make_model(
        [node("Compress", "x mask", "y", axis=0)],
        [tensor("x", (rows, _WIDTH)), tensor("mask", (rows,), TensorProto.BOOL)],
        [tensor("y", ("n", _WIDTH))],
    )
    ingot.compile(made).save(tmp_path / "m.ingot")
    x = np.random.default_rng(0).standard_normal((rows, _WIDTH)).astype(np.float32)
    with ingot_runtime.load(tmp_path / "m.ingot") as session:
        for count in (0, 1, rows // 2, rows):
            mask = np.arange(rows) < count
            np.testing.assert_array_equal(session.run({"x": x, "mask": mask})["y"], x[:count])
        has_fixed_place = rows * _WIDTH * 4 <= 1 << 20
        if has_fixed_place:
            bound = session.bind({"x": x, "mask": mask})
            bound.run()
            np.testing.assert_array_equal(bound.outputs["y"], x)
        else:
            with pytest.raises(ingot_runtime.InputError, match="depends on the data"):
                session.bind({"x": x, "mask": mask})


class _Known(Block):
    """A block that is known while it lives."""

    living: ClassVar[weakref.WeakSet[_Known]] = weakref.WeakSet()

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.living.add(self)


@pytest.mark.broad
def test_memory_of_very_large_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given out again, too, but two blocks wait for an output, whatever sizes it had."""
    made = make_model(
        [node("Expand", "x shape", "y")],
        [tensor("x", ("n", 1))],
        [tensor("y", ("n", 5000))],
        {"shape": np.array([1, 5000])},
    )
    ingot.compile(made).save(tmp_path / "m.ingot")
    monkeypatch.setattr(arrays, "Block", _Known)
    with ingot_runtime.load(tmp_path / "m.ingot") as session:
        for rows in (1700, 1800, 1900, 1700):
            x = np.arange(rows, dtype=np.float32)[:, None]
            held = [session.run({"x": x})["y"] for _ in range(3)]
            places = {y.ctypes.data for y in held[:2]}
            np.testing.assert_array_equal(held, np.broadcast_to(x, (3, rows, 5000)))
            del held
            gc.collect()
            assert [block.size_bytes for block in _Known.living] == [rows * 20000] * 2
            assert {session.run({"x": x})["y"].ctypes.data for _ in range(4)} <= places
    assert not _Known.living


def test_inputs_of_every_kind(session: Session) -> None:
    """Read-only, not contiguous and not aligned ones are read as they are."""
    x = np.random.default_rng(0).standard_normal((_ROWS, _WIDTH)).astype(np.float32)
    spread = np.repeat(x, 2, axis=1)[:, ::2]
    shifted = np.frombuffer(b"-" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    makers: list[Callable[[], Array]] = [
        lambda: x,
        lambda: spread,
        lambda: shifted,
        lambda: np.asfortranarray(x),
    ]
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (frozen, *(make() for make in makers)):
        found = session.run({"x": given, "mask": np.ones(_ROWS, np.bool_)})
        np.testing.assert_array_equal(found["picked"], x)

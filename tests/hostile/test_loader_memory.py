"""Memory that is not to be had: under any limit a load and its runs end right, or by
``ResourceError``, and leave nothing.

What is not promised: an interpreter that has not even the bytes for an exception raises
``MemoryError``.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.hostile import trials
from tests.hostile.address_space import KINDS
from tests.hostile.tiny import WIDTH, tiny_contents, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle

QUICK_POINTS = 40  # for each way to run, and 1 and 4 threads
SLOW_POINTS = 500


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


def require_good(ends: dict[str, list[str]], count: int) -> None:
    """Each trial ended in one of the two ways, and both came."""
    assert {
        end: cases for end, cases in ends.items() if end not in ("right", "ResourceError")
    } == {}
    assert sum(map(len, ends.values())) == count
    assert len(ends) == 2


@pytest.mark.broad
def test_some_limits(bundle: Path) -> None:
    """Limits of address space, and heaps that are full, at 40 points."""
    ends = trials.run_driver("address_space", str(bundle), str(QUICK_POINTS), seconds=600)
    require_good(ends, len(KINDS) * QUICK_POINTS)


@pytest.mark.slow
def test_many_limits(bundle: Path) -> None:
    """The same at 500 points."""
    ends = trials.run_driver("address_space", str(bundle), str(SLOW_POINTS), seconds=3600)
    require_good(ends, len(KINDS) * SLOW_POINTS)


def test_hashing_in_a_full_heap() -> None:
    """CPython's own module for sha256 (3.12, 3.13) writes to memory that it did not get; ours asks
    first."""
    done = subprocess.run(
        [sys.executable, "-c", "from tests.hostile import address_space as a; print(a.hash_in_full_heap())"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "OPENBLAS_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "MemoryError\n"), done.stderr


@pytest.mark.parametrize("what", ["load", "run", "bind"])
def test_the_interpreters_own_error_is_named(
    what: str, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ``MemoryError`` from anywhere inside comes out as ``ResourceError``, and the session goes
    on."""

    def fail(*_: object) -> None:
        raise MemoryError

    session = ingot_runtime.load(bundle)
    feed = {"x": np.ones((3, WIDTH), np.float32)}
    calls: dict[str, Callable[[], object]] = {
        "load": lambda: ingot_runtime.load(bundle),
        "run": lambda: session.run(feed),
        "bind": lambda: session.bind(feed),
    }
    with monkeypatch.context() as patch:
        patch.setattr("ingot_runtime.load_bundle.read_plan", fail)
        patch.setattr("ingot_runtime.executor.context.CallFrame", fail)
        with pytest.raises(ingot_runtime.ResourceError, match="not enough memory"):
            calls[what]()
    assert session.run(feed)["y"].shape == (3, WIDTH)

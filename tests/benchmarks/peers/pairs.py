"""A bundle and one other engine, timed in turns in two processes; the engine's results are checked.

In: a bundle, a network's folder, where engines are installed. Out: a ``Pair``. Not done here: the
processes (``view.peer``), the engines' files (``convert``).
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from tests.benchmarks.peers.convert import ConversionError, converted
from tests.benchmarks.peers.registry import ENGINES, python_of
from tests.benchmarks.peers.turns import interleave

from ingot_build_rules.tools.view.peer import INGOT, PEERS, Peer
from ingot_compiler.ir.errors import BuildError

NAMES = (*PEERS, *ENGINES)
ERROR_MAX = 1e-2
"""An engine whose results are farther from the stored ones is not counted."""
SLICE_SECONDS = 0.15


@dataclass(frozen=True, slots=True)
class Installed:
    """``python`` has the engines of ``ingot bench``; ``folder`` is one that ``install`` made."""

    python: str
    folder: str | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Median seconds of our call and of theirs, and how far their results are from the stored
    ones; where there is no such result, ``failure`` says why, and the times are NaN."""

    engine: str
    ours: float
    theirs: float
    error: float
    failure: str = ""

    @property
    def ratio(self) -> float:
        """Our time by theirs."""
        return self.ours / self.theirs

    def cell(self) -> str:
        """One cell of a page."""
        return "fails" if self.failure else f"{self.ratio:.3f}"


def timed_pair(
    engine: str, installed: Installed, bundle: str, network: str, threads: int, rounds: int
) -> Pair:
    """Time a bundle beside an engine on the same network."""
    inputs, outputs = (os.path.join(network, file) for file in ("inputs.npz", "outputs.npz"))
    results = f"{bundle}.{engine}.npz"
    return take_turns(
        engine,
        partial(_started, engine, installed, network, threads, results),
        partial(Peer, INGOT, sys.executable, bundle, inputs, threads),
        lambda: _distance(arrays_of(results), arrays_of(outputs)),
        rounds,
    )


def take_turns(
    engine: str,
    theirs: Callable[[], Peer],
    ours: Callable[[], Peer],
    distance: Callable[[], float],
    rounds: int,
) -> Pair:
    """Start both, ask how far the other one's results are, let them take turns."""
    try:
        with contextlib.ExitStack() as stack:
            other = stack.enter_context(theirs())
            error = distance()
            if not error <= ERROR_MAX:
                return _failed(engine, f"wrong: the relative error is {error:.1e}", error)
            own = stack.enter_context(ours())
            times = interleave((own, other), rounds, SLICE_SECONDS)
    except ConversionError as why:
        return _failed(engine, str(why))
    except BuildError as why:
        return _failed(engine, f"{why.what}: {why.why}")
    return Pair(engine, times[0], times[1], error)


def _started(engine: str, installed: Installed, network: str, threads: int, results: str) -> Peer:
    inputs = os.path.join(network, "inputs.npz")
    options: dict[str, object] = {"results": results}
    if engine in PEERS:
        model = os.path.join(network, "model.onnx")
        return Peer(engine, installed.python, model, inputs, threads, options)
    if installed.folder is None:
        raise ConversionError("not installed: no folder of environments is named")
    model = converted(installed.folder, engine, network)
    options["outputs"] = list(arrays_of(os.path.join(network, "outputs.npz")))
    opener = ENGINES[engine].__file__
    assert opener is not None
    python = python_of(installed.folder, engine)
    return Peer(opener, python, model, inputs, threads, options)


def _failed(engine: str, why: str, error: float = math.nan) -> Pair:
    return Pair(engine, math.nan, math.nan, error, why)


def arrays_of(path: str) -> Mapping[str, np.ndarray]:
    """What a file holds, by name."""
    with np.load(path) as arrays:
        return dict(arrays)


def _distance(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> float:
    """The largest difference by the largest value, of the worst output."""
    pairs = zip(found.values(), wanted.values(), strict=True)
    return max(relative_difference(one, want) for one, want in pairs)


def relative_difference(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference by the largest value. Some engines drop the axis of samples."""
    if found.size != wanted.size:
        return math.inf
    difference = np.abs(found.reshape(wanted.shape).astype(np.float64) - wanted)
    return float(difference.max() / (np.abs(wanted).max() + 1e-30))

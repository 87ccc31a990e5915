"""Which method each layer of a model is fastest with on this machine.

In: bundles of the same model, one per method, and inputs. Out: ``TunedLayer``s. Not done here:
compiling, files (``options.tuning_file``).

All bundles are loaded, and stepped in turns, launch by launch; the least time of each launch
counts, since what else runs on a machine only ever adds to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_compiler.kernels.products.tuned import METHODS
from ingot_runtime.lazy_dataclass import dataclass

_GAIN_MIN = 1.03
"""Below it another method than the one that is chosen without measuring is not worth a line that
differs: another day may turn it round."""
_PRODUCTS = ("Conv", "Gemm", "MatMul")


@dataclass(frozen=True, slots=True)
class TunedLayer:
    """``node``: its name in the model; ``usual``: the method without measuring; ``method``: the
    fastest; ``seconds`` by method, only those that it can run by."""

    node: str
    usual: str
    method: str
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TimedLaunch:
    """One launch of one bundle."""

    kind: str
    seconds: float


def tune_methods(
    bundles: Mapping[str, str], usual: str, feed: Mapping[str, Any], threads: int, rounds: int
) -> tuple[TunedLayer, ...]:
    """Measure ``bundles``, method -> path, and the ``usual`` one; return the layers that can run by
    more than one method, in the order of the model."""
    sessions = {
        path: ingot_runtime.load(path, threads=threads, executor="vm", verify="code")
        for path in (usual, *bundles.values())
    }
    least: dict[str, dict[int, float]] = {path: {} for path in sessions}
    for _ in range(rounds):
        for path, session in sessions.items():
            session.run(dict(feed))
            for ordinal, _, seconds in session.trace():
                before = least[path].get(ordinal, seconds)
                least[path][ordinal] = min(seconds, before)
    for session in sessions.values():
        session.close()
    layers = {path: _layers(path, times) for path, times in least.items()}
    found = (tuned_layer(node, timed, layers, bundles) for node, timed in layers[usual].items())
    return tuple(layer for layer in found if len(layer.seconds) > 1)


def _layers(path: str, seconds: Mapping[int, float]) -> dict[str, TimedLaunch]:
    """The launches of products that have a method, by the name of their node; one that takes several
    takes their time."""
    (launches,) = describe_bundle(path)["debug"]["launches"].values()
    found: dict[str, TimedLaunch] = {}
    for ordinal, launch in enumerate(launches):
        for name, op in launch["nodes"] if launch["kind"] in METHODS and ordinal in seconds else ():
            if op in _PRODUCTS and name:
                before = found[name].seconds if name in found else 0.0
                found[name] = TimedLaunch(launch["kind"], before + seconds[ordinal])
    return found


def tuned_layer(
    node: str,
    usual: TimedLaunch,
    layers: Mapping[str, Mapping[str, TimedLaunch]],
    bundles: Mapping[str, str],
) -> TunedLayer:
    """Compare what one layer took by each method with what it takes usually."""
    seconds = {usual.kind: usual.seconds}
    for method, path in bundles.items():
        timed = layers[path].get(node)
        if timed is not None and timed.kind == method:  # it can run by it
            seconds[method] = min(timed.seconds, seconds.get(method, timed.seconds))
    best = min(seconds, key=lambda method: (seconds[method], METHODS.index(method)))
    gains = seconds[usual.kind] > _GAIN_MIN * seconds[best]
    return TunedLayer(node, usual.kind, best if gains else usual.kind, seconds)

"""The delta of a model of which one layer was trained further, and what a signature adds to a load.

In: a model. Out: a line for each: bytes of the delta beside those of the layer; milliseconds that a
load takes longer with a key. Not done here: limits.

    taskset -c 1 python tests/benchmarks/bench_shipping.py MODEL.onnx [--weight NAME]

Without a name: the largest weights of at most 16 MiB.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from onnx import numpy_helper

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.c_loader import CBundle, options  # noqa: E402

import ingot  # noqa: E402
import ingot_runtime  # noqa: E402
from ingot_build_rules.tools.cli.main import main as command  # noqa: E402

LAYER_SIZE_BYTES_MAX = 16 << 20
ROUND_COUNT = 31


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--weight")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old = folder / "old.ingot"
        ingot.compile(given.model).save(old)
        _delta(old, given.model, given.weight, folder)
        _signature(old, folder)


def _delta(old: Path, model: Path, weight: str | None, folder: Path) -> None:
    """Each number of the layer moves by up to a hundredth of it, as in a step of training."""
    proto = onnx.ModelProto.FromString(model.read_bytes())
    layer = max(
        (each for each in proto.graph.initializer if weight in (None, each.name)),
        key=lambda each: (each.ByteSize() <= LAYER_SIZE_BYTES_MAX, each.ByteSize()),
    )
    values = numpy_helper.to_array(layer)
    noise = np.random.default_rng(0).uniform(0.99, 1.01, values.shape).astype(values.dtype)
    layer.CopyFrom(numpy_helper.from_array(values * noise, layer.name))
    new, delta = folder / "new.ingot", folder / "delta"
    ingot.compile(proto).save(new)
    assert command(["delta", str(old), str(new), "-o", str(delta)]) == 0
    size = delta.stat().st_size
    print(f"delta {size} bytes, {size / values.nbytes:.3f} of {layer.name} ({values.nbytes})")


def _signature(bundle: Path, folder: Path) -> None:
    secret = Ed25519PrivateKey.from_private_bytes(bytes(32))
    form = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    (folder / "key.pem").write_bytes(secret.private_bytes(*form))
    assert command(["sign", str(bundle), "--key", str(folder / "key.pem")]) == 0
    key = secret.public_key().public_bytes_raw().hex()

    def in_python(keys: list[str] | None) -> AbstractContextManager[Any]:
        return ingot_runtime.load(bundle, verify="code", keys=keys)

    _report("C", lambda keys: CBundle(bundle, options("code", keys=keys or ())), key)
    _report("Python, with cryptography", in_python, key)
    known = sys.modules.pop("cryptography")  # the loader asks it if it was imported
    _report("Python alone", in_python, key)
    sys.modules["cryptography"] = known


def _report(
    what: str, load: Callable[[list[str] | None], AbstractContextManager[Any]], key: str
) -> None:
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * ROUND_COUNT):
        with_key = number % 2 == 1
        started = time.process_time()
        loaded = load([key] if with_key else None)
        times[with_key].append(time.process_time() - started)
        with loaded:
            pass
    without, asked = (statistics.median(times[each]) * 1e3 for each in (False, True))
    print(f"{what}: a load takes {without:.2f} ms, with a key {asked - without:.2f} ms more")


if __name__ == "__main__":
    main()

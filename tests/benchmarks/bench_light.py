"""Compile time and memory of the ``onnx`` package's light models: as shipped and with generated
weights.

In: names, or none for all. Out: a table; the exit code is 1 when one takes more than 20 s, or more
memory than 2 x the f32 bytes of its parameters and 1 GB. Not done here: whether they are right
(``tests/conformance/light.py``).

    python tests/benchmarks/bench_light.py [NAME ...]
"""

from __future__ import annotations

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import take_page_option, write_section
from tests.benchmarks.process_tree import run_measured
from tests.conformance.light import NAMES, make_light, shipped_path

_SECONDS_MAX, _FACTOR, _FREE_BYTES = 20.0, 2, 1_000_000_000


def measure(
    name: str, kind: str, model: str, weights_bytes: int, work: str
) -> tuple[bool, list[str]]:
    """Compile cold, print a row; return whether it is within the limits, and a row of the page."""
    bundle, cache = os.path.join(work, "bundle.ingot"), os.path.join(work, f"cache-{name}-{kind}")
    found = run_measured(
        [sys.executable, "-m", "ingot", "compile", model, "-o", bundle, "-q", "--cache", cache]
    )
    limit_bytes = _FACTOR * weights_bytes + _FREE_BYTES
    good = found.seconds <= _SECONDS_MAX and found.peak_pss_bytes <= limit_bytes
    print(
        f"{name:14} {kind:9} {weights_bytes / 1e6:7.1f} MB  {found.seconds:5.1f} s  "
        f"{found.peak_pss_bytes / 1e6:7.0f} MB (<= {limit_bytes / 1e6:.0f})  {'ok' if good else 'MISSED'}",
        flush=True,
    )
    memory = f"{found.peak_pss_bytes / 1e6:.0f} MB", f"<= {limit_bytes / 1e6:.0f} MB"
    weights = f"{weights_bytes / 1e6:.0f} MB"
    row = [f"{name}, {kind}", weights, f"{found.seconds:.1f}", f"<= {_SECONDS_MAX:.0f}", *memory]
    return good, row


def main() -> int:
    """Measure and print."""
    page = take_page_option()
    found: list[tuple[bool, list[str]]] = []
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as work:
            made = make_light(name)
            size_bytes = sum(
                len(tensor.raw_data) for tensor in made.graph.initializer if tensor.data_type == 1
            )
            path = os.path.join(work, "model.onnx")
            with open(path, "wb") as file:
                file.write(made.SerializeToString())
            found.append(measure(name, "generated", path, size_bytes, work))
            found.append(measure(name, "shipped", shipped_path(name), size_bytes, work))
    if page:
        header = ("model", "weights", "seconds", "required", "memory", "required")
        write_section(header, (row for _, row in found))
    return 0 if all(good for good, _ in found) else 1


if __name__ == "__main__":
    sys.exit(main())

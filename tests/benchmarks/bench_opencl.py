"""Command: the time of models on an OpenCL device, divided by that of the host's x86-64-v3 code;
``python tests/benchmarks/bench_opencl.py MODEL.onnx INPUTS.npz ...``.

In: pairs of a model and its inputs. Out: a line for each pair. Not done here: compiling for other
devices, limits.

Processor time of the whole process, one thread on either side, calls in turns: other work on the
machine moves it least. The driver must not have more threads: POCL_MAX_PTHREAD_COUNT=1.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.measured_page import take_page_option, write_section  # noqa: E402

import ingot  # noqa: E402
import ingot_runtime  # noqa: E402
from ingot_runtime.executor.session import Session  # noqa: E402

_ROUNDS = 15


def loaded(model: str, place: str) -> Session:
    """Every node on ``place``."""
    made = ingot.compile(
        model, targets=["x86-64-v3"], devices={"acc": "opencl"}, place={"*": place}
    )
    return ingot_runtime.load(made.to_bytes(), threads=1)


def seconds(session: Session, feed: Mapping[str, Any]) -> float:
    """Processor time of one call."""
    started = time.process_time()
    session.run(feed)
    return time.process_time() - started


def main(model: str, inputs: str) -> list[str]:
    """Measure, print one line; return a row of the page."""
    with np.load(inputs) as file:
        feed = {name: file[name] for name in file.files}
    sessions = [loaded(model, place) for place in ("host", "acc")]
    for session in sessions:
        session.run(feed)
    rounds = [[seconds(session, feed) for session in sessions] for _ in range(_ROUNDS)]
    host, device = ([row[side] for row in rounds] for side in range(2))
    ratio = statistics.median(row[1] / row[0] for row in rounds)
    print(
        f"{model}: host {1e3 * min(host):.0f} ms, opencl {1e3 * min(device):.0f} ms,"
        f" ratio of the least {min(device) / min(host):.2f}, median ratio {ratio:.2f}"
    )
    return [Path(model).stem, f"{ratio:.2f}"]


if __name__ == "__main__":
    page = take_page_option()
    rows = [main(*pair) for pair in zip(sys.argv[1::2], sys.argv[2::2], strict=True)]
    if page:
        write_section(("network", "by the host's `x86-64-v3` code"), rows)

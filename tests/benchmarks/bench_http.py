"""What HTTP adds to a call: the example service beside the same call in this process.

In: a bundle (or a model, which is compiled), its inputs. Out: a row for each server of the example;
the exit code is 1 when one fails. Not done here: throughput (``bench_service``).

    python tests/benchmarks/bench_http.py BUNDLE|MODEL.onnx INPUTS.npz [--requests N]

A call of 0.6 ms is answered in at most 1.5 ms at the median, so what is added is at most 0.9 ms. A
part of an answer that waits for an acknowledgement would add 40 ms.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.measured_page import add_page_option, write_section  # noqa: E402

import ingot_runtime  # noqa: E402
from ingot_runtime.npz import read_npz  # noqa: E402

SERVICE = ROOT / "examples" / "service"
ADDED_SECONDS_MAX = 0.9e-3
WARM_CALLS = 20


def call_seconds(bundle: str, inputs: str, count: int) -> float:
    """Return the median seconds of a call in this process."""
    session, arrays = ingot_runtime.load(bundle), read_npz(inputs)
    times: list[float] = []
    for _ in range(WARM_CALLS + count):
        start = time.perf_counter()
        session.run(arrays)
        times.append(time.perf_counter() - start)
    return statistics.median(times[WARM_CALLS:])


def http_seconds(how: str, bundle: str, inputs: str, count: int) -> float:
    """Return the median seconds of a request, by the client of the example."""
    sys.path.insert(0, str(SERVICE))
    import client

    command = [sys.executable, str(SERVICE / "serve.py"), bundle, "--port", "0", "--how", how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            url = server.stdout.readline().strip()
            body = Path(inputs).read_bytes()
            return statistics.median(client.call(url, body, WARM_CALLS + count)[WARM_CALLS:])
        finally:
            server.terminate()


def main() -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description="what HTTP adds to a call")
    parser.add_argument("bundle", help="or a model, which is compiled for this machine")
    parser.add_argument("inputs")
    parser.add_argument("--requests", type=int, default=300)
    add_page_option(parser)
    options = parser.parse_args()
    good = True
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        bundle = options.bundle
        if bundle.endswith(".onnx"):
            import ingot

            bundle = str(Path(folder, "model.ingot"))
            ingot.compile(options.bundle).save(bundle)
        alone = call_seconds(bundle, options.inputs, options.requests)
        for how in ("threads", "uvicorn"):
            served = http_seconds(how, bundle, options.inputs, options.requests)
            holds = served - alone <= ADDED_SECONDS_MAX
            told = f"call {alone * 1e3:.2f} ms, served {served * 1e3:.2f} ms"
            rows.append(
                [how, f"<= {ADDED_SECONDS_MAX * 1e3:.1f} ms", f"{(served - alone) * 1e3:.2f} ms"]
            )
            limit = f"<= {ADDED_SECONDS_MAX * 1e3:.1f} ms more"
            print(f"{how:10} {told:36} {limit:18} {'ok' if holds else 'FAILS'}")
            good &= holds
    if options.page:
        write_section(("server of the example", "required", "added to a call"), rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

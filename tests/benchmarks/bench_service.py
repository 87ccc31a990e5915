"""Eight threads on one session beside eight processes with a session each: throughput, slowest
calls, memory.

In: a bundle (or a model, which is compiled), its inputs. Out: a table; the exit code is 1 when a
row fails. Not done here: HTTP (``examples/service/client.py``), single calls
(``bench_speed_table``).

    python tests/benchmarks/bench_service.py BUNDLE|MODEL.onnx INPUTS.npz [--callers N]
    [--sessions N] [--seconds S] [--slices N]

Threads and processes run in turn, slice by slice, so that a neighbour on the machine disturbs both
alike; each pair of slices gives one ratio, and the median of these is judged. Whoever is not in its
slice sleeps. On a machine that others use, eight processes are given more of it than two threads
that run: calls per second of processor time, which are printed, too, do not depend on that.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section

import ingot_runtime
from ingot_runtime.executor.session import Session

THROUGHPUT_MIN, SLOW_MAX, GROWTH_BYTES_MAX = 0.97, 2.0, 1 << 20
_WARM_CALLS = 20


def resident_bytes() -> int:
    """Return the private memory of this process, pages of files left out."""
    with open("/proc/self/smaps_rollup") as file:
        rows = dict(line.split(":", 1) for line in file.readlines()[1:])
    return 1024 * sum(int(rows[name].split()[0]) for name in ("Private_Dirty", "Private_Clean"))


def calls_until(session: Session, inputs: dict[str, np.ndarray], end: float) -> list[float]:
    """Call again and again until that time; return the seconds of each call."""
    times: list[float] = []
    start = time.monotonic()
    while start < end:
        session.run(inputs)
        now = time.monotonic()
        times.append(now - start)
        start = now
    return times


def serve_slices(bundle: str, inputs_path: str, callers: int, sessions: int) -> None:
    """Be one of the measured processes: per line read, call for that many seconds, and tell."""
    inputs = dict(np.load(inputs_path))
    session = ingot_runtime.load(bundle, sessions=sessions)
    with ThreadPoolExecutor(callers) as threads:
        started = threading.Barrier(callers)

        def loop(end: float) -> list[float]:
            started.wait()
            return calls_until(session, inputs, end)

        for _ in range(_WARM_CALLS):
            session.run(inputs)
        print("ready", flush=True)
        for line in sys.stdin:
            before, end = time.process_time(), time.monotonic() + float(line)
            times = [each for calls in threads.map(loop, [end] * callers) for each in calls]
            gc.collect()
            told: dict[str, object] = {"times": times, "bytes": resident_bytes()}
            told["processor_seconds"] = time.process_time() - before
            print(json.dumps(told), flush=True)


class Worker:
    """A measured process."""

    def __init__(self, bundle: str, inputs: str, callers: int, sessions: int) -> None:
        command = [
            sys.executable,
            __file__,
            "--worker",
            bundle,
            inputs,
            str(callers),
            str(sessions),
        ]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready\n"

    def _line(self) -> str:
        assert self._child.stdout
        return self._child.stdout.readline()

    def start(self, seconds: float) -> None:
        """Let it call for that long."""
        assert self._child.stdin
        self._child.stdin.write(f"{seconds}\n")
        self._child.stdin.flush()

    def result(self) -> tuple[list[float], int, float]:
        """Return the seconds of each call, the bytes of memory then, seconds of processor time."""
        told = json.loads(self._line())
        return told["times"], told["bytes"], told["processor_seconds"]

    def end(self) -> None:
        """Let it end."""
        assert self._child.stdin
        self._child.stdin.close()
        self._child.wait()


def percentile(times: list[float], share: float) -> float:
    """Return the time that this share of all calls does not exceed."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def measure(
    bundle: str,
    inputs: str,
    callers: int,
    sessions: int,
    seconds: float,
    n_slices: int,
    page: bool,
) -> bool:
    """Print the table; return whether all rows hold."""
    together = Worker(bundle, inputs, callers, sessions)
    alone = [Worker(bundle, inputs, 1, 1) for _ in range(callers)]
    ratios: list[float] = []
    slow: list[float] = []
    sizes: list[int] = []
    counts, work = [0, 0], [0.0, 0.0]
    all_times: tuple[list[float], list[float]] = ([], [])
    for number in range(n_slices):
        for which in (0, 1) if number % 2 else (1, 0):
            group = (together,) if which == 0 else alone
            for worker in group:
                worker.start(seconds / n_slices)
            results = [worker.result() for worker in group]
            times = [each for calls, *_ in results for each in calls]
            work[which] += sum(seconds for *_, seconds in results)
            counts[which] = len(times)
            all_times[which].extend(times)
            if which == 0:
                sizes.append(results[0][1])
                slow.append(percentile(times, 0.99) / statistics.median(times))
        ratios.append(counts[0] / counts[1])
    for worker in (together, *alone):
        worker.end()
    for name, times in zip(
        (f"{callers} threads, {sessions} sessions", f"{callers} processes"), all_times, strict=True
    ):
        median, p99 = statistics.median(times), percentile(times, 0.99)
        rate = len(times) / seconds
        print(
            f"{name}: {rate:.1f} calls/s, median {median * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms ({p99 / median:.2f} x)"
        )
    per_work = [len(times) / seconds for times, seconds in zip(all_times, work, strict=True)]
    print(f"calls per second of processor time: {per_work[0]:.1f} and {per_work[1]:.1f}", end="")
    print(f" ({per_work[0] / per_work[1]:.3f})")
    growth = statistics.median(sizes[-3:]) - statistics.median(sizes[1:4])
    ratio, p99 = statistics.median(ratios), statistics.median(slow)
    print(
        f"slices: throughput {min(ratios):.3f} to {max(ratios):.3f}; p99 {min(slow):.2f} to {max(slow):.2f} x median"
    )
    rows = [
        ("throughput, threads to processes", f">= {THROUGHPUT_MIN}", f"{ratio:.3f}", ratio >= THROUGHPUT_MIN),
        ("p99 to median, threads", f"<= {SLOW_MAX}", f"{p99:.2f}", p99 <= SLOW_MAX),
        ("growth of memory", f"<= {GROWTH_BYTES_MAX} bytes", f"{growth:.0f}", growth <= GROWTH_BYTES_MAX),
    ]  # fmt: skip
    for what, must, measured, holds in rows:
        print(f"{what:36} {must:18} {measured:12} {'ok' if holds else 'FAILS'}")
    if page:
        header = ("what", "required", "measured")
        write_section(header, ((what, must, told) for what, must, told, _ in rows))
    return all(holds for *_, holds in rows)


def main() -> int:
    """Measure what the command line names."""
    if sys.argv[1:2] == ["--worker"]:
        serve_slices(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
        return 0
    parser = argparse.ArgumentParser(description="threads on one session beside processes")
    parser.add_argument("bundle", help="or a model, which is compiled for this machine")
    parser.add_argument("inputs")
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--sessions", type=int, default=4 * len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=60.0, help="of each of the two")
    parser.add_argument("--slices", type=int, default=12)
    add_page_option(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bundle = options.bundle
        if bundle.endswith(".onnx"):
            import ingot

            bundle = os.path.join(folder, "model.ingot")
            ingot.compile(options.bundle).save(bundle)
        good = measure(
            bundle,
            options.inputs,
            options.callers,
            options.sessions,
            options.seconds,
            options.slices,
            options.page,
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

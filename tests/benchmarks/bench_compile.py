"""Processor time of compiling some models, by that of the first one: a quantized model beside its float one.

In: ONNX files. Out: for each the least and the median of cold compilations in turns, user and
system time of the whole process tree, and ratios; the exit code is 1 where a least ratio is above
``RATIO_MAX``. Not done here: what is compiled again after a change (``bench_build``).

    chrt -r 10 taskset -c 1 python tests/benchmarks/bench_compile.py [--rounds N] FLOAT MODEL ...

Equal compilations differ by up to a half on a loaded machine, so the least of several counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, write_section

RATIO_MAX = 1.3


def compile_seconds(model: str) -> float:
    """Compile with one process and an empty cache in memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # where it is, a disk is not
        command = [sys.executable, "-m", "ingot", "compile", model, "-j", "1", "-q"]
        command += ["-o", os.path.join(folder, "m.ingot"), "--cache", os.path.join(folder, "cache")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def report(models: Sequence[str], times: Sequence[Sequence[float]]) -> float:
    """Print a line for each model; return the greatest ratio of least times."""
    least = [min(each) for each in times]
    medians = [statistics.median(each) for each in times]
    for model, low, middle in zip(models, least, medians, strict=True):
        ratios = f"{low / least[0]:.3f} {middle / medians[0]:.3f}"
        print(f"{low:7.2f} s {middle:7.2f} s  {ratios}  {model}")
    return max(least) / least[0]


def page_rows(models: Sequence[str], times: Sequence[Sequence[float]]) -> list[list[str]]:
    """One row of the page for each model: the name of its folder."""
    first = min(times[0])
    return [
        [Path(model).parent.name, f"{min(own):.2f}", f"{min(own) / first:.2f}"]
        for model, own in zip(models, times, strict=True)
    ]


def main() -> int:
    """Compile in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=6)
    add_page_option(parser)
    options = parser.parse_args()
    models: list[str] = options.models
    times: list[list[float]] = [[] for _ in models]
    for _ in range(int(options.rounds)):
        for model, own in zip(models, times, strict=True):
            own.append(compile_seconds(model))
    print("least, median, each by the first model's")
    if options.page:
        write_section(("model", "seconds, least", "by the first one"), page_rows(models, times))
    return int(report(models, times) > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())

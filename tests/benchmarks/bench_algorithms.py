"""Ops of all families over classes of shapes beside ONNX Runtime: one thread, calls in turns.

In: an interpreter with ONNX Runtime. Out: a line for each case, tables; the exit code is 1 when
a result differs, when a row is above its limit, or when the mean is. Not done here: the cases
(``sweep.families``), how one is measured (``sweep.measure``), what is known to be slower
(``sweep.known``).

    taskset -c 1 python tests/benchmarks/bench_algorithms.py [--peer-python PYTHON] [--rounds N]
    [--every N] [--families PART] [PART OF A NAME ...]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import OPS_PAGE, add_page_option, write_section
from tests.benchmarks.sweep.engine import EngineProcess
from tests.benchmarks.sweep.families.registry import FAMILIES, TOLERANCE_SCALES
from tests.benchmarks.sweep.known import known
from tests.benchmarks.sweep.making import Family, Named
from tests.benchmarks.sweep.measure import RATIO_MAX, Row, measured
from tests.benchmarks.sweep.summary import (
    HEADER,
    MEAN_MAX,
    above,
    family_rows,
    mean,
    timed,
    unexpected,
)


def chosen(options: argparse.Namespace) -> Iterator[tuple[Family, Named]]:
    """The cases that the arguments name, or each so many."""
    everything = (
        (family, case)
        for family in FAMILIES
        if options.families in family.__name__
        for case in family()
        if not options.names or any(part in case[0] for part in options.names)
    )
    return itertools.islice(everything, 0, None, options.every)


def sweep(options: argparse.Namespace) -> Iterator[Row]:
    """Measure case after case."""
    engines = [
        EngineProcess("ingot", sys.executable),
        EngineProcess("onnxruntime", options.peer_python),
    ]
    try:
        with tempfile.TemporaryDirectory() as work:
            for family, (name, make) in chosen(options):
                scale = TOLERANCE_SCALES.get(family, 1.0)
                yield measured(
                    family.__name__, name, make, engines, work, options.rounds, scale
                )  # fmt: skip
    finally:
        for engine in engines:
            engine.close()


def said(row: Row) -> str:
    """One line for one row."""
    if row.fault:
        return f"{row.name:44} {'WRONG' if row.wrong else 'no peer'}: {row.fault}"
    verdict = "" if row.ratio <= RATIO_MAX else f"above {RATIO_MAX}"
    times = f"{row.ours * 1e6:9.1f} {row.theirs * 1e6:12.1f}"
    return f"{row.name:44} {times}   {row.ratio:.2f} {verdict}".rstrip()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PART")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=int, default=1, help="one case of so many")
    parser.add_argument("--families", default="", help="a part of the names of families")
    add_page_option(parser)
    options = parser.parse_args()
    rows: list[Row] = []
    print(f"{'case':44} {'ingot us':>9} {'onnxruntime':>12}   ratio")
    for row in sweep(options):
        rows.append(row)
        print(said(row), flush=True)
    good = timed(rows)
    if not good:
        return int(any(row.wrong for row in rows))
    print("", "\t".join(HEADER), *("\t".join(line) for line in family_rows(rows)), "", sep="\n")
    for row in above(rows):
        listed = known(row.name)
        print(f"{row.ratio:.2f} {row.name}: {listed.why if listed else 'not known'}")
    for row in rows:
        if row.fault:
            print(said(row))
    if options.page:
        write_section(HEADER, family_rows(rows), OPS_PAGE)
    return int(bool(unexpected(rows)) or mean(good) > MEAN_MAX)


if __name__ == "__main__":
    sys.exit(main())

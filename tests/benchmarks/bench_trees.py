"""Boosted trees beside other libraries, each in a pair of its own: other rows in each call.

In: a folder of environments (``peers/install.py FOLDER trees``). Out: a table; the exit code is 1
where our results are wrong or a library is faster. Not done here: the models and the libraries
(``peers.trees``), how a pair is timed (``peers.pairs``).

    taskset -c 0 python tests/benchmarks/bench_trees.py --peers FOLDER [--rows N,..] [--threads N]
    [--rounds N]
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

from tests.benchmarks.measured_page import add_page_option, table, write_section
from tests.benchmarks.peers import trees
from tests.benchmarks.peers.pairs import Pair, arrays_of, relative_difference, take_turns
from tests.benchmarks.peers.registry import python_of

from ingot_build_rules.tools.view.peer import Peer

ERROR_MAX = 1e-5
THEIRS = tuple(library for library in trees.LIBRARIES if library != "ingot")
HEADER = ("trees, rows", "Ingot, us", *(f"by {library}" for library in THEIRS))


@dataclass(frozen=True, slots=True)
class Case:
    """One model's folder, and the rows of a call."""

    folder: str
    rows: int
    threads: int

    @property
    def results(self) -> str:
        """The file of the first call's results."""
        return os.path.join(self.folder, "results.npz")

    def start(self, python: str, library: str) -> Peer:
        """Open the model with a library."""
        options: Mapping[str, object] = {
            "library": library,
            "rows": self.rows,
            "results": self.results,
        }
        inputs = os.path.join(self.folder, "inputs.npz")
        return Peer(trees.__file__, python, self.folder, inputs, self.threads, options)

    def distance(self) -> float:
        """How far the results of who was started last are from what the model's own library
        says."""
        (found,) = arrays_of(self.results).values()
        (wanted,) = arrays_of(os.path.join(self.folder, "outputs.npz")).values()
        return relative_difference(found, wanted[: self.rows])


def pairs(case: Case, python: str, rounds: int) -> Iterator[Pair]:
    """Beside each library that can open the model."""
    ours = partial(case.start, sys.executable, "ingot")
    for library in trees.MODELS[os.path.basename(case.folder)]:
        theirs = partial(case.start, python, library)
        yield take_turns(library, theirs, ours, case.distance, rounds)


def said(pair: Pair) -> str:
    """One line of the terminal."""
    times = f"{pair.ours * 1e6:.2f} by {pair.theirs * 1e6:.2f} us = {pair.ratio:.3f}"
    return f"{pair.engine:12} {pair.failure or f'{times}, its error {pair.error:.1e}'}"


def cells(name: str, found: Sequence[Pair]) -> list[str]:
    """One row of the page; a cell is empty where a library cannot open such a model."""
    ours = min((pair.ours for pair in found if not pair.failure), default=math.nan)
    ratios = {pair.engine: pair.cell() for pair in found}
    return [name, f"{ours * 1e6:.1f}", *(ratios.get(library, "") for library in THEIRS)]


def made(folder: str, python: str) -> None:
    """Train the models where they are not there."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    if not all(os.path.exists(os.path.join(folder, name, "outputs.npz")) for name in trees.MODELS):
        command = [python, "-P", "-m", "tests.benchmarks.peers.trees", folder]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": root}, check=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", required=True)
    parser.add_argument("--rows", type=lambda text: [*map(int, text.split(","))], default=[1, 1000])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    add_page_option(parser)
    options = parser.parse_args()
    python = python_of(options.peers, "trees")
    folder = os.path.join(options.peers, "trees", "made")
    made(folder, python)
    lines: list[list[str]] = []
    good = True
    for name in trees.MODELS:
        place = os.path.join(folder, name)
        model, bundle = (os.path.join(place, file) for file in ("model.onnx", "model.ingot"))
        command = [sys.executable, "-m", "ingot", "compile", model, "-o", bundle, "-q"]
        subprocess.run(command, check=True)
        for rows in options.rows:
            case = Case(place, rows, options.threads)
            with case.start(sys.executable, "ingot"):
                good &= case.distance() <= ERROR_MAX
            found: list[Pair] = []
            for pair in pairs(case, python, options.rounds):
                found.append(pair)
                print(f"{name}, {rows}: {said(pair)}", flush=True)
                good &= pair.ratio < 1 or bool(pair.failure)
            lines.append(cells(f"{name}, {rows}", found))
    print(table(HEADER, lines))
    if options.page:
        write_section(HEADER, lines)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

"""Mutants of a bundle by the thousand, each given to a reader: refused in the loader's words, or
right; never anything else.

In: a bundle, a count, a seed. Out: how each case ended; exit code 1 if any ended badly. Not done
here: the changes (``mutations``).
``python -m tests.hostile.mutants BUNDLE --count 10000 --seed 1 --first 0``

Cases run in child processes, so that a crash is seen and a case that never ends can be ended. Each
case depends on bundle, seed and number alone, so any range of them can be run again.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from tests.hostile.mutations import Mutant, mutant
from tests.hostile.reseal import Parts

import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_artifacts.inspect.diff import diff_bundles
from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
from ingot_build_rules.tools.cli import inspect
from ingot_build_rules.tools.reproduce.bundle_record import read_record
from ingot_compiler.ir.errors import VerificationError
from ingot_runtime.executor.session import Session
from ingot_runtime.format.describe import describe_source, lines_of
from ingot_runtime.format.source import open_file
from ingot_runtime.json_output import json_line

_BATCH = 5000
_FILES = 16
_SECONDS_WITHOUT_A_CASE = 120.0
_SYMBOL_SIZE = 3
_RIGHT = frozenset(
    ("FormatError", "DigestError", "NotABundleError", "VersionError", "IncompatibleError")
)

Outputs = list[npt.NDArray[np.generic]]
Results = dict[tuple[str, str, str], list[int]]
"""(change, reader, result) -> numbers of cases."""


def is_bad(result: str) -> bool:
    """Tell whether a case ended in a way that it must not."""
    return result not in ("equal", "read") and result not in _RIGHT


def run_positions(session: Session) -> Outputs:
    """Run on inputs that depend on positions, not on names."""
    rng = np.random.default_rng(1)
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for spec in session.inputs:
        sizes = [dim if isinstance(dim, int) else _SYMBOL_SIZE for dim in spec.shape]
        arrays[spec.name] = np.asarray(rng.integers(0, 2, sizes)).astype(spec.dtype)
    return list(session.run(arrays).values())


class Readers:
    """All ways to read a file; ``original``: the bundle that it is a mutant of, with all before its
    weights."""

    def __init__(self, original: str, prefix: bytes) -> None:
        """Run every variant that this machine can run, for comparison."""
        self._path = original
        self._prefix = prefix
        self._expected: list[Outputs] = []
        for variant in describe_bundle(original)["variants"]:
            with contextlib.suppress(ingot_runtime.IncompatibleError):
                self._expected.append(
                    run_positions(ingot_runtime.load(original, variant=variant["target"]))
                )
        self._readers: dict[str, Callable[[], None]] = {
            "verify": lambda: void(verify_whole_bundle(self._path)),
            "inspect": self._inspect,
            "device": self._device,
            "diff": lambda: void(
                diff_bundles(self._path, original), diff_bundles(original, self._path)
            ),
        }

    def read(self, path: str, made: Mutant, rng: random.Random) -> tuple[str, str]:
        """Give the file at `path` to a reader that the generator chooses; return (reader,
        result)."""
        self._path = path
        if made.may_run and rng.random() < 0.6:
            executor, threads = rng.choice(("aot", "vm")), rng.choice((1, 2, 4))
            verify = rng.choice(("full", "fast") if made.patches else ("full", "fast", "code"))
            return f"{executor} {threads} {verify}", self._outcome(
                lambda: self._run(executor, threads, verify)
            )
        name = rng.choice(list(self._readers))
        result = self._outcome(lambda: self._readers[name]() or "read")
        is_other = made.prefix != self._prefix or bool(made.patches) or made.size_change != 0
        missed = name == "verify" and result == "read" and is_other and not made.is_consistent
        return name, "accepted" if missed else result

    def _outcome(self, read: Callable[[], str]) -> str:
        try:
            return read()
        except ingot_runtime.BundleError as error:
            return type(error).__name__
        except Exception as error:
            return f"foreign {type(error).__name__}: {error}".replace("\n", " ")

    def _run(self, executor: str, threads: int, verify: str) -> str:
        with ingot_runtime.load(
            self._path, threads=threads, verify=verify, executor=executor
        ) as session:
            got = [(each.dtype, each.shape, each.tobytes()) for each in run_positions(session)]
        wanted = (
            [(each.dtype, each.shape, each.tobytes()) for each in outputs]
            for outputs in self._expected
        )
        return "equal" if got in wanted else "wrong"

    def _inspect(self) -> None:
        described = describe_bundle(self._path)
        inspect.description_lines(described)
        inspect.fusion_lines(described["debug"])
        json_line(
            {
                **described,
                "debug": {
                    key: each for key, each in described["debug"].items() if key != "programs"
                },
            }
        )
        with contextlib.suppress(VerificationError):
            read_record(described, self._path)

    def _device(self) -> None:
        source = open_file(self._path)
        try:
            lines_of(describe_source(source))
        finally:
            source.close()


def void(*_: object) -> None:
    """Take results that nobody looks at."""


class WorkFile:
    """A copy of a bundle that becomes one mutant after the other; its weights are written once."""

    def __init__(self, path: str, original: str, parts: Parts) -> None:
        with open(original, "rb") as source, open(path, "wb") as target:
            while chunk := source.read(1 << 20):
                target.write(chunk)
        self._fd = os.open(path, os.O_RDWR)
        self._parts = parts
        self._at = parts.weights_at
        self._undo: list[tuple[int, bytes]] = []

    def write(self, made: Mutant) -> bool:
        """Make the file the mutant; False: the weights would have to move, and are too many."""
        fd, parts = self._fd, self._parts
        if len(made.prefix) != parts.weights_at and not parts.is_small:
            return False
        for at, data in self._undo:
            os.pwrite(fd, data, at)
        size_bytes = len(made.prefix) + parts.weights_size_bytes
        if len(made.prefix) != self._at or os.fstat(fd).st_size < size_bytes:
            self._write_weights(len(made.prefix), size_bytes)
        os.pwrite(fd, made.prefix, 0)
        os.ftruncate(fd, size_bytes)
        self._undo = []
        for offset, mask in made.patches:
            at = len(made.prefix) + offset
            old = os.pread(fd, len(mask), at)
            self._undo.append((at, old))
            os.pwrite(fd, bytes(one ^ other for one, other in zip(old, mask, strict=True)), at)
        if made.size_change > 0:
            os.pwrite(fd, b"\1" * made.size_change, size_bytes)
        elif made.size_change < 0:
            cut = max(0, size_bytes + made.size_change)
            if not parts.is_small:
                kept = max(cut, len(made.prefix))
                self._undo.append((kept, os.pread(fd, size_bytes - kept, kept)))
            os.ftruncate(fd, cut)
            self._at = self._at if not parts.is_small else -1
        return True

    def _write_weights(self, at: int, size_bytes: int) -> None:
        if self._parts.is_small:
            os.pwrite(self._fd, self._parts.weights, at)
            self._at = at
        os.ftruncate(self._fd, size_bytes)


def run_batch(bundle: str, first: int, count: int, seed: int, report: str) -> None:
    """Run cases in this process; a line goes to the file `report` when a case begins, and one when
    it ends."""
    with open(bundle, "rb") as file:
        parts = Parts(file.read())
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        open(report, "w", encoding="utf-8") as lines,
    ):
        # Who opens a file that was written just now waits for the clock's next tick: several files
        # wait together.
        paths = [
            os.path.join(folder, f"{index}.ingot")
            for index in range(_FILES if parts.is_small else 1)
        ]
        files, readers = (
            [WorkFile(path, bundle, parts) for path in paths],
            Readers(bundle, parts.prefix()),
        )
        for start in range(first, first + count, len(files)):
            numbers = range(start, min(start + len(files), first + count))
            made = [mutant(parts, number, seed) for number in numbers]
            written = [file.write(case[1]) for file, case in zip(files, made, strict=False)]
            for number, path, (name, case, rng), is_there in zip(
                numbers, paths, made, written, strict=False
            ):
                print(number, file=lines, flush=True)
                reader, result = readers.read(path, case, rng) if is_there else ("none", "equal")
                print(number, name, reader, result, sep="\t", file=lines, flush=True)


def run_cases(bundle: str, count: int, seed: int = 0, first: int = 0) -> Results:
    """Run `count` cases in child processes; a crash, or a case without end, costs its own case
    only."""
    results: Results = collections.defaultdict(list)
    number, end = first, first + count
    while number < end:
        for case, name, reader, result in _child(bundle, number, min(_BATCH, end - number), seed):
            results[name, reader, result].append(case)
            number = case + 1
    return dict(results)


def _child(bundle: str, first: int, count: int, seed: int) -> Iterator[tuple[int, str, str, str]]:
    """Run a batch in a child; a case that began and did not end is the one that killed it."""
    with tempfile.TemporaryDirectory(prefix="mutants-report-") as folder:
        report, errors = os.path.join(folder, "report"), os.path.join(folder, "errors")
        arguments = [bundle, "--batch", str(first), str(count), report, "--seed", str(seed)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        with open(errors, "wb") as stderr:
            child = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), *arguments],
                env=environment,
                stderr=stderr,
            )
            ending = _watched(child, report)
        with open(report, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        with open(errors, encoding="utf-8", errors="replace") as file:
            ending = ending and f"{ending}: {file.read()[-300:]}"
    if ending and not lines:
        raise RuntimeError(f"no case ran: {ending}")
    for line in lines:
        if len(line) == 4:
            yield int(line[0]), line[1], line[2], line[3]
    if ending and len(lines[-1]) == 1:
        yield int(lines[-1][0]), "?", "?", ending


def _watched(child: subprocess.Popen[bytes], report: str) -> str:
    """Wait for the child as long as it gets anywhere; return "" or how it ended."""
    seen, since = -1, time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = child.wait(1.0)
            return f"crash {code}" if code else ""
        size = os.path.getsize(report) if os.path.exists(report) else 0
        if size != seen:
            seen, since = size, time.monotonic()
        elif time.monotonic() - since > _SECONDS_WITHOUT_A_CASE:
            child.kill()
            child.wait()
            return "hang"


def bad_cases(results: Results) -> Results:
    """Return what must not be."""
    return {key: cases for key, cases in results.items() if is_bad(key[2])}


def main() -> int:
    """Parse the command line; print a table of results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--batch", nargs=3, metavar=("FIRST", "COUNT", "REPORT"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.batch:
        first, count, report = options.batch
        run_batch(options.bundle, int(first), int(count), options.seed, report)
        return 0
    started = time.monotonic()
    results = run_cases(options.bundle, options.count, options.seed, options.first)
    table: collections.Counter[tuple[str, str]] = collections.Counter()
    for (name, _, result), cases in results.items():
        table[name, result] += len(cases)
    for (name, result), number in sorted(table.items()):
        print(f"{name:20} {result:18} {number:6}")
    for (name, reader, result), cases in sorted(bad_cases(results).items()):
        print(f"BAD: {name}, {reader}: {result}, cases {cases[:10]}")
    bad = sum(map(len, bad_cases(results).values()))
    print(
        f"{options.count} mutants, {bad} bad, {options.count / (time.monotonic() - started):.0f} a second"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

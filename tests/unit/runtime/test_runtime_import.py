"""The loader imports what it needs and no more: start-up time is a contract, so the list of modules
is pinned."""

import os
import statistics
import subprocess
import sys
import time
import zlib
from pathlib import Path
from types import ModuleType

import pytest
from tests.hostile.tiny import tiny_contents, tree_entry

import ingot_runtime
import ingot_runtime_devices
from ingot_artifacts.bundle.write import write_bundle

# 3-100 ms each, or not ours.
_FORBIDDEN = (
    "argparse", "contextlib", "dataclasses", "datetime", "difflib", "enum", "hashlib", "importlib.metadata", "inspect", "json",
    "logging", "msgpack", "numpy", "pathlib", "re", "tempfile", "threading", "typing", "zipfile",
)  # fmt: skip
_AFTER_IMPORT = {
    "ingot_runtime",
    "ingot_runtime.errors",
    "ingot_runtime.ingot_error",
    "ingot_runtime.printable",
}
_STANDARD_AFTER_LOAD = {
    "atexit", "ctypes", "ctypes._endian", "errno", "fcntl", "genericpath", "itertools", "math", "mmap", "os", "os.path", "posixpath",
    "stat", "struct", "types", "weakref",
}  # fmt: skip


def modules_after(text: str, *arguments: str) -> set[str]:
    """Return what a script has imported beyond a bare interpreter that has run nothing."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    lists: list[set[str]] = []
    for script in ("", text):
        # -S: what site imports (editable installations) is not the loader's.
        code = f"import sys\n{script}\nprint(*sorted(sys.modules))"
        done = subprocess.run(
            [sys.executable, "-S", "-c", code, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        lists.append(set(done.stdout.split()))
    return lists[1] - lists[0]


def test_import() -> None:
    """``import ingot_runtime`` brings its errors, and what makes them fit to print."""
    assert modules_after("import ingot_runtime") == _AFTER_IMPORT


def test_load(tmp_path: Path) -> None:
    """``load`` brings ctypes, mmap and a few built-in modules; neither numpy nor any of the slow
    ones."""
    write_bundle(tiny_contents(), tmp_path / "m.ingot", tree_entry)
    text = "import ingot_runtime\ns = ingot_runtime.load(sys.argv[1])"
    # What ctypes and the like import themselves differs between versions of Python.
    basis = modules_after("import ctypes, fcntl, math, mmap, os, struct, weakref")
    found = modules_after(text, str(tmp_path / "m.ingot")) - basis
    assert found.isdisjoint(_FORBIDDEN)
    foreign = {
        name for name in found if name.split(".")[0] != "ingot_runtime" and not name.startswith("_")
    }
    assert foreign <= _STANDARD_AFTER_LOAD


@pytest.mark.slow
def test_import_time() -> None:
    """``import ingot_runtime`` costs at most 25 ms more than ``pass`` (medians of 15)."""

    def median(code: str) -> float:
        times: list[float] = []
        for _ in range(15):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    assert median("import ingot_runtime") - median("pass") <= 0.025


def test_sources_are_small() -> None:
    """Deflated, the loader's sources stay below 160 KiB (its wheel has 17 kB more: metadata,
    licence and the archive itself), those for devices beside the host below 34.5 kB: 24 for
    OpenCL and the devices that are processors, 6 for CUDA, 3 for copies that begin early, a half to
    find out whether a driver works.

    It was 89 kB until sessions took several callers: the queue, the contexts and async calls need 8
    kB. Then came types of ``ml_dtypes``, what notebooks show, the text of a device, which compiling
    and binding read alike, defaults of inputs, sequences with their states (7 kB), code of several
    kinds for a device (1 kB), and values that are no tensors (7 kB, imported where a bundle has
    some), signatures (8 kB, imported where keys are given), selftest, install and apply (10 kB,
    imported by these verbs), data classes that are made in a tenth of the time (2 kB; a load takes
    a tenth less), weights that lie in another bundle (3 kB, imported where they do), and those that
    are swapped between calls (3 kB, imported then), deltas that are believed by their signatures,
    numbers of signatures and files behind no link (4 kB, imported by the verbs), sizes and missing
    inputs that are told at once (1 kB), arrays of .npz files read by any thread (1 kB), references
    to options, and one evaluator of programs for the loader, C source and reports (1.5 kB), names
    of the field (0.3 kB), the choice among variants for classes of processors (0.4 kB).
    """

    def deflated_bytes(package: ModuleType) -> int:
        files = sorted(Path(str(package.__file__)).parent.rglob("*.py"))
        return sum(len(zlib.compress(file.read_bytes())) for file in files)

    assert 0 < deflated_bytes(ingot_runtime) < 163_840
    assert 0 < deflated_bytes(ingot_runtime_devices) < 34_500

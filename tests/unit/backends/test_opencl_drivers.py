"""Drivers of OpenCL that are not there or do not work: both loaders find it out before a call, say
which and what to do, or take the device's next kind; tests that need one are listed as not run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import opencl_drivers
from tests.unit.backends.test_opencl_models import chain
from tests.unit.runtime.test_c_devices import bundle_of, opencl_code

import ingot
from ingot_compiler.backends.host.zig import run_zig
from ingot_runtime_devices.opencl_build import BUILDER

ROOT = Path(__file__).parents[3]
BROKEN = Path(__file__).parents[1] / "c_programs" / "broken_opencl.c"
NONE = "/none/driver.so"
# Loads in a process of its own: drivers are opened once, and may end it.
_LOAD = """
import json, os, sys
import ingot_runtime
from ingot_runtime_devices import opencl
from tests.c_loader import CBundle, LoaderError, find_opencl, options
find_opencl()
path, devices = sys.argv[1], json.loads(sys.argv[2])
told = []
try:
    with ingot_runtime.load(path, devices=devices) as session:
        told.append(session.devices)
except ingot_runtime.BundleError as error:
    told.append([type(error).__name__, error.what, error.where, error.why, error.do])
if not os.environ.get("BROKEN_OPENCL"):
    try:
        with CBundle(path, options(devices=devices)) as loaded:
            told.append(loaded.devices)
    except LoaderError as error:
        verdict = error.verdict
        told.append([verdict.kind, verdict.what, verdict.where, error.why, error.todo])
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a driver that compiles nothing."""
    folder = tmp_path_factory.mktemp("driver")
    for command in (
        ("cc", "-target", "x86_64-linux-gnu", "-O1", "-fPIC", "-fno-sanitize=all", "-Wall", "-Werror",
         "-c", str(BROKEN), "-o", "a.o"),
        ("ld.lld", "-shared", "a.o", "-o", "broken.so"),
    ):  # fmt: skip
        done = run_zig(command, str(folder))
        assert done.returncode == 0, done.stderr
    return str(folder / "broken.so")


def told(path: Path, drivers: str, mode: str = "", **devices: str) -> list[Any]:
    """What the loader in Python says of a bundle where these drivers are, then the one in C."""
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, str(path), json.dumps(devices)],
        cwd=ROOT,
        env={
            **os.environ,
            "OCL_ICD_VENDORS": drivers,
            "OCL_ICD_PLATFORM_SORT": "none",
            "BROKEN_OPENCL": mode,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: list[Any] = json.loads(done.stdout)
    return result


@pytest.mark.broad
def test_a_driver_that_compiles_nothing(broken: str, tmp_path: Path) -> None:
    """Both loaders name driver, its compiler's error, and drivers that work on other processors."""
    verdicts = told(bundle_of(tmp_path, opencl_code()), broken)
    for kind, what, where, why, do in verdicts:
        assert (kind, where) == ("IncompatibleError", "section library 0")
        assert what == "the driver of opencl:0 does not work here"
        assert why == "generic, OpenCL 1.2 broken: error: unknown target CPU 'generic'"
        assert "apt install pocl-opencl-icd" in do
        assert "pip install intel-opencl-rt intel-cmplr-lib-rt" in do
    assert len(verdicts) == 2


@pytest.mark.broad
def test_a_driver_whose_compiler_ends_the_process(broken: str, tmp_path: Path) -> None:
    """In Python it is a process of its own that ends, which the next library starts again."""
    ((_, what, _, why, _),) = told(bundle_of(tmp_path, opencl_code()), broken, "crash")
    assert what == "the driver of opencl:0 does not work here"
    assert why.endswith("broken: its compiler ended with code -6 at a kernel of one line")


def test_no_driver(tmp_path: Path) -> None:
    """Both say what to install."""
    verdicts = told(bundle_of(tmp_path, opencl_code()), NONE)
    for kind, what, _, _, do in verdicts:
        assert (kind, what) == ("IncompatibleError", "device 'acc' needs an OpenCL driver")
        assert "apt install pocl-opencl-icd" in do
    assert len(verdicts) == 2


@pytest.mark.sweep(60)
@pytest.mark.parametrize("is_there", [False, True])
def test_the_next_kind_is_taken(is_there: bool, broken: str, tmp_path: Path) -> None:
    """A device that may be another kind is that one where the driver is not there, or does not
    work."""
    path = tmp_path / "m.ingot"
    ingot.compile(
        chain(), targets=["x86-64-v2"], devices={"acc": "opencl|cpu:1"}, place={"/second/*": "acc"}
    ).save(path)
    bound = {"host": "host:0", "acc": "cpu:1"}
    assert told(path, broken if is_there else NONE) == [bound, bound]


@pytest.mark.broad
@pytest.mark.opencl
def test_a_device_that_works_beside_one_that_does_not(broken: str, tmp_path: Path) -> None:
    """What to do is to take it, whichever comes first; both loaders run there."""
    chosen = opencl_drivers.choose(0)
    for name, library in (("a", broken), ("b", chosen.library)):
        (tmp_path / f"{name}.icd").write_text(library)
    path = bundle_of(tmp_path, opencl_code())
    ends = ("opencl:0", f"opencl:{chosen.device_count}")
    found = {bound: told(path, str(tmp_path), acc=bound) for bound in ends}
    ((bad, verdicts),) = [pair for pair in found.items() if isinstance(pair[1][0], list)]
    (good,) = {*ends} - {bad}
    for _, what, _, _, do in verdicts:
        assert what == f"the driver of {bad} does not work here"
        assert do == f"map it: --device acc=opencl:{int(bad == 'opencl:0')}"
    assert [dict(devices)["acc"] for devices in found[good]] == [good, good]


@pytest.mark.broad
def test_those_that_work_come_first(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver is tried by what it compiles, with its reason, wherever it is named."""
    monkeypatch.setenv("OCL_ICD_VENDORS", broken)
    found = opencl_drivers.find_drivers()
    (driver,) = [each for each in found if each.library == broken]
    assert driver.why == "error: unknown target CPU 'generic'"
    assert [bool(each.why) for each in found] == sorted(bool(each.why) for each in found)


_OF_TESTS = """
import pytest

def test_here():
    pass

@pytest.mark.opencl
@pytest.mark.parametrize("number", [1, 2, 3])
def test_there(number):
    raise AssertionError
"""


@pytest.mark.broad
@pytest.mark.parametrize("processes", [(), pytest.param(("-n", "2"), marks=pytest.mark.broad)])
def test_what_needs_a_driver_is_listed_as_not_run(
    tmp_path: Path, processes: tuple[str, ...]
) -> None:
    """Neither red nor silently green, in one process and in several; where it is asked for, no
    driver is an error."""
    (tmp_path / "conftest.py").symlink_to(ROOT / "tests" / "conftest.py")
    (tmp_path / "test_some.py").write_text(_OF_TESTS)
    why = "generic: error: unknown target CPU"
    what = "3 tests that need an OpenCL driver that works"
    options = ["-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(ROOT), *processes]
    for more, code, words in (
        ((), 0, f"NOT RUN: {what}: {why}; do: {opencl_drivers.DO}"),
        (("--require-opencl",), 4, f"no OpenCL driver that works: {why}"),
    ):
        done = subprocess.run(
            [*command, *more, str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "INGOT_TESTED_DRIVER": json.dumps([NONE, "", 0, why])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert words in done.stdout + done.stderr


def test_a_test_that_does_not_say_so() -> None:
    """One that opens a device and is not marked fails where a driver works, too."""
    with pytest.raises(AssertionError, match="mark it"):
        BUILDER.failure_of(0)

"""Drivers that fail at any call: the loader in C refuses a load or ends a call, gives back what it
has of the driver, and writes no more into the caller's memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.c_loader import CBundle, LoaderError, find_opencl
from tests.hostile.two_devices import two_device_reference
from tests.unit.runtime.test_c_devices import (
    FAKE,
    X,
    bundle_of,
    cuda_code,
    opencl_code,
)

from ingot_compiler.backends.host.zig import run_zig

FAILING = FAKE.with_name("failing_opencl.c")
PAIRS = {
    "cuda": (
        ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"), ("cuMemAlloc_v2", "cuMemFree_v2"),
        ("cuStreamCreate", "cuStreamDestroy_v2"), ("cuEventCreate", "cuEventDestroy_v2"),
        ("cuMemAllocHost_v2", "cuMemFreeHost"), ("cuModuleLoadData", "cuModuleUnload"),
        ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"),
    ),
    "opencl": (
        ("clCreateBuffer", "clReleaseMemObject"), ("clCreateKernel", "clReleaseKernel"),
        ("clCreateProgramWithSource", "clReleaseProgram"), ("clCreateContext", "clReleaseContext"),
        ("clCreateCommandQueue", "clReleaseCommandQueue"),
    ),
}  # fmt: skip
"""What makes something, and what gives it back."""
NEVER_FAILS = ("cuCtxPopCurrent_v2",)  # the driver that stands in has no other context below
NOTHING_ENDS_BEHIND = ("cuCtxPushCurrent_v2",)
KINDS = {"", "DeviceError", "IncompatibleError", "ResourceError"}


@dataclass(frozen=True)
class Driver:
    """``prefix``: of the variables that it reads."""

    kind: str
    prefix: str
    calls_path: Path
    say: Callable[[str, str], None]

    def fail(self, name: str, left: int) -> None:
        """Let a call fail when it was made so many times."""
        self.calls_path.write_bytes(b"")
        self.say(f"{self.prefix}_FAILS", name)
        self.say(f"{self.prefix}_LEFT", str(left))

    def calls(self) -> Counter[str]:
        """What it was asked since then."""
        return Counter(self.calls_path.read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drivers")
    flags = ("-target", "x86_64-linux-gnu", "-O1", "-fPIC", "-ffp-contract=off")
    for source in (FAKE, FAILING):
        for command in (
            ("cc", *flags, "-fno-sanitize=all", "-Wall", "-Werror", "-c", str(source), "-o", "a.o"),
            ("ld.lld", "-shared", "a.o", "-o", f"{source.stem}.so"),
        ):
            done = run_zig(command, str(folder))
            assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(params=["cuda", pytest.param("opencl", marks=pytest.mark.opencl)])
def driver(
    request: pytest.FixtureRequest, drivers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Driver:
    if request.param == "cuda":
        monkeypatch.setenv("INGOT_CUDA_LIBRARY", str(drivers / f"{FAKE.stem}.so"))
        made = Driver("cuda", "FAKE_CUDA", tmp_path / "calls", monkeypatch.setenv)
    else:
        find_opencl()
        real = os.environ.get("INGOT_OPENCL_LIBRARY", "libOpenCL.so.1")
        monkeypatch.setenv("FAILING_OPENCL_REAL", real)
        monkeypatch.setenv("INGOT_OPENCL_LIBRARY", str(drivers / f"{FAILING.stem}.so"))
        made = Driver("opencl", "FAILING_OPENCL", tmp_path / "calls", monkeypatch.setenv)
    monkeypatch.setenv(f"{made.prefix}_CALLS", str(made.calls_path))
    return made


def one_run(path: Path) -> tuple[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """Load, call and unload; return the kind of error, and what the output's memory has, which is
    filled with ones when the call has ended."""
    got = np.zeros_like(X)
    try:
        with CBundle(path) as loaded:
            loaded.set_input(0, X)
            loaded.set_output(0, got)
            try:
                loaded.call()
                assert (got == two_device_reference(X)).all()
            finally:
                got[:] = 1
    except LoaderError as error:
        return error.verdict.kind, got
    return "", got


@pytest.mark.sweep(60)
@pytest.mark.parametrize("early", [0, 1])
def test_a_driver_may_fail_at_any_call(tmp_path: Path, driver: Driver, early: int) -> None:
    """Each function at its first, middle and last call, in loads, calls and unloads; in calls with a
    copy that begins early."""
    code = cuda_code() if driver.kind == "cuda" else opencl_code()
    path = bundle_of(tmp_path, code, early=early, grows=1)
    driver.fail("none", 0)
    assert one_run(path)[0] == ""
    kinds: set[str] = set()
    for name, count in driver.calls().items():
        for left in () if name in NEVER_FAILS else sorted({0, count // 2, count - 1}):
            driver.fail(name, left)
            kind, got = one_run(path)
            kinds.add(kind)
            assert (got == 1).all() or not got.any(), (name, left)
            asked = driver.calls()
            for made, ended in PAIRS[driver.kind]:
                skipped = name in (made, ended, *NOTHING_ENDS_BEHIND)
                assert skipped or asked[made] == asked[ended], (name, left, made)
    assert {"", "DeviceError", "IncompatibleError"} <= kinds <= KINDS


def test_both_queues_are_waited_for(tmp_path: Path, driver: Driver) -> None:
    """Of OpenCL: a copy of the second one may still write where the first has failed."""
    if driver.kind == "opencl":
        path = bundle_of(tmp_path, opencl_code(), early=1)
        driver.fail("clFinish", 0)
        assert one_run(path)[0] == "DeviceError"
        assert driver.calls()["clFinish"] == 6  # of the call, of the loss, of the unload

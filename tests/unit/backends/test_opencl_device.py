"""What an OpenCL device refuses, and what is left when its driver fails: an error by name, and a
process that goes on."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import pytest
from tests.conformance.test_devices import Scale, open_opencl, opencl_library
from tests.harness.opencl_harness import open_library

import ingot_runtime
from ingot_compiler.backends.opencl.read_target import read_target
from ingot_compiler.ir.errors import UserError
from ingot_runtime_devices import opencl
from ingot_runtime_devices.opencl_build import BUILDER, Builder
from ingot_runtime_devices.opencl_library import HEAD, read_library

if TYPE_CHECKING:
    from ingot_runtime_devices.device import Device

SECTION = opencl_library()


def refused(section: bytes, kernel_count: int = 3, id_: int = 0) -> ingot_runtime.BundleError:
    """The error of opening a library; it has four parts."""
    with pytest.raises(ingot_runtime.BundleError) as caught:
        open_library(section, kernel_count, id_)
    assert all((caught.value.where, caught.value.why, caught.value.do))
    return caught.value


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "pyopencl", None)  # makes the import fail
    error = refused(SECTION)
    assert isinstance(error, ingot_runtime.IncompatibleError)
    assert "pip install pyopencl" in error.do


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """No platform at all: the error says what to install."""

    def none() -> list[Any]:
        raise cl.LogicError("PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", none)
    error = refused(SECTION)
    assert "PLATFORM_NOT_FOUND_KHR" in error.why
    assert "apt install pocl-opencl-icd" in error.do
    assert "pip install intel-opencl-rt" in error.do


@pytest.mark.opencl
def test_no_such_device() -> None:
    """The error lists the devices that there are."""
    error = refused(SECTION, id_=7)
    assert isinstance(error, ingot_runtime.IncompatibleError)
    assert "wants opencl:7; there are: opencl:0 (" in error.why
    assert error.do.startswith("map it: --device ")
    assert error.do.endswith("=opencl:0")


@pytest.mark.opencl
def test_an_extension_that_the_device_lacks() -> None:
    """It is named."""
    error = refused(SECTION.replace(HEAD.encode(), f"{HEAD} cl_khr_none".encode(), 1))
    assert error.why.endswith("lacks cl_khr_none")


@pytest.mark.parametrize(
    ("section", "kernel_count", "why"),
    [
        (b"", 0, "expected"),
        (SECTION, 2, "expected 2 kernels, got 3"),
        (SECTION.replace(b"\n\n\n", b"\n", 1), 3, "expected 3 kernels"),
        (SECTION.replace(b"refuses 3", b"refuses x", 1), 3, "got 2"),
        (SECTION.replace(b"refuses 3", b"fails 3", 1), 3, "two kernels of one name"),
        (SECTION + b"\xff", 3, "ordinal not in range"),
        (SECTION.replace(b"library 1", b"library 1 x", 1), 3, "expected"),
    ],
)
def test_a_damaged_library(section: bytes, kernel_count: int, why: str) -> None:
    """Each is refused before any driver sees it."""
    error = refused(section, kernel_count)
    assert isinstance(error, ingot_runtime.FormatError)
    assert why in error.why


@pytest.mark.opencl
def test_source_that_does_not_compile() -> None:
    """The driver's first errors are in ours."""
    error = refused(SECTION.replace(b"__global float *y", b"__global flat *y"))
    assert isinstance(error, ingot_runtime.IncompatibleError)
    assert "unknown type name 'flat'" in error.why


@pytest.mark.opencl
def test_a_process_that_compiles_and_ends() -> None:
    """It is started again, and the next library compiles."""
    builder: Any = Builder()
    builder.prove(0, read_library(SECTION, 3, "here"), "here")
    process = builder._running()
    process.kill()
    process.wait()
    other = SECTION + b"\n"
    builder.prove(0, read_library(other, 3, "here"), "here")
    assert builder._running() is not process
    builder.close()


@pytest.mark.opencl
def test_a_library_is_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second device of a process with the same library starts nothing."""
    open_opencl(0)

    def never(_: object) -> str:
        raise AssertionError

    monkeypatch.setattr(BUILDER, "_ask", never)
    open_opencl(0)


@pytest.mark.opencl
def test_memory_that_is_not_there() -> None:
    """The error says how much was asked for and how much is free."""
    device = open_opencl(0)
    with pytest.raises(ingot_runtime.ResourceError) as caught:
        device.allocate(1 << 50)
    assert caught.value.where == f"{1 << 50} bytes"
    assert "bytes are free" in caught.value.why


@pytest.mark.parametrize("what", ["enqueue_nd_range_kernel", "enqueue_copy"])
@pytest.mark.opencl
def test_a_driver_that_fails(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """The device is lost from then on, with the driver's words; another one works."""
    device = open_opencl(0)
    scale = Scale(device)

    def fail(*_: object, **__: object) -> None:
        raise cl.RuntimeError("OUT_OF_RESOURCES")

    with monkeypatch.context() as patch:
        patch.setattr(cl, what, fail)
        for _ in range(2):
            with pytest.raises(ingot_runtime.DeviceError, match=r"lost: .*OUT_OF_RESOURCES"):
                _used(scale)
    with pytest.raises(ingot_runtime.DeviceError, match="OUT_OF_RESOURCES"):
        device.wait()
    assert Scale(open_opencl(0))() == 0


def _used(scale: Scale) -> None:
    scale()
    _read(scale.device, scale.y.address)


def _read(device: Device, address: int) -> None:
    place = np.zeros(1, np.float32)
    device.read(place.ctypes.data, address, 4)


@pytest.mark.opencl
def test_the_host_goes_on_while_the_device_works() -> None:
    """A write returns before what was queued is done; what was given may be changed at once, the
    order is kept, and nothing is held when the device is done."""
    device: Any = open_opencl(0)
    memory, numbers = device.allocate(64), np.arange(16, dtype=np.float32)
    gate = cl.UserEvent(device._context)
    cl.enqueue_barrier(device._queue, wait_for=[gate])
    device._last = gate
    for factor in (1, 2):
        given = factor * numbers
        device.write(memory.address, given.ctypes.data, given.nbytes)
        given[:] = -1
    device.write(memory.address + 60, numbers.ctypes.data, 4)
    assert len(device._staged) == 3
    gate.set_status(cl.command_execution_status.COMPLETE)
    found = np.zeros(16, np.float32)
    device.read(found.ctypes.data, memory.address, found.nbytes)
    assert found.tolist() == [*(2 * numbers[:15]), 0]
    assert (device._staged, device._staged_bytes) == ([], 0)


@pytest.mark.opencl
def test_a_device_that_is_done_needs_no_second_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while something is queued do bytes wait, and only so many of them."""
    device: Any = open_opencl(0)
    memory, numbers = device.allocate(64), np.arange(16, dtype=np.float32)
    device.wait()  # for its zeros
    device.write(memory.address, numbers.ctypes.data, numbers.nbytes)
    assert not device._staged
    monkeypatch.setattr(opencl, "_STAGED_BYTES_MAX", 100)
    gate = cl.UserEvent(device._context)
    device._last = gate
    device.write(memory.address, numbers.ctypes.data, numbers.nbytes)
    assert device._staged_bytes == 64
    device._last = gate
    device.write(memory.address, numbers.ctypes.data, numbers.nbytes)
    assert not device._staged
    gate.set_status(cl.command_execution_status.COMPLETE)


@pytest.mark.opencl
def test_a_launch_with_other_arguments() -> None:
    """A kernel gets as many buffers and scalars as its row says."""
    scale = Scale(open_opencl(0))
    buffers = [scale.y.address, scale.x.address, scale.scratch.address]
    with pytest.raises(ingot_runtime.DeviceError, match="takes 4 buffers and 1 scalars"):
        scale.device.launch(0, buffers, [64], 64, 1, 0)


@pytest.mark.opencl
def test_addresses_are_no_pointers() -> None:
    """No process can have memory where the device's addresses are."""
    made = open_opencl(0).allocate(64)
    assert made.address >> (8 * ctypes.sizeof(ctypes.c_void_p) - 17)


def test_the_target() -> None:
    """There is one, which need not be named."""
    assert str(read_target("", ())) == str(read_target("opencl-c-1.2", ())) == "opencl-c-1.2"
    with pytest.raises(UserError, match="unknown target 'sm_80'") as caught:
        read_target("sm_80", ())
    assert all((caught.value.where, caught.value.why, caught.value.do))

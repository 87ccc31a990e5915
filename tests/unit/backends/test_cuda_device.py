"""What a ``cuda`` device refuses: machines without one, libraries that are none, drivers that are
too old or fail."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable

import numpy as np
import pytest
from tests.harness import cuda_harness
from tests.ptx.fake_driver import Machine, installed
from tests.unit.backends.test_opencl_kernels import required, strided
from tests.unit.backends.test_opencl_models import FOUR, chain

import ingot
import ingot_runtime
from ingot_runtime.errors import BundleError, DeviceError, IncompatibleError, ResourceError

TARGET = "x86-64-v2"
X = np.ones((3, 12), np.float32)


@pytest.fixture(scope="module")
def library() -> bytes:
    """Two kernels for two architectures."""
    return cuda_harness.library_of([strided(), required()], "sm_75+sm_90")


@pytest.fixture(scope="module")
def bundle() -> bytes:
    """A model whose second half is on a GPU."""
    place = {f"/{block}/*": "acc" for block in FOUR[2:]}
    made = ingot.compile(chain(), targets=[TARGET], devices={"acc": "cuda"}, place=place)
    return made.to_bytes()


def test_without_pycuda(library: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package that is missing is named."""
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(IncompatibleError, match="device 'acc' needs pycuda"):
        cuda_harness.open_library(library, 2)


@pytest.mark.parametrize(
    ("machine", "id_", "words"),
    [
        (Machine(()), 0, "device 'acc' needs a CUDA driver"),
        (Machine(), 2, "no device cuda:2 here"),
        (Machine(), 2, "cuda:1 (PTX interpreter 1, sm_90)"),
        (Machine(((7, 0),)), 0, "it is code for sm_75, sm_90; PTX interpreter 0 has sm_70"),
        (
            Machine(driver_version=9020),
            0,
            "PTX 6.3 needs a driver for CUDA 10.0, this one is for 9.2",
        ),
    ],
    ids=["no GPU", "no such GPU", "what is there", "an older GPU", "an older driver"],
)
def test_machines_that_lack_something(
    library: bytes, machine: Machine, id_: int, words: str
) -> None:
    """By name, with what is there; nothing is loaded."""
    with installed(machine), pytest.raises(IncompatibleError, match=re.escape(words)):
        cuda_harness.open_library(library, 2, id_)
    assert not machine.loaded


def test_an_older_driver_takes_an_older_module(library: bytes) -> None:
    """The latest GPU under a driver that reads only the PTX of an older one."""
    machine = Machine(((9, 0),), driver_version=11000)
    with installed(machine):
        cuda_harness.open_library(library, 2)
    assert [module.target for module in machine.loaded] == ["sm_75"]


def test_a_driver_that_does_not_compile(library: bytes) -> None:
    """What the driver says of a text that it does not understand is told."""
    forged = library.replace(b"\tret;\n", b"\tret?\n")
    with (
        installed(),
        pytest.raises(IncompatibleError, match="does not compile the library") as caught,
    ):
        cuda_harness.open_library(forged, 2)
    assert "is not understood: ret?" in caught.value.why


FORGED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "another head": (lambda it: b"x" + it, "expected 'ingot cuda library 1'"),
    "no text": (lambda it: it.partition(b"\n\n")[0], "and a table"),
    "not ASCII": (lambda it: it + b"\xff", "ascii"),
    "a kernel less": (lambda it: re.sub(rb"\nk_\w+ 2 1 0 0 128\n", b"\n", it), "expected 2 kernels"),
    "a kernel twice": (
        lambda it: re.sub(rb"(\nk_\w+)( .*)\nk_\w+( .*)", rb"\1\2\1\3", it), "two kernels of one name",
    ),
    "a text that is cut": (lambda it: it[:-1], "its modules have"),
    "a longer text": (lambda it: it + b"\n", "its modules have"),
    "a newer version in the text": (
        lambda it: it.replace(b".version 6.3", b".version 9.9"), "expected '.version 6.3",
    ),
    "another GPU in the text": (
        lambda it: it.replace(b".target sm_75", b".target sm_86"), ".target sm_75",
    ),
    "a kernel that the text lacks": (
        lambda it: it.replace(b".entry k_", b".entry j_"), "and the table differ",
    ),
    "another number of buffers": (lambda it: it.replace(b" 2 1 0 0 128", b" 1 1 0 0 128"), "differ"),
    "no threads": (lambda it: it.replace(b" 0 128", b" 0 0"), "with 0 threads"),
    "too many threads": (lambda it: it.replace(b" 0 128", b" 0 2048"), "with 2048 threads"),
    "threads that are no groups": (lambda it: it.replace(b" 0 128", b" 0 12"), "with 12 threads"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FORGED))
def test_forged_libraries(library: bytes, name: str) -> None:
    """Each lie is refused before the driver sees anything."""
    forge, words = FORGED[name]
    machine = Machine()
    forged = forge(library)
    assert forged != library
    with installed(machine), pytest.raises(BundleError) as caught:
        cuda_harness.open_library(forged, 2)
    assert words in caught.value.why
    assert not machine.loaded


@pytest.mark.sweep(6)
@pytest.mark.parametrize("call", ["launch", "memcpy_htod", "memcpy_dtoh", "synchronize", "push"])
def test_a_driver_that_fails_is_lost(bundle: bytes, call: str) -> None:
    """That call ends with an error, every later one does, and the process lives; a new session
    works."""
    with installed() as machine:
        with ingot_runtime.load(bundle) as session:
            expected = session.run({"x": X})["y"]
            machine.fails = call
            with pytest.raises(DeviceError, match="the device is lost"):
                session.run({"x": X})
            machine.fails = ""
            with pytest.raises(DeviceError):
                session.run({"x": X})
        with ingot_runtime.load(bundle) as session:
            assert np.array_equal(session.run({"x": X})["y"], expected)


def test_too_little_memory(bundle: bytes) -> None:
    """What is needed and what is there is told before anything runs."""
    machine = Machine(memory_bytes=1 << 12)
    with (
        installed(machine),
        pytest.raises(ResourceError, match="not enough memory on device cuda:0"),
    ):
        ingot_runtime.load(bundle).run({"x": X})
    assert "launch" not in machine.calls


def test_memory_goes_back(bundle: bytes) -> None:
    """Nothing stays on the GPU when sessions have ended."""
    with installed() as machine:
        for _ in range(2):
            with ingot_runtime.load(bundle) as session:
                session.run({"x": X})
                assert machine.memories[0].used_bytes > 0
            del session
            gc.collect()
            assert machine.memories[0].used_bytes == 0

"""PTX gives what the loop interpreter gives: functions, casts, lanes, memory; ``ptxas`` accepts
it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.harness import cuda_harness
from tests.harness.codegen_harness import NUMPY
from tests.harness.opencl_harness import DevicePrograms
from tests.ptx.fake_driver import Machine, installed
from tests.unit.backends.test_opencl_kernels import (
    COUNT,
    check,
    every_cast,
    every_function,
    required,
    some_programs,
    strided,
    total,
)

from ingot_compiler.backends.cuda.architectures import ARCHITECTURES, GROUPS_MAX
from ingot_compiler.backends.cuda.backend import BACKEND
from ingot_compiler.backends.cuda.lane_group import LANES
from ingot_compiler.ir.types import DType
from ingot_runtime_devices import cuda, cuda_library

_DTYPES: tuple[DType, ...] = tuple(dtype for dtype in NUMPY if dtype not in ("f16", "bf16"))
ORDERS = (tuple(range(LANES)), tuple(reversed(range(LANES))))
_EVERY = "+".join(each.name for each in ARCHITECTURES)


@pytest.fixture(autouse=True)
def machine() -> Iterator[Machine]:
    """Two GPUs."""
    with installed() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("dtype", _DTYPES)
def test_every_function_is_the_interpreters(dtype: DType) -> None:
    """Integers exactly, also where they overflow or divide by 0; floats within the functions'
    errors."""
    programs, inputs = every_function(dtype)
    check(programs, inputs, cuda_harness.open_programs(programs))


@pytest.mark.slow
def test_every_cast_is_the_interpreters() -> None:
    """Between all pairs of element types."""
    programs, inputs = every_cast()
    check(programs, inputs, cuda_harness.open_programs(programs))


def test_some_programs_are_the_interpreters() -> None:
    """Halves, saturation, masks, sums in lanes, choices: one program of each sort."""
    programs, inputs = some_programs()
    check(programs, inputs, cuda_harness.open_programs(programs))


@pytest.mark.broad
@pytest.mark.parametrize("lanes", ORDERS)
def test_no_thread_counts_on_another_without_waiting(lanes: tuple[int, ...]) -> None:
    """The same numbers where the threads of a group run one after the other until they wait."""
    programs, inputs = some_programs()
    with installed(Machine(lanes=lanes)):
        check(programs, inputs, cuda_harness.open_programs(programs))


def test_a_requirement_is_reported() -> None:
    """A kernel returns the number of a requirement that does not hold, and nothing the next time."""
    compiled = DevicePrograms([required()], cuda_harness.open_programs([required()]))
    good, bad = np.arange(COUNT, dtype=np.int32), np.full(COUNT, -1, np.int32)
    for array, code in ((good, 0), (bad, 259), (good, 0)):
        assert compiled.run(0, [array, np.zeros_like(array)], {"n": COUNT}) == code


def test_a_library_is_a_function_of_the_programs() -> None:
    """The same text each time, of ASCII, with a module for each architecture."""
    programs = [strided(), total(), required()]
    first = cuda_harness.library_of(programs, "sm_75+sm_90")
    assert first == cuda_harness.library_of(programs, "sm_75+sm_90")
    assert first.isascii()
    read = cuda_library.read_library(first, len(programs), "here")
    assert [each.architecture for each in read.modules] == [75, 90]
    assert [kernel.reports for kernel in read.kernels] == [False, False, True]


def test_the_latest_module_that_fits_is_loaded(machine: Machine) -> None:
    """A GPU of sm_75 runs code for sm_75, one of sm_90 that for sm_90."""
    programs, inputs = some_programs()
    section = cuda_harness.library_of(programs, "sm_75+sm_80+sm_90")
    for id_, target in enumerate(("sm_75", "sm_90")):
        check(programs, inputs, cuda_harness.open_library(section, len(programs), id_))
        assert machine.loaded[-1].target == target


def test_back_end_and_device_agree() -> None:
    """What both know of launches is the same."""
    assert cuda.GROUPS_MAX == GROUPS_MAX == BACKEND.scratch_places
    assert cuda_library.GROUP_THREADS == LANES


@pytest.mark.ptxas
def test_ptxas_accepts_every_function_and_cast(tmp_path: Path) -> None:
    """For every architecture that there is code for."""
    some, _ = some_programs()
    cuda_harness.assemble(cuda_harness.library_of(some, _EVERY), len(some), tmp_path)
    programs = [each for dtype in _DTYPES for each in every_function(dtype)[0]] + every_cast()[0]
    unique = list(dict.fromkeys(programs))
    cuda_harness.assemble(cuda_harness.library_of(unique), len(unique), tmp_path)

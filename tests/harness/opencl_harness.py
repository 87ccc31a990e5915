"""Loop programs on an OpenCL device, as one library.

In: programs, arrays. Out: the arrays, changed in place, and what kernels return. Not done here:
bundles (``test_opencl_models``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.harness.codegen_harness import Array

from ingot_compiler.backends.opencl.hooks import compile_kernel
from ingot_compiler.backends.opencl.link_library import link_library
from ingot_compiler.backends.opencl.read_target import TARGET
from ingot_compiler.ir.dims import evaluate
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_runtime.format.plan import LibraryPlan
from ingot_runtime_devices.device import Device
from ingot_runtime_devices.opencl import open_opencl


def library_of(programs: Sequence[LoopProgram]) -> bytes:
    """The section of a library with these kernels."""
    return link_library([compile_kernel(each, TARGET) for each in programs], None, b"", TARGET)


def open_library(section: bytes, kernel_count: int, id_: int = 0) -> Device:
    """A device with a library."""
    plan = LibraryPlan("opencl", TARGET, (), kernel_count)
    return open_opencl("acc", id_, plan, section, "section library 0", frozenset())


class DevicePrograms:
    """Programs that a device can run; an OpenCL device, unless another one is given."""

    def __init__(self, programs: Sequence[LoopProgram], device: Device | None = None) -> None:
        self.programs = tuple(programs)
        self.device = device or open_library(library_of(self.programs), len(self.programs))

    def run(
        self, number: int, arrays: Sequence[Array], scalars: Mapping[str, int] | None = None
    ) -> int:
        """Run one of them, in place; what it returns."""
        program, given = self.programs[number], scalars or {}
        held = [self.device.allocate(array.nbytes) for array in arrays]
        for each, array in zip(held, arrays, strict=True):
            self.device.write(each.address, array.ctypes.data, array.nbytes)
        scratch = self.device.allocate(evaluate(program.scratch_bytes, given) + 64)
        addresses = [*(each.address for each in held), scratch.address]
        numbers = [given[name] for name in program.scalars]
        extent = evaluate(program.extent, given)
        code = self.device.launch(number, addresses, numbers, extent, program.grain, 0)
        for each, array in zip(held, arrays, strict=True):
            self.device.read(array.ctypes.data, each.address, array.nbytes)
        return code

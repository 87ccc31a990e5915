"""Loop programs as a library of PTX, on a GPU that a program of Python stands for; PTX held against
``ptxas``.

In: programs. Out: open devices, what ``ptxas`` says. Not done here: bundles
(``test_cuda_models``), the GPU (``tests.ptx``).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

from ingot_compiler.backends.cuda.compile_kernel import compile_kernel
from ingot_compiler.backends.cuda.link_library import link_library
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_runtime.format.plan import LibraryPlan
from ingot_runtime_devices.cuda_library import read_library
from ingot_runtime_devices.device import Device
from ingot_runtime_devices.registry import OPEN

WHERE = "section library 0"


def library_of(programs: Sequence[LoopProgram], target: str = "sm_75") -> bytes:
    """The section of a library with these kernels."""
    return link_library([compile_kernel(each, target) for each in programs], None, b"", target)


def open_library(section: bytes, kernel_count: int, id_: int = 0) -> Device:
    """A device with a library."""
    plan = LibraryPlan("cuda", "sm_75", (), kernel_count)
    return OPEN["cuda"]("acc", id_, plan, section, WHERE, frozenset())


def open_programs(programs: Sequence[LoopProgram], target: str = "sm_75") -> Device:
    """A device that runs programs."""
    return open_library(library_of(programs, target), len(programs))


def assemble(section: bytes, kernel_count: int, folder: Path) -> str:
    """Let ``ptxas`` compile every module of a library for its architecture; what it says of
    registers and memory."""
    told = list[str]()
    ptxas = distribution("nvidia-cuda-nvcc-cu12").locate_file("nvidia/cuda_nvcc/bin/ptxas")
    for module in read_library(section, kernel_count, WHERE).modules:
        source = folder / f"sm_{module.architecture}.ptx"
        source.write_text(module.text, encoding="ascii")
        architecture = f"--gpu-name=sm_{module.architecture}"
        command = [
            str(ptxas),
            architecture,
            "--verbose",
            str(source),
            "--output-file",
            str(folder / "out.cubin"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]
        told.append(done.stderr)
    return "".join(told)

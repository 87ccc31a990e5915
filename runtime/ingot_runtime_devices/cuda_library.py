"""The library section of a ``cuda`` device: a table of modules and kernels, and PTX.

In: the section's bytes. Out: ``CudaLibrary``. Not done here: compiling (``cuda``).
"""

import re
from functools import partial

from ingot_runtime.errors import FormatError

from .kernel_table import ROW, KernelRow, read_rows, split_library

HEAD = "ingot cuda library 1"
_MODULE = re.compile(r"module sm_(\d{2,3}) (\d{1,2})\.(\d) (\d{4,6}) (\d{1,9})")
_ROW = re.compile(ROW + r" (\d{1,4})")
_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(\n([^)]*)\)", re.MULTILINE)
_OTHER_PARAMETERS = 4  # scratch, report, extent, share
_BLOCK_THREADS_MAX = 1024
GROUP_THREADS = 8  # that run a unit


class CudaKernel(KernelRow):
    """``block_threads``: how many are a block; eight threads share a place of scratch."""

    __slots__ = ("block_threads",)

    def __init__(self, fields: "tuple[str, ...]") -> None:
        super().__init__(fields)
        self.block_threads = int(fields[5])

    @property
    def parameter_count(self) -> int:
        """How many parameters its text must have."""
        return self.buffer_count + self.scalar_count + _OTHER_PARAMETERS


class CudaModule:
    """The kernels for one architecture (75: compute capability 7.5) and all later ones; ``ptx``: the
    version of its text; ``driver``: the first driver that reads it."""

    __slots__ = ("architecture", "driver", "ptx", "text")

    def __init__(self, fields: "tuple[str, ...]", text: str) -> None:
        self.architecture = int(fields[0])
        self.ptx = f"{int(fields[1])}.{fields[2]}"
        self.driver = int(fields[3])
        self.text = text


class CudaLibrary:
    """``modules`` have the same kernels, each for its architecture."""

    __slots__ = ("kernels", "modules")

    def __init__(
        self, modules: "tuple[CudaModule, ...]", kernels: "tuple[CudaKernel, ...]"
    ) -> None:
        self.modules = modules
        self.kernels = kernels


def read_library(code: bytes, kernel_count: int, where: str) -> CudaLibrary:
    """Read a section; ``kernel_count`` is the plan's.

    Raises:
        FormatError: it breaks the rules of FORMAT.md.
    """
    damaged = partial(_damaged, where)
    _, rows, texts = split_library(code, HEAD, HEAD.__eq__, damaged)
    found = [_MODULE.fullmatch(row) for row in rows]
    count = next((number for number, row in enumerate(found) if row is None), len(found))
    kernels = _kernels(rows[count:], kernel_count, where)
    modules, at = list[CudaModule](), 0
    for fields in [row.groups() for row in found[:count] if row]:
        module = CudaModule(fields, texts[at : at + int(fields[4])])
        at += int(fields[4])
        _check(module, kernels, where)
        modules.append(module)
    if not modules or at != len(texts):
        raise _damaged(where, f"its modules have {at} bytes, {len(texts)} are there")
    return CudaLibrary(tuple(modules), kernels)


def _kernels(rows: "list[str]", count: int, where: str) -> "tuple[CudaKernel, ...]":
    fields = read_rows(rows, _ROW, count, partial(_damaged, where))
    kernels = tuple(map(CudaKernel, fields))
    for kernel in kernels:
        threads = kernel.block_threads
        if threads % GROUP_THREADS or not GROUP_THREADS <= threads <= _BLOCK_THREADS_MAX:
            raise _damaged(where, f"kernel {kernel.name} with {threads} threads in a block")
    return kernels


def _check(module: CudaModule, kernels: "tuple[CudaKernel, ...]", where: str) -> None:
    """Refuse a text for something else than its row says, or with other kernels or parameters."""
    name = f"sm_{module.architecture}"
    head = f".version {module.ptx}\n.target {name}\n.address_size 64\n"
    if not module.text.startswith(head):
        raise _damaged(where, f"expected {head!r}, got {module.text[: len(head)]!r}")
    entries = {entry[1]: entry[2].count(".param ") for entry in _ENTRY.finditer(module.text)}
    expected = {kernel.name: kernel.parameter_count for kernel in kernels}
    if entries != expected:
        wrong = min(set(entries.items()) ^ set(expected.items()))
        why = f"{name} and the table differ in kernel {wrong[0]} or its {wrong[1]} parameters"
        raise _damaged(where, why)


def _damaged(where: str, why: str) -> FormatError:
    return FormatError("a library of PTX is damaged", where, why, "get the file again")

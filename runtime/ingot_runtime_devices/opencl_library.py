"""The library section of an ``opencl`` device: a table of kernels and their source.

In: the section's bytes. Out: ``OpenClLibrary``. Not done here: compiling (``opencl_build``).
"""

import re
from functools import partial

from ingot_runtime.errors import FormatError

from .kernel_table import ROW, KernelRow, read_rows, split_library

HEAD = "ingot opencl library 1"
REPORT_BYTES = 256  # what a kernel returns, and behind it what may be read and means nothing
_EXTENSION = re.compile(r"cl_\w{1,60}")
_ROW = re.compile(ROW)


class OpenClLibrary:
    """``extensions`` are those that the device must have."""

    __slots__ = ("extensions", "kernels", "source")

    def __init__(
        self, extensions: "tuple[str, ...]", kernels: "tuple[KernelRow, ...]", source: str
    ) -> None:
        self.extensions = extensions
        self.kernels = kernels
        self.source = source


def read_library(code: bytes, kernel_count: int, where: str) -> OpenClLibrary:
    """Read a section; ``kernel_count`` is the plan's.

    Raises:
        FormatError: it breaks the rules of FORMAT.md.
    """
    damaged = partial(_damaged, where)
    head, rows, source = split_library(code, HEAD, _is_head, damaged)
    fields = read_rows(rows, _ROW, kernel_count, damaged)
    return OpenClLibrary(_extensions(head), tuple(map(KernelRow, fields)), source)


def _is_head(line: str) -> bool:
    return line.startswith(HEAD) and all(map(_EXTENSION.fullmatch, _extensions(line)))


def _extensions(head: str) -> "tuple[str, ...]":
    return tuple(head.removeprefix(HEAD).split())


def _damaged(where: str, why: str) -> FormatError:
    return FormatError("a library of OpenCL C is damaged", where, why, "get the file again")

"""The library section of an ``opencl`` device: a table of kernels and their source.

In: the section's bytes. Out: ``OpenClLibrary``. Not done here: compiling (``opencl_build``).
"""

import re

from ingot_runtime.errors import FormatError

HEAD = "ingot opencl library 1"
REPORT_BYTES = 256  # what a kernel returns, and behind it what may be read and means nothing
_EXTENSION = re.compile(r"cl_\w{1,60}")
_ROW = re.compile(r"([A-Za-z_]\w{0,127}) (\d{1,6}) (\d{1,6}) ([01]) ([01])")


class KernelRow:
    """One kernel: ``reports``: it may return a code; ``has_scratch``: at most ``ITEMS_MAX`` work
    items run it."""

    __slots__ = ("buffer_count", "has_scratch", "name", "reports", "scalar_count")

    def __init__(self, fields: "tuple[str, ...]") -> None:
        self.name = fields[0]
        self.buffer_count = int(fields[1])
        self.scalar_count = int(fields[2])
        self.reports = fields[3] == "1"
        self.has_scratch = fields[4] == "1"


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
    try:
        table, empty, source = code.decode("ascii").partition("\n\n")
    except UnicodeDecodeError as error:
        raise _damaged(where, f"{error}") from error
    head, *rows = table.split("\n")
    extensions = tuple(head.removeprefix(HEAD).split())
    if not head.startswith(HEAD) or not empty or not all(map(_EXTENSION.fullmatch, extensions)):
        raise _damaged(where, f"expected {HEAD!r} and a table, got {head[:60]!r}")
    found = [_ROW.fullmatch(row) for row in rows]
    kernels = tuple(KernelRow(row.groups()) for row in found if row)
    if not len(kernels) == len(rows) == kernel_count:
        raise _damaged(where, f"expected {kernel_count} kernels, got {len(kernels)}")
    if len({kernel.name for kernel in kernels}) != len(kernels):
        raise _damaged(where, "two kernels of one name")
    return OpenClLibrary(extensions, kernels, source)


def _damaged(where: str, why: str) -> FormatError:
    return FormatError("a library of OpenCL C is damaged", where, why, "get the file again")

"""The hook ``link_image`` of ``opencl``: the texts of kernels to a library section.

In: rows and texts of kernels. Out: the bytes of a library: a head, a row per kernel, an empty line,
OpenCL C (``runtime/FORMAT.md``). Not done here: compiling it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from ingot_compiler.backends.host.device_kernel import require_kernels_alone

HEAD = "ingot opencl library 1"
_FP64 = "cl_khr_fp64"


def kernel_count(library: bytes) -> int:
    """How many kernels the table of a library lists; -1 where it is none."""
    table, empty, _ = library.partition(b"\n\n")
    return table.count(b"\n") if empty and table.startswith(HEAD.encode()) else -1


def link_library(
    kernels: Sequence[tuple[str, bytes]], main: bytes | None, support: bytes, target: str
) -> bytes:
    """Put a library together; ``kernels`` are (symbol, row and text) in the order of its table.

    Raises:
        InternalError: a `main`, or support.
    """
    require_kernels_alone(main, support, target)
    texts = [content.decode().partition("\n") for _, content in kernels]
    source = "\n".join(text for _, _, text in texts)
    has_double = "double" in source
    head = f"{HEAD} {_FP64}" if has_double else HEAD
    prelude = (
        resources.files("ingot_compiler.backends.opencl")
        .joinpath("prelude.cl")
        .read_text(encoding="ascii")
    )
    pragmas = ["#pragma OPENCL FP_CONTRACT ON"]
    if has_double:
        pragmas.insert(0, f"#pragma OPENCL EXTENSION {_FP64} : enable")
    return "\n".join([head, *(row for row, _, _ in texts), "", *pragmas, prelude, source]).encode()

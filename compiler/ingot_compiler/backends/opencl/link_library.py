"""The hook ``link_image`` of ``opencl``: the texts of kernels to a library section.

In: rows and texts of kernels. Out: the bytes of a library: a head, a row per kernel, an empty line,
OpenCL C (``runtime/FORMAT.md``). Not done here: compiling it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from ingot_compiler.backends.host.device_kernel import require_kernels_alone

HEAD = "ingot opencl library 1"


def kernel_count(library: bytes) -> int:
    """How many kernels the table of a library lists; -1 where it is none."""
    table, empty, _ = library.partition(b"\n\n")
    return table.count(b"\n") if empty and table.startswith(HEAD.encode()) else -1


def link_library(
    kernels: Sequence[tuple[str, bytes]], main: bytes | None, support: bytes, target: str
) -> bytes:
    """Put a library together; ``kernels`` are (symbol, what ``compile_kernel`` makes) in the order
    of its table.

    Raises:
        InternalError: a `main`, or support.
    """
    require_kernels_alone(main, support, target)
    parts = [content.decode().split("\n", 2) for _, content in kernels]
    source = "\n".join(text for _, _, text in parts)
    extensions = sorted({extension for _, extension, _ in parts if extension})
    head = " ".join([HEAD, *extensions])
    prelude = (
        resources.files("ingot_compiler.backends.opencl")
        .joinpath("prelude.cl")
        .read_text(encoding="ascii")
    )
    pragmas = [f"#pragma OPENCL EXTENSION {each} : enable" for each in extensions]
    pragmas.append("#pragma OPENCL FP_CONTRACT ON")
    return "\n".join([head, *(row for row, _, _ in parts), "", *pragmas, prelude, source]).encode()

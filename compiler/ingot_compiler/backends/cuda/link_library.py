"""The hook ``link_image`` of ``cuda``: kernels to a library section.

In: rows and PTX of kernels. Out: the bytes of a library: a head, a row per module, a row per
kernel, an empty line, the modules (``runtime/FORMAT.md``). Not done here: compiling them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.cuda.architectures import Architecture
from ingot_compiler.backends.cuda.compile_kernel import BETWEEN
from ingot_compiler.backends.cuda.read_target import read_target
from ingot_compiler.backends.host.device_kernel import require_kernels_alone

HEAD = "ingot cuda library 1"
_MODULE = "module"


def kernel_count(library: bytes) -> int:
    """How many kernels the table of a library lists; -1 where it is none."""
    table, empty, _ = library.partition(b"\n\n")
    if not empty or not table.startswith(HEAD.encode()):
        return -1
    return sum(not row.startswith(_MODULE.encode()) for row in table.split(b"\n")[1:])


def link_library(
    kernels: Sequence[tuple[str, bytes]], main: bytes | None, support: bytes, target: str
) -> bytes:
    """Put a library together; ``kernels`` are (symbol, row and texts) in the order of its table.

    Raises:
        InternalError: a `main`, or support.
    """
    require_kernels_alone(main, support, target)
    rows = [content.decode().split(BETWEEN) for _, content in kernels]
    architectures = read_target(target, ()).architectures
    modules = [
        module_text(architecture, [row[number] for row in rows])
        for number, architecture in enumerate(architectures, start=1)
    ]
    table = [_module_row(*pair) for pair in zip(architectures, modules, strict=True)]
    return "\n".join([HEAD, *table, *(row[0] for row in rows), "", "".join(modules)]).encode()


def module_text(architecture: Architecture, kernels: Sequence[str]) -> str:
    """Return one module of PTX."""
    version = ".".join(map(str, architecture.ptx))
    head = f".version {version}\n.target {architecture.name}\n.address_size 64\n"
    return head + "".join(kernels)


def _module_row(architecture: Architecture, text: str) -> str:
    version = ".".join(map(str, architecture.ptx))
    return f"{_MODULE} {architecture.name} {version} {architecture.driver} {len(text)}"

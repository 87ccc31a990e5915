"""The support functions, compiled for one target by the pinned C compiler.

In: a target, a file of ``c/``, which holds the sources. Out: one relocatable ELF object. Not done
here: what the functions do (the sources say), linking. An image keeps only the functions that it
reaches: each has a section of its own.
"""

import functools
import os
import tempfile
from importlib.resources import files

from ingot_compiler.backends.host.support.abi_header import abi_header
from ingot_compiler.backends.host.zig import run_zig
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.targets.target import Target

C_FLAGS = (
    "-std=c11", "-O2", "-g0", "-fPIE", "-ffreestanding", "-fno-builtin", "-ffp-contract=off",
    "-fno-vectorize", "-fno-slp-vectorize", "-fno-stack-protector", "-fno-sanitize=all",
    "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-ffunction-sections",
    "-fdata-sections", "-Wall", "-Wextra", "-Werror",
)  # fmt: skip


@functools.cache
def compile_support(target: Target, source: str = "support.c") -> bytes:
    """Return the object, the same bytes on every machine and in every folder.

    Args:
        target: the host CPU that it is for.
        source: all functions, or ``digests.c``.

    Raises:
        BuildError: no compiler on this machine.
        InternalError: the compiler does not accept the sources.
    """
    with tempfile.TemporaryDirectory(prefix="ingot-support-") as folder:
        _write_sources(folder, target)
        target_flags = ("-target", target.zig_triple, f"-mcpu={target.zig_cpu}")
        done = run_zig(("cc", *target_flags, *C_FLAGS, "-c", source, "-o", "support.o"), folder)
        if done.returncode:
            raise InternalError(
                "the support functions do not compile",
                where=f"target {target}",
                why=" ".join(done.stderr.split("\n", 1)[0].split()),
                do="report this",
            )
        with open(os.path.join(folder, "support.o"), "rb") as object_file:
            return object_file.read()


def _write_sources(folder: str, target: Target) -> None:
    for file in files("ingot_compiler.backends.host.support.c").iterdir():
        if file.name.endswith((".c", ".h")):
            _write(folder, file.name, file.read_text(encoding="utf-8"))
    _write(folder, "abi.h", abi_header(target))


def _write(folder: str, name: str, content: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(content)

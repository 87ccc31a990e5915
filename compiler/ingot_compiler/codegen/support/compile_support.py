"""The support functions, compiled for one target by the pinned C compiler.

In: a target; the sources in ``c/``. Out: one relocatable ELF object. Not done here: what the functions do (the sources say), linking.
An image keeps only the functions that it reaches: each has a section of its own.
"""

import os
import tempfile
from importlib.resources import files

from ingot_compiler.codegen.support.abi_header import abi_header
from ingot_compiler.codegen.zig import run_zig
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.targets.target import Target

_FLAGS = (
    "-std=c11", "-O2", "-g0", "-fPIC", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fno-sanitize=all",
    "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-ffunction-sections", "-fdata-sections", "-ffp-contract=off",
    "-Wall", "-Wextra", "-Werror", "-Wno-pass-failed",
)  # fmt: skip


def compile_support(target: Target, *, visibility: str = "hidden") -> bytes:
    """Return the object, the same bytes on every machine and in every folder.

    Args:
        target: the host CPU that it is for.
        visibility: of the exported functions: ``hidden`` for an image, ``default`` for this process.

    Raises:
        BuildError: no compiler on this machine.
        InternalError: the compiler does not accept the sources.
    """
    with tempfile.TemporaryDirectory(prefix="ingot-support-") as folder:
        for source in files("ingot_compiler.codegen.support.c").iterdir():
            if source.name.endswith((".c", ".h")):
                _write(folder, source.name, source.read_text(encoding="utf-8"))
        _write(folder, "abi.h", abi_header(target))
        target_flags = ("-target", target.zig_triple, f"-mcpu={target.zig_cpu}", f'-DVISIBILITY="{visibility}"')
        done = run_zig(("cc", *target_flags, *_FLAGS, "-c", "support.c", "-o", "support.o"), folder)
        if done.returncode:
            raise InternalError(
                "the support functions do not compile",
                where=f"target {target}",
                why=" ".join(done.stderr.split("\n", 1)[0].split()),
                do="report this",
            )
        with open(os.path.join(folder, "support.o"), "rb") as file:
            return file.read()


def _write(folder: str, name: str, content: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(content)

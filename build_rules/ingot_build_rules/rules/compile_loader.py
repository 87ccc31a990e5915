"""Rule ``compile_loader``: the loader in C, as a program that depends on nothing.

In: its sources, a processor. Out: a static ELF file. Not done here: the sources
(``export.loader_sources``), a bundle behind it (``export.executable``).

The first program for a processor costs half a minute: the compiler makes its libc, too.
"""

from __future__ import annotations

import os
import tempfile

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_compiler.backends.host.zig import run_zig
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

# No inlining: the smallest program. A program that dies leaves nobody who would unwind its stack.
_FLAGS = (
    "-std=c11", "-Os", "-g0", "-s", "-static", "-fno-sanitize=all", "-fno-stack-protector",
    "-fomit-frame-pointer", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables",
    "-ffunction-sections", "-fdata-sections", "-mllvm", "-inline-threshold=0", "-Wl,--gc-sections",
    "-Wall", "-Wextra", "-Werror",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoaderInputs:
    """``sources``: (name, text) of each file; ``triple``: processor, system and libc, as the
    compiler spells them."""

    sources: tuple[tuple[str, str], ...]
    triple: str


def _compute(context: RuleContext, inputs: LoaderInputs) -> Artifact[memoryview]:
    with tempfile.TemporaryDirectory(prefix="ingot-loader-") as folder:
        for name, text in inputs.sources:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = run_zig(("cc", "-target", inputs.triple, *_FLAGS, "run.c", "-o", "run"), folder)
        if done.returncode:
            why = " ".join(done.stderr.split("\n", 1)[0].split())
            what = "the loader does not compile"
            raise InternalError(what, where=inputs.triple, why=why, do="report this")
        with open(os.path.join(folder, "run"), "rb") as program:
            return context.keep_bytes(program.read())


COMPILE_LOADER = Rule("compile_loader", 1, ("sources", "triple"), _compute, tools=("zig",))

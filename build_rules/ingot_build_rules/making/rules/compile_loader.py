"""Rule ``compile_loader``: the loader in C, as a program that depends on nothing, or, where it
opens devices, on the machine's libc.

In: its sources, a processor and a libc. Out: an ELF file: with musl a static one, with glibc one
that is linked when it starts. Not done here: the sources (``export.loader_sources``), a bundle
behind it (``export.executable``).

The first program for a processor costs half a minute: the compiler makes its libc, too.
"""

from __future__ import annotations

import os
import struct
import tempfile

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_compiler.backends.host.zig import run_zig
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

# No inlining, no allocator: the smallest program. It makes one call of one file for nobody else: so
# there are no states, no weights of another bundle, no lent threads, no handlers of a host program. One that dies leaves nobody who
# would unwind its stack.
_FLAGS = (
    "-std=c11", "-Os", "-g0", "-s", "-fno-sanitize=all", "-fno-stack-protector",
    "-fomit-frame-pointer", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables",
    "-ffunction-sections", "-fdata-sections", "-mllvm", "-inline-threshold=0", "-fno-jump-tables", "-Wl,--gc-sections",
    "-Wall", "-Wextra", "-Werror", "-DINGOT_WITHOUT_MALLOC", "-DINGOT_WITHOUT_STATES",
    "-DINGOT_WITHOUT_SHARED", "-DINGOT_WITHOUT_LENDING", "-DINGOT_WITHOUT_HOST",
)  # fmt: skip
# A static program cannot open the library of a driver, and has 100 kB.
_STATIC = ("-static", "-DINGOT_WITHOUT_DEVICES")
_DYNAMIC = ("-lpthread", "-ldl")  # of their own until glibc 2.34
# Places in the header of an ELF file of 64 bits, and in a row of its table of segments.
_SEGMENTS_AT, _SECTIONS_AT, _SEGMENT_WIDTH_AT, _SECTION_WIDTH_AT = 32, 40, 54, 58
_SEGMENT_OFFSET_AT = 8


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
        linked = _STATIC if inputs.triple.endswith("musl") else _DYNAMIC
        command = ("cc", "-target", inputs.triple, *_FLAGS, "run.c", *linked, "-o", "run")
        done = run_zig(command, folder)
        if done.returncode:
            why = " ".join(done.stderr.split("\n", 1)[0].split())
            what = "the loader does not compile"
            raise InternalError(what, where=inputs.triple, why=why, do="report this")
        with open(os.path.join(folder, "run"), "rb") as program:
            return context.keep_bytes(_without_section_headers(program.read()))


def _without_section_headers(program: bytes) -> bytes:
    """Return an ELF file of 64 bits without what only linkers and debuggers read: the bytes behind
    its last segment."""
    (first,) = struct.unpack_from("<Q", program, _SEGMENTS_AT)
    width, count = struct.unpack_from("<HH", program, _SEGMENT_WIDTH_AT)
    rows = (first + width * index for index in range(count))
    ends = (sum(struct.unpack_from("<Q16xQ", program, row + _SEGMENT_OFFSET_AT)) for row in rows)
    cut = bytearray(program[: max(ends)])
    struct.pack_into("<Q", cut, _SECTIONS_AT, 0)
    struct.pack_into("<HHH", cut, _SECTION_WIDTH_AT, 0, 0, 0)
    return bytes(cut)


COMPILE_LOADER = Rule("compile_loader", 3, ("sources", "triple"), _compute, tools=("zig",))

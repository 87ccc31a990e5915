"""Rule ``compile_library``: one variant of a bundle as a library to link, which needs no libc.

In: C around the variant's code, the bundle, a processor. Out: an object, an archive or a shared
object. Not done here: writing the C (``export.library_source``), a header
(``export.library_header``).

The bundle is read by its digest, so that neither key nor action carries its weights.
"""

from __future__ import annotations

import os
import tempfile

from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_compiler.backends.host.zig import run_zig
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.format.header import CODE, WEIGHTS
from ingot_runtime.lazy_dataclass import dataclass

OBJECT, STATIC, SHARED = "o", "a", "so"
"""What can be made, by its ending."""
# Nothing here unwinds a stack, and nobody is there to hear of undefined behaviour.
_FLAGS = (
    "-ffreestanding", "-std=c11", "-Os", "-g0", "-fPIC", "-fno-sanitize=all",
    "-fno-stack-protector", "-fomit-frame-pointer", "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables", "-fno-ident", "-fno-builtin", "-fvisibility=hidden",
    "-Wall", "-Wextra", "-Werror",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelLibraryInputs:
    """``sources``: (name, text) of each file, of which ``NAME.c`` is compiled; ``triple``: as the
    compiler spells it; ``digest``: of the bundle that lies at ``bundle``; ``constants_bytes``: of
    its weights that go into the library, 0 for none; ``form``: one of the three."""

    name: str
    sources: tuple[tuple[str, str], ...]
    triple: str
    digest: str
    variant: int
    constants_bytes: int
    form: str
    bundle: str


def code_file(name: str) -> str:
    """Return what the C calls the file with a variant's code."""
    return f"{name}.code"


def constants_file(name: str) -> str:
    """Return what the C calls the file with the constants."""
    return f"{name}.constants"


def _compute(context: RuleContext, inputs: ModelLibraryInputs) -> Artifact[memoryview]:
    with tempfile.TemporaryDirectory(prefix="ingot-library-") as folder:
        for name, text in inputs.sources:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        _write_parts(inputs, folder)
        made = _link(inputs, folder)
        with open(os.path.join(folder, made), "rb") as library:
            return context.keep_bytes(library.read())


def _write_parts(inputs: ModelLibraryInputs, folder: str) -> None:
    with opened(inputs.bundle, inputs.digest) as source:
        with open(os.path.join(folder, code_file(inputs.name)), "wb") as file:
            file.write(source.section(CODE, inputs.variant))
        with open(os.path.join(folder, constants_file(inputs.name)), "wb") as file:
            if inputs.constants_bytes:
                row = next(row for row in source.sections if row.kind == WEIGHTS and row.id == 0)
                file.write(source.read(row.offset, inputs.constants_bytes))


def _link(inputs: ModelLibraryInputs, folder: str) -> str:
    """Return the name of the file that was made."""
    source, made = f"{inputs.name}.c", f"{inputs.name}.o"
    _zig(("cc", "-target", inputs.triple, *_FLAGS, "-c", source, "-o", made), folder)
    library = f"lib{inputs.name}.{inputs.form}"
    if inputs.form == OBJECT:
        return made
    if inputs.form == SHARED:
        flags = ("-shared", "-soname", library, "--build-id=none", "-z", "text", "-z", "defs")
        _zig(("ld.lld", *flags, made, "-o", library), folder)
    else:
        _zig(("ar", "rcsD", library, made), folder)
    return library


def _zig(arguments: tuple[str, ...], folder: str) -> None:
    done = run_zig(arguments, folder)
    if done.returncode:
        why = " ".join(done.stderr.split("\n", 1)[0].split())
        raise InternalError(
            "the library is not made", where=arguments[0], why=why, do="report this"
        )


COMPILE_LIBRARY = Rule(
    "compile_library",
    1,
    ("name", "sources", "triple", "digest", "variant", "constants_bytes", "form"),
    _compute,
    tools=("zig",),
    reads_files=True,
)

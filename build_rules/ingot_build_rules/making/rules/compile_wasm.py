"""Rule ``compile_wasm``: a model in C as one module of WebAssembly, with SIMD of 128 bits.

In: its C, its constants. Out: the module. Not done here: the C (``c_source``), what loads the
module (``export.wasm``).
"""

from __future__ import annotations

import os
import tempfile

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.values.packed_constant import PackedConstant
from ingot_compiler.backends.host.zig import run_zig
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

# Nothing is linked to, so no loop may become a call of memcpy; 1 MiB of stack is for one kernel.
_FLAGS = (
    "-target", "wasm32-freestanding", "-mcpu=generic+simd128", "-std=c99", "-O2", "-g0",
    "-nostdlib", "-fno-builtin", "-fno-sanitize=all", "-fno-stack-protector", "-Wl,--no-entry",
    "-Wl,-z,stack-size=1048576", "-Wl,--strip-all",
)  # fmt: skip
_CONSTANTS = "constants.bin"
_WEIGHTS = """\
const unsigned char __attribute__((aligned(64))) {name}_weights[] = {{
#embed "constants.bin"
}};
"""


@dataclass(frozen=True, slots=True)
class WasmInputs:
    """``kernels``: the text of ``NAME.c``; ``sources``: (name, text) of each other file;
    ``constants``: at their places."""

    name: str
    kernels: Artifact[memoryview]
    sources: tuple[tuple[str, str], ...]
    constants: tuple[PackedConstant, ...]


def _compute(context: RuleContext, inputs: WasmInputs) -> Artifact[memoryview]:
    with tempfile.TemporaryDirectory(prefix="ingot-wasm-") as folder:
        kernels = bytes(inputs.kernels.value())
        files = {name: text.encode() for name, text in inputs.sources}
        files[f"{inputs.name}.c"] = kernels
        if inputs.constants:
            files["weights.c"] = _WEIGHTS.format(name=inputs.name).encode()
        for name, content in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        _write_constants(os.path.join(folder, _CONSTANTS), inputs.constants)
        sources = sorted(name for name in files if name.endswith(".c"))
        done = run_zig(("cc", *_FLAGS, *sources, "-o", "model.wasm"), folder)
        if done.returncode:
            why = " ".join(done.stderr.split("\n", 1)[0].split())
            what = "the source does not compile to WebAssembly"
            raise InternalError(what, where=inputs.name, why=why, do="report this")
        with open(os.path.join(folder, "model.wasm"), "rb") as module:
            return context.keep_bytes(module.read())


def _write_constants(path: str, constants: tuple[PackedConstant, ...]) -> None:
    with open(path, "wb") as file:
        for constant in constants:
            file.seek(constant.offset_bytes)
            file.write(constant.part_of(constant.content.value()))


COMPILE_WASM = Rule(
    "compile_wasm", 1, ("name", "kernels", "sources", "constants"), _compute, tools=("zig",)
)

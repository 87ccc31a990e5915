"""A model as a module of WebAssembly, and a small ES module that loads and runs it.

In: an open build, a model, the user's choices. Out: ``NAME.wasm``, ``NAME.mjs``, ``NAME.d.mts``.
Not done here: the C (``c_source``), compiling it (``rules.compile_wasm``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources

from ingot_artifacts.store.atomic import atomic_file, sync_folders
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.rules.compile_wasm import COMPILE_WASM, WasmInputs
from ingot_build_rules.tools.export.c_header import CFacts
from ingot_build_rules.tools.export.c_source import CChoices, make_c_source
from ingot_build_rules.tools.export.c_tensors import CTensor
from ingot_compiler.backends.c.c_forms import read_form
from ingot_compiler.backends.c.model_text import support_text
from ingot_runtime.lazy_dataclass import dataclass

_FORM = "c-128"
_ARRAYS = {
    "float": "Float32Array", "double": "Float64Array", "int8_t": "Int8Array",
    "int16_t": "Int16Array", "int32_t": "Int32Array", "int64_t": "BigInt64Array",
    "uint8_t": "Uint8Array", "uint16_t": "Uint16Array", "uint32_t": "Uint32Array", "uint64_t": "BigUint64Array",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wasm:
    """``files``: names in the folder; ``size_bytes``: of the module."""

    facts: CFacts
    files: tuple[str, ...]
    size_bytes: int


def write_wasm(build: Scheduler, model: str, folder: str, choices: CChoices) -> Wasm:
    """Compile a model to WebAssembly, and write its files, each whole or not at all.

    Raises:
        UserError, UnsupportedError: as ``make_c_source``. OutputError: no space.
    """
    made = make_c_source(build, model, replace(choices, form=_FORM))
    facts, name = made.facts, made.facts.model
    sources = (
        (f"{name}.h", made.header),
        (f"{name}_support.h", support_text(read_form(_FORM))),
        (f"{name}_module.c", "\n".join((*_module_source(facts), ""))),
    )
    inputs = WasmInputs(name, made.source, sources, made.constants)
    module = build.run(build.need(COMPILE_WASM, inputs, name)).value()
    contents: dict[str, bytes | memoryview] = {
        f"{name}.wasm": module,
        f"{name}.mjs": _script(facts).encode(),
        f"{name}.d.mts": "\n".join((*_types(facts), "")).encode(),
    }
    for file_name, content in contents.items():
        with atomic_file(os.path.join(folder, file_name), lasting=True) as file:
            file.write(content)
    sync_folders([os.path.abspath(folder)])
    return Wasm(facts, tuple(contents), len(module))


def _module_source(facts: CFacts) -> Iterator[str]:
    """The functions that the module exports, and memory for inputs and outputs."""
    name = facts.model
    yield f'#include "{name}.h"'
    yield "#define EXPORT(name) __attribute__((export_name(name)))"
    for letter, tensors in (("i", facts.inputs), ("o", facts.outputs)):
        for number, tensor in enumerate(tensors):
            words = max(1, -(-tensor.size_bytes // 8))
            yield f"static uint64_t {letter}{number}[{words}] __attribute__((aligned(16)));"
        places = [f"{letter}{number}" for number in range(len(tensors))] or ["0"]
        yield f"static void *const {letter}s[] = {{{', '.join(places)}}};"
        yield f'EXPORT("{"input" if letter == "i" else "output"}")'
        yield f"void *{letter}_at(int number) {{ return {letter}s[number]; }}"
    yield f'EXPORT("message") const char *text(int code) {{ return {name}_message(code); }}'
    yield 'EXPORT("run") int run(void) {'
    for kind, letter, tensors in (("inputs", "i", facts.inputs), ("outputs", "o", facts.outputs)):
        places = [f"(void *){letter}{number}" for number in range(len(tensors))] or ["0"]
        yield f"  const struct {name}_{kind} {kind} = {{{', '.join(places)}}};"
    yield f"  return {name}_run(&inputs, &outputs);"
    yield "}"


def _script(facts: CFacts) -> str:
    folder = resources.files("ingot_build_rules.tools.export")
    text = (folder / "model.mjs").read_text(encoding="ascii")
    for word, value in (
        ("NAME.wasm", f"{facts.model}.wasm"),
        ("const INPUTS = [];", f"const INPUTS = {_table(facts.inputs)};"),
        ("const OUTPUTS = [];", f"const OUTPUTS = {_table(facts.outputs)};"),
    ):
        text = text.replace(word, value)
    return text


def _table(tensors: tuple[CTensor, ...]) -> str:
    rows = [
        {
            "name": tensor.name,
            "dtype": tensor.dtype,
            "array": _ARRAYS[tensor.c_type],
            "shape": list(tensor.shape),
        }
        for tensor in tensors
    ]
    return json.dumps(rows)


def _types(facts: CFacts) -> Iterator[str]:
    """The declarations for TypeScript."""
    for kind, tensors in (("Inputs", facts.inputs), ("Outputs", facts.outputs)):
        yield f"export interface {kind} {{"
        for tensor in tensors:
            shape = ", ".join(map(str, tensor.shape))
            yield f"  /** {tensor.dtype}[{shape}] */"
            yield f"  {json.dumps(tensor.name)}: {_ARRAYS[tensor.c_type]};"
        yield "}"
    yield "export interface Tensor { name: string; dtype: string; array: string; shape: number[]; }"
    yield "export class Model {"
    yield "  readonly inputs: readonly Tensor[];"
    yield "  readonly outputs: readonly Tensor[];"
    yield "  run(inputs: Inputs): Outputs;"
    yield "}"
    yield "type Source = URL | string | BufferSource | WebAssembly.Module;"
    yield "export function load(source?: Source): Promise<Model>;"

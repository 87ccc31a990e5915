"""Rule ``codegen``: LoopProgram to one kernel's object, named by its content.

In: a loop program, a target. Out: ``KernelObject``. Not done here: IR text and LLVM (``ingot_compiler.codegen``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingot_build_rules.engine.rule import Context, Rule
from ingot_compiler.codegen.kernel import KernelModule, kernel_module
from ingot_compiler.codegen.object import compile_object, compile_objects
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.targets.target import Target


@dataclass(frozen=True, slots=True)
class CodegenInputs:
    """``workers``: at most so many processes; the object is the same for any number."""

    program: LoopProgram
    target: Target
    workers: int


@dataclass(frozen=True, slots=True)
class KernelObject:
    """``content``: a relocatable object that defines ``symbol``; ``text``: the LLVM IR that it was made of."""

    symbol: str
    content: bytes
    text: str


def _compute(_: Context, inputs: CodegenInputs) -> KernelObject:
    module = kernel_module(inputs.program, inputs.target)
    return KernelObject(module.symbol, compile_object(module.text, inputs.target), module.text)


def _compute_all(_: Context, inputs: Sequence[CodegenInputs]) -> list[KernelObject]:
    modules = [kernel_module(item.program, item.target) for item in inputs]
    objects: dict[tuple[str, Target], bytes] = {}
    for target in sorted({item.target for item in inputs}, key=str):
        mine = [module for module, item in zip(modules, inputs, strict=True) if item.target == target]
        texts = {module.symbol: module.text for module in mine}
        compiled = compile_objects(tuple(texts.items()), target, max(item.workers for item in inputs))
        objects |= {(symbol, target): content for symbol, content in compiled.items()}
    return [_object(module, objects[module.symbol, item.target]) for module, item in zip(modules, inputs, strict=True)]


def _object(module: KernelModule, content: bytes) -> KernelObject:
    return KernelObject(module.symbol, content, module.text)


CODEGEN = Rule("codegen", 1, ("program", "target"), _compute, _compute_all)

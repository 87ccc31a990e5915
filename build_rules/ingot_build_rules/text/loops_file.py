"""Texts of loop programs, as ``--to loops`` prints them, to machine code: ``--from loops``.

In: a text with a program or several, each behind the target that it is for. Out: programs, symbols and bytes, assembly, an object.
Not done here: the models that such programs come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ingot_compiler.backends.host.compile_kernel import compile_kernel
from ingot_compiler.backends.host.emit.kernel import kernel_module
from ingot_compiler.backends.host.object import assembly_text
from ingot_compiler.backends.host.targets.target import parse_target
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.text_reader import Reader
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.parse_loops import read_loops
from ingot_compiler.lowering.print_loops import print_loops
from ingot_runtime.ingot_error import IngotError

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Kernel:
    """One program of such a text, and the target that it is for."""

    program: LoopProgram
    target: str


def read_kernels(text: str, targets: Sequence[str]) -> tuple[Kernel, ...]:
    """Read all programs; those before the first ``target "T"`` are for each of ``targets``.

    Raises:
        ModelError: the text does not parse, or is not valid; says line, column and rule. UserError: a target that is none.
    """
    reader, found = Reader("loops", text), list[Kernel]()
    current = tuple(targets)
    while reader.token.kind != "END":
        if reader.accept("target"):
            start = reader.token
            try:
                current = (str(parse_target(reader.string())),)
            except UserError as error:
                raise reader.fail(f"{error.what}: {error.why}", start) from None
            continue
        program = read_loops(reader)
        found += [Kernel(program, target) for target in current]
    if not found:
        raise reader.fail('expected "kernel", got the end of the text')
    return tuple(found)


def kernel_object(kernels: Sequence[Kernel]) -> bytes:
    """Return the object of the one kernel that a text has.

    Raises:
        UserError: it has several. ModelError: it cannot be compiled.
    """
    if len(kernels) != 1:
        why = f"expected one kernel for one target, got {len(kernels)}"
        raise UserError(
            "several kernels in one object", "command ingot compile --from loops", why, "give one of them alone"
        )
    return _made(kernels[0], lambda kernel: compile_kernel(kernel.program, kernel.target)[1])


def _made(kernel: Kernel, make: Callable[[Kernel], Made]) -> Made:
    try:
        return make(kernel)
    except IngotError:
        raise
    except Exception as error:  # noqa: BLE001  # loops that no compiler made fail in any way
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelError(
            "a kernel cannot be compiled", f"target {kernel.target}", why, "compare with --to loops"
        ) from None


def _library(kernel: Kernel) -> str:
    symbol, content = compile_kernel(kernel.program, kernel.target)
    return f"{symbol}: {len(content)} bytes\n"


def _assembly(kernel: Kernel) -> str:
    target = parse_target(kernel.target)
    return assembly_text(kernel_module(kernel.program, target).text, target)


KERNEL_TEXTS: Mapping[str, Callable[[Kernel], str]] = {
    "loops": lambda kernel: print_loops(kernel.program),
    "library": _library,
    "assembly": _assembly,
}
"""Stage -> its text of one kernel."""


def kernels_text(kernels: Sequence[Kernel], stage: str) -> str:
    """Return the text of a stage of ``KERNEL_TEXTS``, kernel by kernel, each target named before its own."""
    parts: list[str] = []
    target = ""
    for kernel in kernels:
        if kernel.target != target:
            target = kernel.target
            parts.append(f'target "{target}"\n')
        parts.append(_made(kernel, KERNEL_TEXTS[stage]))
    return "".join(parts)

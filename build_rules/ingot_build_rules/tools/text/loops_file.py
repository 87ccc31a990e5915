"""Texts of stage 7, as ``--to loops`` prints them, to machine code: ``--from loops``.

In: a text with a group or several, steps and kernels, each behind the target that it is for. Out:
the same text, symbols and bytes, assembly, an object. Not done here: the models that such groups
come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ingot_compiler.backends.host.hooks import compile_kernel
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.parse_lowered import read_lowered
from ingot_compiler.lowering.groups.print_lowered import print_lowered
from ingot_compiler.lowering.loops.kernel_of import kernel_of
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.targets.target import parse_target
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """Stage 7 of one group, and the target that it is for."""

    lowered: LoweredGroup
    target: str


def read_groups(text: str, targets: Sequence[str]) -> tuple[TargetGroup, ...]:
    """Read all groups; those before the first ``target "T"`` are for each of ``targets``.

    Raises:
        ModelError: the text does not parse, or is not valid; says line, column and rule. UserError:
            a target that is none.
    """
    reader, found = Reader("loops", text), list[TargetGroup]()
    current = tuple(targets)
    while reader.token.kind != "END":
        if reader.accept("target"):
            start = reader.token
            try:
                current = (str(parse_target(reader.string())),)
            except UserError as error:
                raise reader.fail(f"{error.what}: {error.why}", start) from None
            continue
        lowered = read_lowered(reader)
        found += [TargetGroup(lowered, target) for target in current]
    if not found:
        raise reader.fail('expected "kernel" or "group", got the end of the text')
    return tuple(found)


def kernel_object(groups: Sequence[TargetGroup]) -> bytes:
    """Return the object of the one kernel that a text has.

    Raises:
        UserError: it has several. ModelError: it cannot be compiled.
    """
    kernels = [(program, group.target) for group in groups for program in group.lowered.programs]
    if len(kernels) != 1:
        why = f"expected one kernel for one target, got {len(kernels)}"
        raise UserError(
            "several kernels in one object",
            "command ingot compile --from loops",
            why,
            "give one of them alone",
        )
    return _made(*kernels[0], lambda program, target: compile_kernel(program, target)[1])


def _made(program: LoopProgram, target: str, make: Callable[[LoopProgram, str], Made]) -> Made:
    try:
        return make(program, target)
    except IngotError:
        raise
    except Exception as error:  # noqa: BLE001  # loops that no compiler made fail in any way
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelError(
            "a kernel cannot be compiled",
            f"target {target}",
            why,
            ("compare with ", OptionRef("to", "loops")),
        ) from None


def _library(program: LoopProgram, target: str) -> str:
    symbol, content = compile_kernel(program, target)
    return f"{symbol}: {len(content)} bytes\n"


def _assembly(program: LoopProgram, target: str) -> str:
    parsed = parse_target(target)
    return assembly_text(llvm_text(kernel_module(program, parsed)), parsed)


def _of_kernels(make: Callable[[LoopProgram, str], str]) -> Callable[[TargetGroup], str]:
    """The texts of a group's kernels, one behind the other."""
    return lambda group: "".join(
        _made(kernel_of(program), group.target, make) for program in group.lowered.programs
    )


GROUP_TEXTS: Mapping[str, Callable[[TargetGroup], str]] = {
    "loops": lambda group: print_lowered(group.lowered),
    "library": _of_kernels(_library),
    "assembly": _of_kernels(_assembly),
}
"""Stage -> its text of one group."""


def groups_text(groups: Sequence[TargetGroup], stage: str) -> str:
    """Return the text of a stage of ``GROUP_TEXTS``, group by group, each target named before its
    own."""
    parts: list[str] = []
    target = ""
    for group in groups:
        if group.target != target:
            target = group.target
            parts.append(f'target "{target}"\n')
        parts.append(GROUP_TEXTS[stage](group))
    return "".join(parts)

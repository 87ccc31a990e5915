"""Assembly of a kernel in a bundle, made again from the loop program that the bundle carries for
this.

In: a bundle's description, a target, a symbol. Out: assembly text. Not done here: finding the
kernel (``inspect``).
"""

from __future__ import annotations

from typing import Any

from ingot_build_rules.tools.text.loop_record import read_program
from ingot_build_rules.tools.text.stripped import is_stripped
from ingot_compiler.backends.registry import kernel_text
from ingot_compiler.codegen.emit.kernel import kernel_module, kernel_symbol
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.ir.errors import UserError
from ingot_compiler.lowering.loops.kernel_of import kernel_of
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.targets.target import parse_target
from ingot_runtime.option_ref import OptionRef


def kernel_assembly(described: dict[str, Any], target: str, symbol: str) -> str:
    """Return the assembly of a kernel, or the text of it that a bundle carries.

    Raises:
        UserError: the bundle carries no record of it, or was made by another version, which made
            other code.
    """
    record = described["debug"].get("programs", {}).get(target, {}).get(symbol)
    if record is None:
        raise _no_record(described, symbol)
    try:
        program = kernel_of(read_program(record))
        made = kernel_symbol(program)
        text = _text(program, target) if made == symbol else ""
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001  # loops that no compiler made fail in any way
        what, why = "a kernel's record is damaged", f"{type(error).__name__}: {error}"
        do = "compile the model again"
        raise UserError(what, symbol, why.splitlines()[0], do) from None
    if made != symbol:
        what, why = "this version of Ingot would make another kernel", f"its record gives {made}"
        raise UserError(what, symbol, why, "inspect it with the version that made the bundle")
    return text if kernel_text(target) else assembly_text(text, parse_target(target))


def _text(program: LoopProgram, target: str) -> str:
    """LLVM IR, or what the device's driver compiles."""
    write = kernel_text(target)
    return (
        write(program, target) if write else llvm_text(kernel_module(program, parse_target(target)))
    )


def _no_record(described: dict[str, Any], symbol: str) -> UserError:
    what = "the bundle carries no record of the kernel"
    if is_stripped(described):
        strip = OptionRef("strip")
        why = ("it was compiled with ", strip, ", without the loops of its kernels")
        return UserError(
            what, symbol, why, "compile the model again, without it: `ingot compile MODEL`"
        )
    return UserError(what, symbol, do="compile the model again")

"""Assembly of a kernel in a bundle, made again from the loop program that the bundle carries for this.

In: a bundle's description, a target, a symbol. Out: assembly text. Not done here: finding the kernel (``inspect``).
"""

from __future__ import annotations

from typing import Any

from ingot_build_rules.rules.loop_record import read_program
from ingot_compiler.codegen.kernel import kernel_module
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.ir.errors import UserError
from ingot_compiler.targets.target import parse_target


def kernel_assembly(described: dict[str, Any], target: str, symbol: str) -> str:
    """Return the assembly of a kernel.

    Raises:
        UserError: the bundle carries no record of it, or was made by another version, which made other code.
    """
    record = described["debug"].get("programs", {}).get(target, {}).get(symbol)
    if record is None:
        raise UserError("the bundle carries no record of the kernel", where=symbol, do="compile the model again")
    chosen = parse_target(target)
    module = kernel_module(read_program(record), chosen)
    if module.symbol != symbol:
        made = described["lock"].get("toolchain", {}).get("ingot", "unknown")
        raise UserError(
            "this version of Ingot would make another kernel", where=symbol, why=f"the bundle was made by {made}",
            do="inspect it with that version",
        )  # fmt: skip
    return assembly_text(module.text, chosen)

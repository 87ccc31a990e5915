"""Pieces of IR text that several support functions use.

In: a target, a field's name. Out: text. Not done here: whole functions (one file per piece beside this one).
"""

from collections.abc import Iterable

from ingot_compiler.targets.target import Target
from ingot_runtime.format import abi


def attributes(target: Target, section: str) -> str:
    """Return attributes and a section of its own for a function, so that an image keeps only what it reaches."""
    return f'{target.function_attributes} section ".text.{section}"'


def pool_field(name: str, tag: str = "") -> str:
    """Define ``%NAME.p[TAG]``, the address of a field of the pool page ``%pool``."""
    return f"  %{name}.p{tag} = getelementptr i8, ptr %pool, i64 {abi.POOL_OFFSETS[name]}"


def spin_hint(target: Target) -> str:
    """Return the instruction of a waiting loop; a comment where the target has none."""
    return f"call void @{target.pause_intrinsic}" if target.pause_intrinsic else "; no hint"


def spin_hint_declaration(target: Target) -> str:
    """Declare the intrinsic that `spin_hint` calls."""
    if not target.pause_intrinsic:
        return ""
    name, _, values = target.pause_intrinsic.partition("(")
    kinds = ", ".join(value.split()[0] for value in values.rstrip(")").split(",") if value)
    return f"declare void @{name}({kinds})\n"


def vector(target: Target, element: str = "i32") -> str:
    """Return the type of the widest vector of 32-bit elements: ``<16 x i32>``."""
    return f"<{target.f32_lanes} x {element}>"


def join_pieces(pieces: Iterable[str]) -> str:
    """Join texts to one module; each intrinsic is declared once, at the end."""
    lines = [line for piece in pieces for line in piece.splitlines()]
    declarations = sorted({line for line in lines if line.startswith("declare ")})
    return "\n".join([*(line for line in lines if not line.startswith("declare ")), *declarations, ""])

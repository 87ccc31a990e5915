"""Pieces of IR text that several support functions use.

In: a target, a field's name. Out: text. Not done here: whole functions (one file per piece beside this one).
"""

from collections.abc import Iterable

from ingot_compiler.backends.host.targets.target import Target
from ingot_runtime.format import abi
from ingot_runtime.format.limits import MIB, TREE_ENTRY_SIZE_BYTES


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


def verifying_kernel(target: Target, name: str, compare: str) -> str:
    """Write a kernel over MiBs: it counts those that are as the tree says, and stops at the first that is not.

    `compare` defines ``%same`` from ``%data``, ``%entry.p`` (the row of the tree) and ``%scratch``. Buffers: base, tree,
    ``abi.VERIFIED``; scalar: the MiB of index 0.
    """
    good_at, bad_at = abi.VERIFIED.offsets["good"], abi.VERIFIED.offsets["bad"]
    return f"""
define hidden i32 @ingot_{name}_verify(ptr %buffers, ptr %scalars, i64 %from, i64 %to, ptr %scratch) {attributes(target, name)} {{
entry:
  %base = load ptr, ptr %buffers, align 8
  %tree.p = getelementptr ptr, ptr %buffers, i64 1
  %tree = load ptr, ptr %tree.p, align 8
  %verified.p = getelementptr ptr, ptr %buffers, i64 2
  %verified = load ptr, ptr %verified.p, align 8
  %start = load i64, ptr %scalars, align 8
  br label %next
next:
  %i = phi i64 [ %from, %entry ], [ %i.next, %good ]
  %some = icmp slt i64 %i, %to
  br i1 %some, label %look, label %all
all:
  ret i32 0
look:
  %mib = add i64 %start, %i
  %at = mul i64 %mib, {MIB}
  %data = getelementptr i8, ptr %base, i64 %at
  %row = mul i64 %mib, {TREE_ENTRY_SIZE_BYTES}
  %entry.p = getelementptr i8, ptr %tree, i64 %row
{compare}
  br i1 %same, label %good, label %bad
good:
  %good.p = getelementptr i8, ptr %verified, i64 {good_at}
  %counted = atomicrmw add ptr %good.p, i64 1 monotonic
  %i.next = add i64 %i, 1
  br label %next
bad:
  %bad.p = getelementptr i8, ptr %verified, i64 {bad_at}
  %least = atomicrmw umin ptr %bad.p, i64 %mib monotonic
  ret i32 {abi.RC_DAMAGED}
}}
"""

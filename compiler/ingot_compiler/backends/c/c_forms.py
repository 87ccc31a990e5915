"""The forms of C that kernels are written in: how wide vectors are, and for which machine loops are
cut.

In: a name. Out: ``CForm``. Not done here: the text (``c99_dialect``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.targets.target import Target
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CForm:
    """``lanes_max``: of f32 in a variable, 1 for C99 without extensions; ``machine``: the processor
    that loops are cut for, whose instructions C can say; ``loops_for``: the same as a target of the
    host."""

    name: str
    lanes_max: int
    machine: Target
    loops_for: str


_NARROW = Target("x86-64", "x86-64-v2", "", ())
_WIDE = Target("x86-64", "x86-64-v3", "", ("avx2", "fma"))
C_FORMS = (
    CForm("c", 1, _NARROW, "x86-64-v2"),
    CForm("c-128", 4, _NARROW, "x86-64-v2"),
    CForm("c-256", 8, _WIDE, "x86-64-v3"),
)
"""Numbers one by one; vectors of 128 bits; vectors of 256 bits with multiply-add. The first two
compute the same in the same order."""


def read_form(text: str) -> CForm:
    """Return the form of a name.

    Raises:
        UserError: another name.
    """
    for form in C_FORMS:
        if form.name == text:
            return form
    names = ", ".join(form.name for form in C_FORMS)
    what, why = f"unknown form of C {text!r}", f"expected one of {names}"
    raise UserError(what, f"target {text}", why, "write c for any compiler")

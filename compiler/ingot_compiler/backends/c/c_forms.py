"""The forms of C that kernels are written in: how wide vectors are, and for which machine loops are
cut.

In: a name. Out: ``CForm``. Not done here: the text (``c99_dialect``), what a target is
(``targets.target``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.errors import UserError
from ingot_compiler.targets.target import Target, parse_target
from ingot_runtime.lazy_dataclass import dataclass

_SAID_IN_C = ("avx2", "fma")
"""The features of a processor that C can say: as many lanes, and a multiply-add."""


@dataclass(frozen=True, slots=True)
class CForm:
    """``loops_for``: the target of the host that loops are cut and constants packed for; it has no
    instruction that one of them would count on and C cannot say, as ``f16c``. ``has_vectors``:
    whether loops are written with vectors, else number by number in C99 without extensions."""

    name: str
    loops_for: str
    has_vectors: bool

    @property
    def machine(self) -> Target:
        """The target that loops are cut for, without the instructions that C cannot say."""
        target = parse_target(self.loops_for)
        return replace(target, features=tuple(f for f in target.features if f in _SAID_IN_C))

    @property
    def lanes_max(self) -> int:
        """The number of f32 in a variable."""
        return self.machine.f32_lanes if self.has_vectors else 1


C_FORMS = (
    CForm("c", "x86-64-v2", has_vectors=False),
    CForm("c-small", "x86-64-v2:scalar", has_vectors=False),
    CForm("c-wide", "x86-64-v2+avx2", has_vectors=False),
    CForm("c-128", "x86-64-v2", has_vectors=True),
    CForm("c-256", "x86-64-v2+avx2+fma", has_vectors=True),
)
"""Numbers one by one, the default, which microcontrollers want; the same in loops cut for eight
lanes, which Clang makes vectors of, and which take twice as much code without them; vectors of 128
bits; vectors of 256 bits with multiply-add. ``c`` and ``c-128`` compute the same in the same
order."""


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

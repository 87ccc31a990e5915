"""Which version of the model a call runs: the first specialisation that its sizes fit, else the
general one.

In: profiles, an assembler that knows the sizes of inputs. Out: instructions that test and branch.
Not done here: what a version does (``main_sizes``, ``main_steps``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ingot_compiler.host_program.main_assembler import Assembler
from ingot_compiler.ir.sizes.profile import Profile, SizeRange


def fits_profile(out: Assembler, profile: Profile) -> int:
    """A register that is not 0 where the sizes of the call fit a profile."""
    return functools.reduce(
        functools.partial(out.binary, "mul"), [_fits_range(out, item) for item in profile]
    )


def _fits_range(out: Assembler, item: SizeRange) -> int:
    size = out.symbols[item.symbol]
    if item.least == item.most:
        return out.binary("eq", size, out.dim(item.least))
    above = out.binary("le", out.dim(item.least), size)
    return out.binary("mul", above, out.binary("le", size, out.dim(item.most)))


def each_version(out: Assembler, tests: Sequence[int], visit: Callable[[int], None]) -> None:
    """``visit`` the general version (0), then those of ``tests``, each where a branch leads to it.

    What is computed in one is not known in another, nor behind them: ``visit`` leaves by itself.
    """
    if not tests:
        visit(0)
        return
    known, symbols = out.known, out.symbols
    labels = [out.label() for _ in tests]
    for test, label in zip(tests, labels, strict=True):
        other = out.label()
        out.emit("branch", test, label, other)
        out.place(other)
    for number in range(1 + len(tests)):
        if number:
            out.place(labels[number - 1])
        out.known, out.symbols = dict(known), dict(symbols)
        visit(number)
    out.known, out.symbols = known, symbols

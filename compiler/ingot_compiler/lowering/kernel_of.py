"""A program as its kernel sees it: without how often it runs, so that equal loops over more or fewer
units are one kernel.

In: a loop program. Out: the same program of one unit. Not done here: naming kernels and writing
their code (back ends), launches (``host_program``).

A kernel is called with the range of units to run; how many there are in all, and how many are worth
a thread, is known to whoever launches it.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.lowering.loops import LoopProgram


def kernel_of(program: LoopProgram) -> LoopProgram:
    """Return the program that every one with this kernel has."""
    return replace(program, extent=1, grain=1)

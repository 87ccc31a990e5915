"""A program as its kernel sees it: without the number of its units, and without the names of its
sizes, so that equal loops over more or fewer units, over one size or another, are one kernel.

In: a loop program. Out: the same program of one unit, and what its caller passes. Not done here:
naming kernels and writing their code (back ends), launches (``host_program``).

A kernel is called with the range of units to run; how many there are in all, and how many are worth
a thread, is known to whoever launches it. Its scalars are called by their place. Where a program has
many, what it could compute from them alone is a scalar instead, which the caller computes: where a
part of a Concat begins, how long it is in all. So a kernel does not grow with the number of sizes.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.lowering.loops.fixed_sums import FixedSums
from ingot_compiler.lowering.loops.nested import bound_names, used_symbols
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.lowering.loops.substitute_indices import rewrite_indices, substitute_indices

SCALAR_COUNT_MAX = 8
"""The most scalars that are passed unchanged: registers for them cost nothing."""


def kernel_of(program: LoopProgram) -> LoopProgram:
    """Return the program that every one with this kernel has."""
    return _called_by_place(of_one_unit(_with_sums(program)[0]))


def of_one_unit(program: LoopProgram) -> LoopProgram:
    """The program whatever the units that it is launched for."""
    return replace(program, extent=1, grain=1)


def kernel_arguments(program: LoopProgram) -> tuple[Dim, ...]:
    """What the scalars of a program's kernel are, in the sizes of its launch."""
    return _with_sums(program)[1]


def _with_sums(program: LoopProgram) -> tuple[LoopProgram, tuple[Dim, ...]]:
    """The program over the scalars of its kernel, and what these are."""
    if len(program.scalars) <= SCALAR_COUNT_MAX:
        return program, tuple(map(symbol, program.scalars))
    sums = FixedSums(frozenset(program.scalars))
    body = rewrite_indices(program.body, sums.shorter)
    scratch_bytes = sums.shorter(program.scratch_bytes)
    used = set(used_symbols((body, scratch_bytes)))
    values: dict[str, Dim] = {name: symbol(name) for name in program.scalars}
    values |= {name: value for value, name in sums.names.items()}
    passed = tuple(name for name in values if name in used)
    made = replace(program, scalars=passed, body=body, scratch_bytes=scratch_bytes)
    return made, tuple(values[name] for name in passed)


def _called_by_place(program: LoopProgram) -> LoopProgram:
    """The program with names for its scalars that tell nothing of the model."""
    names = _names(len(program.scalars), "s")
    if names == program.scalars:
        return program
    prefix, bound = "s", bound_names(program.body)
    while not bound.isdisjoint(names):
        prefix += "_"
        names = _names(len(names), prefix)
    bindings = {old: symbol(new) for old, new in zip(program.scalars, names, strict=True)}
    body, scratch = substitute_indices((program.body, program.scratch_bytes), bindings)
    return replace(program, scalars=names, body=body, scratch_bytes=scratch)


def _names(count: int, prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{place}" for place in range(count))

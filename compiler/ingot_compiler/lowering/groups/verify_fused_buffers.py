"""Checks the buffers and constants of a fused graph.

In: a ``FusedGraph``. Out: problems. Not done here: steps (``verify_fused``).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from ingot_compiler.ir.dims import substitute, symbol_set
from ingot_compiler.ir.problem import Problem
from ingot_compiler.ir.specialise import profile_bindings
from ingot_compiler.ir.verify import find_problems
from ingot_compiler.lowering.groups.fused import BufferSpec, FusedGraph, HoldState

CONSTANT, BUFFER = -2, -1
"""First part of the path of a constant and of a buffer; that of a step is its index."""


def find_buffer_problems(fused: FusedGraph, sizes: frozenset[str]) -> Iterator[Problem]:
    """Every problem of the buffers, in order; ``sizes``: the symbols that inputs bind."""
    first_of_constant: dict[int, int] = {}
    for number, spec in enumerate(fused.buffers):
        yield from _place(number, spec)
        yield from _element_count(number, spec, sizes)
        count = _count_of_kind(fused, spec)
        if (spec.index >= 0) != (spec.kind != "workspace") or spec.index >= count:
            expected = "no number" if spec.kind == "workspace" else f"a number below {count}"
            yield _problem(number, expected, str(spec.index), f"which {spec.kind} a buffer is")
            continue
        if spec.kind == "constant":
            if first_of_constant.setdefault(spec.index, number) != number:
                expected, got = "one buffer of each constant", f"constant {spec.index} again"
                yield _problem(number, expected, got, "buffers of constants")
        elif spec.kind != "workspace":
            yield from _dense(fused, number, spec)


def _problem(number: int, expected: str, got: str, rule: str) -> Problem:
    return Problem((BUFFER, number), f"b{number}", expected, got, rule)


def _count_of_kind(fused: FusedGraph, spec: BufferSpec) -> int:
    """How many inputs, outputs or constants there are."""
    named = {"input": fused.inputs, "output": fused.outputs, "constant": fused.constants}
    return len(named.get(spec.kind, ()))


def _place(number: int, spec: BufferSpec) -> Iterator[Problem]:
    if spec.kind in ("input", "output") and spec.device:
        rule = f"an {spec.kind} lies on the host"
        yield _problem(number, "the host", f"device {spec.device}", rule)
    if spec.device < 0:
        yield _problem(number, "a device", str(spec.device), "devices of buffers")


def _element_count(number: int, spec: BufferSpec, sizes: frozenset[str]) -> Iterator[Problem]:
    count = spec.element_count
    if isinstance(count, int) and count < 0:
        yield _problem(number, "at least 0", str(count), "elements of buffers")
    if spec.kind in ("input", "constant") and not symbol_set(count) <= sizes:
        rule = "sizes of what is there from the start"
        yield _problem(number, "sizes of inputs", str(count), rule)


def _dense(fused: FusedGraph, number: int, spec: BufferSpec) -> Iterator[Problem]:
    """That an input or output has the elements of its tensor: of any size, or of a
    specialisation's."""
    tensor_type = (fused.inputs if spec.kind == "input" else fused.outputs)[spec.index]
    bindings = [profile_bindings(each.profile) for each in fused.specialisations]
    counts = [substitute(tensor_type.element_count, each) for each in ({}, *bindings)]
    if spec.kind == "output" and symbol_set(spec.element_count) & _capacities(fused, spec.index):
        return  # it has the pitch of the memory that a state is given, not that of its rows
    if tensor_type.dtype != spec.dtype or spec.element_count not in counts:
        expected = f"{tensor_type.dtype} x {tensor_type.element_count}"
        got = f"{spec.dtype} x {spec.element_count}"
        yield _problem(number, expected, got, f"an {spec.kind} is dense")


def _capacities(fused: FusedGraph, output: int) -> set[str]:
    """The symbols that say for how many rows there is memory where an output lies."""
    return {
        step.capacity
        for step in fused.steps
        if isinstance(step, HoldState)
        for pair in step.pairs
        if pair.output == output
    }


def find_unwritten_outputs(fused: FusedGraph, written: Set[int]) -> Iterator[Problem]:
    """Every output that has elements, and of whose buffers (each way to run may have its own) none
    is among those that were written."""
    outputs = [item for item in enumerate(fused.buffers) if item[1].kind == "output"]
    done = {spec.index for number, spec in outputs if number in written or spec.element_count == 0}
    for number, spec in outputs:
        if spec.index not in done:
            yield _problem(number, "a step that writes it", "none", "outputs are written")


def find_constant_problems(fused: FusedGraph, number: int) -> Iterator[Problem]:
    """Every problem of a constant: it is a graph without inputs, of its buffer's type."""
    yield from _constant_type(fused, number)
    for problem in find_problems(fused.constants[number]):
        yield replace(problem, path=(CONSTANT, number, *problem.path))


def _constant_type(fused: FusedGraph, number: int) -> Iterator[Problem]:
    path, name, expression = (CONSTANT, number), f"constant {number}", fused.constants[number]
    if expression.inputs or len(expression.outputs) != 1:
        got = f"{len(expression.inputs)} inputs, {len(expression.outputs)} outputs"
        yield Problem(path, name, "no input and one output", got, "constants are expressions")
        return
    specs = [spec for spec in fused.buffers if spec.kind == "constant" and spec.index == number]
    if not specs:
        yield Problem(path, name, "a buffer", "none", "buffers of constants")
    if expression.outputs[0] >= len(expression.types):
        return
    tensor_type = expression.types[expression.outputs[0]]
    for spec in specs:
        if (tensor_type.dtype, tensor_type.element_count) != (spec.dtype, spec.element_count):
            expected = f"{spec.dtype} x {spec.element_count}"
            got = f"{tensor_type.dtype} x {tensor_type.element_count}"
            yield Problem(path, name, expected, got, "a constant fills its buffer")

"""Checks that a fused graph is well formed: what the stages behind it may rely on.

In: a ``FusedGraph``. Out: nothing, or ``InternalError`` that names the step. Not done here: what it
computes.

Buffers exist, have one device, and are written before they are read; views lie in their buffers,
where the sizes are known; a kernel touches buffers of its own device alone, a copy joins two; sizes
are the host's, and bound before they are used; kinds are known; constants are expressions of their
buffer's type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_mul,
    is_symbol_name,
    substitute,
    symbol,
    symbol_set,
)
from ingot_compiler.ir.problem import Path, Problem, require_none
from ingot_compiler.ir.ranges import less
from ingot_compiler.ir.verify import find_problems
from ingot_compiler.lowering.fused import (
    BufferSpec,
    Copy,
    FusedGraph,
    Group,
    Grow,
    IfStep,
    Launch,
    LoopStep,
    Operand,
    Requirement,
    Step,
    SymbolRead,
    SymbolSet,
)

CONSTANT, BUFFER = -2, -1
"""First part of the path of a constant and of a buffer; that of a step is its index."""


def verify_fused(fused: FusedGraph, kinds: Collection[str] = ()) -> None:
    """Raise InternalError for the first problem; ``kinds``: of kernels that there are, none where
    nobody knows."""
    require_none(find_fused_problems(fused, kinds), "step", "fused graph", "fused")


def find_fused_problems(fused: FusedGraph, kinds: Collection[str] = ()) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    sizes = [
        name
        for kind in fused.inputs
        for dim in kind.shape
        for name in symbol_set(dim)
        if dim == symbol(name)
    ]
    first = len(fused.steps)
    if fused.specialisation is not None:
        first = fused.specialisation.first_step
        if not 0 <= first <= len(fused.steps):  # a way that has nothing to write has no steps
            expected = f"0 to {len(fused.steps)}"
            yield Problem(
                (), "special", expected, str(first), "the first step of the specialisation"
            )
            return
        for name, _ in fused.specialisation.sizes:
            if name not in sizes:
                yield Problem((), "special", "a size of an input", name, "what is specialised")
    yield from _buffers(fused, frozenset(sizes))
    for start, steps in ((0, fused.steps[:first]), (first, fused.steps[first:])):
        if steps:
            check = _Check(fused, kinds, set(sizes), _given(fused))
            yield from check.steps(steps, (), start)
            yield from check.outputs()
    for number, expression in enumerate(fused.constants):
        yield from _constant(fused, number)
        for problem in find_problems(expression):
            yield Problem(
                (CONSTANT, number, *problem.path),
                problem.name,
                problem.expected,
                problem.got,
                problem.rule,
            )


def _given(fused: FusedGraph) -> set[int]:
    """What is there before the first step."""
    return {
        number for number, spec in enumerate(fused.buffers) if spec.kind in ("input", "constant")
    }


def _buffers(fused: FusedGraph, sizes: frozenset[str]) -> Iterator[Problem]:
    counts = {
        "input": len(fused.inputs),
        "output": len(fused.outputs),
        "constant": len(fused.constants),
    }
    seen: set[tuple[str, int, int]] = set()
    for number, spec in enumerate(fused.buffers):
        path, name = (BUFFER, number), f"b{number}"
        if spec.kind in ("input", "output") and spec.device:
            yield Problem(
                path, name, "the host", f"device {spec.device}", f"an {spec.kind} lies on the host"
            )
        if spec.device < 0:
            yield Problem(path, name, "a device", str(spec.device), "devices of buffers")
        if isinstance(spec.element_count, int) and spec.element_count < 0:
            yield Problem(path, name, "at least 0", str(spec.element_count), "elements of buffers")
        if spec.kind in ("input", "constant") and not symbol_set(spec.element_count) <= sizes:
            yield Problem(
                path,
                name,
                "sizes of inputs",
                str(spec.element_count),
                "sizes of what is there from the start",
            )
        if (spec.index >= 0) != (spec.kind != "workspace") or spec.index >= counts.get(
            spec.kind, 0
        ):
            expected = (
                "no number" if spec.kind == "workspace" else f"a number below {counts[spec.kind]}"
            )
            yield Problem(path, name, expected, str(spec.index), f"which {spec.kind} a buffer is")
            continue
        if spec.kind == "constant" and (spec.kind, spec.index, 0) in seen:
            yield Problem(
                path,
                name,
                "one buffer of each constant",
                f"{spec.kind} {spec.index} again",
                "buffers of constants",
            )
        seen.add((spec.kind, spec.index, 0))
        if spec.kind in ("input", "output"):
            kind = (fused.inputs if spec.kind == "input" else fused.outputs)[spec.index]
            specialisation = (
                dict[str, Dim](fused.specialisation.sizes) if fused.specialisation else {}
            )
            counts_there = (kind.element_count, substitute(kind.element_count, specialisation))
            if kind.dtype != spec.dtype or spec.element_count not in counts_there:
                expected = f"{kind.dtype} x {kind.element_count}"
                yield Problem(
                    path,
                    name,
                    expected,
                    f"{spec.dtype} x {spec.element_count}",
                    f"an {spec.kind} is dense",
                )


def _constant(fused: FusedGraph, number: int) -> Iterator[Problem]:
    """A constant is a graph without inputs, of its buffer's type."""
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
    kind = expression.types[expression.outputs[0]]
    for spec in specs:
        if (kind.dtype, kind.element_count) != (spec.dtype, spec.element_count):
            got = f"{kind.dtype} x {kind.element_count}"
            yield Problem(
                path,
                name,
                f"{spec.dtype} x {spec.element_count}",
                got,
                "a constant fills its buffer",
            )


@dataclass(slots=True)
class _Check:
    """One way to run: the symbols that are bound and the buffers that hold something, as the steps
    pass."""

    fused: FusedGraph
    kinds: Collection[str]
    symbols: set[str]
    written: set[int]
    path: Path = field(default=())
    name: str = ""

    def problem(self, expected: str, got: str, rule: str) -> Problem:
        """A problem of the step at hand."""
        return Problem(self.path, self.name, expected, got, rule)

    def steps(self, steps: Sequence[Step], path: Path, first: int = 0) -> Iterator[Problem]:
        """The problems of some steps, in the order in which they run."""
        for index, step in enumerate(steps, first):
            self.path = (*path, index)
            self.name = step.kind if isinstance(step, Group) else type(step).__name__.lower()
            yield from self.step(step, self.path)

    def step(self, step: Step, path: Path) -> Iterator[Problem]:
        """The problems of one step; what it binds and writes is noted."""
        if isinstance(step, Group | SymbolRead | Copy | Requirement):
            yield from self.source(step.source)
        match step:
            case Group():
                yield from self.group(step)
            case Launch():
                yield from self.launch(step)
            case Copy():
                yield from self.copy(step)
            case SymbolRead():
                yield from self.read(step)
            case SymbolSet():
                yield from self.sizes(step.values)
                yield from self.bind(step.symbols)
            case Grow():
                yield from self.grow(step)
            case Requirement():
                yield from self.sizes((step.difference,))
            case IfStep():
                yield from self.sizes((symbol(step.condition),))
                yield from self.steps(step.then, (*path, 0))
                yield from self.steps(step.otherwise, (*path, 1))
            case LoopStep():
                yield from self.sizes(
                    (step.count, *([symbol(step.condition)] if step.condition else []))
                )
                for buffer in step.held:
                    yield from self.has(
                        buffer,
                        ("workspace", "output"),
                        "what is kept from one iteration to the next",
                    )
                yield from self.bind((step.counter,))
                yield from self.steps(step.body, (*path, 0))

    def outputs(self) -> Iterator[Problem]:
        """Every output that has elements is written; both ways to run may have a buffer for it."""
        done = {
            spec.index
            for number, spec in enumerate(self.fused.buffers)
            if spec.kind == "output" and (number in self.written or spec.element_count == 0)
        }
        for number, spec in enumerate(self.fused.buffers):
            if spec.kind == "output" and spec.index not in done:
                yield Problem(
                    (BUFFER, number),
                    f"b{number}",
                    "a step that writes it",
                    "none",
                    "outputs are written",
                )

    # ---- steps -----------------------------------------------------------------------------------

    def group(self, group: Group) -> Iterator[Problem]:
        """A kernel: its kind, its nodes, what it reads and writes."""
        if self.kinds and group.kind not in self.kinds:
            yield self.problem(
                f"one of {' '.join(sorted(self.kinds))}", group.kind, "kinds of kernels"
            )
        if not -1 <= group.anchor < len(group.nodes):
            yield self.problem(
                f"-1 to {len(group.nodes) - 1}", str(group.anchor), "which node decides the loops"
            )
        types = dict(group.types)
        # The node that decides the loops may find an operand in the buffer that it changes.
        named = {
            value
            for index, node in enumerate(group.nodes)
            if index != group.anchor
            for value in node.operands
        }
        given = {operand.value for operand in group.operands}
        made = {result for node in group.nodes for result in node.results}
        for value in sorted(named - given - made):
            yield self.problem(
                "a value that is read or made here", f"%{value}", "operands of a kernel's nodes"
            )
        yield from self.sizes(dim for kind in types.values() for dim in kind.shape)
        for operand in group.operands:
            yield from self.operand(operand, group, types.get(operand.value))
            if operand.buffer not in self.written and operand.type.element_count != 0:
                yield self.problem(
                    "a buffer that is written before", f"b{operand.buffer}", "what a kernel reads"
                )
        for result in group.results:
            yield from self.operand(result, group, types.get(result.value))
            yield from self.has(result.buffer, ("workspace", "output"), "what a kernel writes")
            self.written.add(result.buffer)

    def operand(self, operand: Operand, group: Group, kind: object) -> Iterator[Problem]:
        """What a kernel reads or writes: type, device, place."""
        yield from self.sizes((operand.view.offset, *operand.view.strides))
        if operand.type != kind:
            yield self.problem(str(kind), str(operand.type), f"type of %{operand.value}")
        spec = self.spec(operand.buffer)
        if spec is None:
            yield self.no_buffer(operand.buffer)
            return
        if spec.device != group.device:
            got = f"b{operand.buffer} on device {spec.device}"
            yield self.problem(
                f"buffers of device {group.device}",
                got,
                "a kernel touches buffers of its own device alone",
            )
        if spec.dtype != operand.type.dtype:
            yield self.problem(
                f"b{operand.buffer} of {operand.type.dtype}",
                spec.dtype,
                "a buffer has one element type",
            )
        if len(operand.view.strides) != operand.type.rank:
            got = str(len(operand.view.strides))
            yield self.problem(f"{operand.type.rank} strides", got, f"view of %{operand.value}")
            return
        yield from self.inside(operand, spec)

    def inside(self, operand: Operand, spec: BufferSpec) -> Iterator[Problem]:
        """That the first and last element of a view lie in the buffer, where their order can be
        seen."""
        if any(size == 0 for size in operand.type.shape):
            return
        low = high = operand.view.offset
        for size, stride in zip(operand.type.shape, operand.view.strides, strict=True):
            reach = dim_mul(dim_add(size, -1), stride)
            down = less(reach, 0)
            if down is None and not isinstance(reach, int):
                return  # sizes may be 0, too
            low, high = (dim_add(low, reach), high) if down else (low, dim_add(high, reach))
        if (isinstance(low, int) and low < 0) or less(high, spec.element_count) is False:
            expected = f"elements 0 to {dim_add(spec.element_count, -1)} of b{operand.buffer}"
            yield self.problem(expected, f"{low} to {high}", f"view of %{operand.value}")

    def launch(self, step: Launch) -> Iterator[Problem]:
        """One launch of a group that is expanded: buffers of its device, with something in those
        that the group reads."""
        yield from self.sizes(symbol(name) for _, name in step.names)
        reads = {
            operand.buffer for operand in step.group.operands if operand.type.element_count != 0
        }
        for buffer in step.buffers:
            spec = self.spec(buffer)
            if spec is None:
                yield self.no_buffer(buffer)
            elif spec.device != step.group.device:
                got = f"b{buffer} on device {spec.device}"
                rule = "a kernel touches buffers of its own device alone"
                yield self.problem(f"buffers of device {step.group.device}", got, rule)
            elif buffer in reads and buffer not in self.written:
                yield self.problem(
                    "a buffer that is written before", f"b{buffer}", "what a kernel reads"
                )
        for result in step.results:
            yield from self.has(result.buffer, ("workspace", "output"), "what a kernel writes")
        self.written.update(step.buffers)

    def copy(self, step: Copy) -> Iterator[Problem]:
        """Bytes from one device to another."""
        operand, result = self.spec(step.operand), self.spec(step.result)
        if operand is None or result is None:
            yield self.no_buffer(step.result if operand else step.operand)
            return
        if operand.device == result.device:
            yield self.problem(
                "buffers of two devices",
                f"device {result.device} twice",
                "a copy crosses between devices",
            )
        if (operand.dtype, operand.element_count) != (result.dtype, result.element_count):
            got = f"{result.dtype} x {result.element_count}"
            yield self.problem(
                f"{operand.dtype} x {operand.element_count}", got, "a copy is of a whole buffer"
            )
        if step.operand not in self.written:
            yield self.problem(
                "a buffer that is written before", f"b{step.operand}", "what is copied"
            )
        yield from self.has(step.result, ("workspace", "output"), "what a copy writes")
        self.written.add(step.result)

    def read(self, step: SymbolRead) -> Iterator[Problem]:
        """A size that a kernel has made."""
        yield from self.sizes((step.index,))
        yield from self.bind((step.symbol,))
        spec = self.spec(step.buffer)
        if spec is None:
            yield self.no_buffer(step.buffer)
            return
        if spec.device:
            yield self.problem(
                "a buffer of the host",
                f"b{step.buffer} on device {spec.device}",
                "sizes are the host's",
            )
        if spec.dtype != step.dtype:
            yield self.problem(spec.dtype, step.dtype, "a buffer has one element type")
        if step.buffer not in self.written:
            yield self.problem(
                "a buffer that is written before", f"b{step.buffer}", "what sizes are read from"
            )
        if less(step.index, 0) or less(step.index, spec.element_count) is False:
            yield self.problem(
                f"0 to {dim_add(spec.element_count, -1)}",
                str(step.index),
                f"elements of b{step.buffer}",
            )

    def grow(self, step: Grow) -> Iterator[Problem]:
        """Room for a buffer, by way of another."""
        yield from self.sizes((step.element_count, step.kept))
        buffers = [step.buffer] if step.spare == -1 else [step.buffer, step.spare]
        for buffer in buffers:
            yield from self.has(buffer, ("workspace", "output"), "buffers that grow")
            spec = self.spec(buffer)
            if spec is not None and spec.device:
                yield self.problem(
                    "a buffer of the host",
                    f"b{buffer} on device {spec.device}",
                    "grown buffers are the host's",
                )
        if len({spec.dtype for buffer in buffers if (spec := self.spec(buffer))}) > 1:
            yield self.problem(
                "one element type", f"b{step.buffer} and b{step.spare}", "buffers that grow"
            )

    # ---- parts -----------------------------------------------------------------------------------

    def spec(self, buffer: int) -> BufferSpec | None:
        """A buffer, if there is one of that number."""
        return self.fused.buffers[buffer] if 0 <= buffer < len(self.fused.buffers) else None

    def no_buffer(self, buffer: int) -> Problem:
        """The problem of a buffer that is not there."""
        return self.problem(f"b0 to b{len(self.fused.buffers) - 1}", f"b{buffer}", "buffers")

    def has(self, buffer: int, kinds: Sequence[str], rule: str) -> Iterator[Problem]:
        """That a buffer is of one of some kinds."""
        spec = self.spec(buffer)
        if spec is None:
            yield self.no_buffer(buffer)
        elif spec.kind not in kinds:
            yield self.problem(
                f"a buffer of kind {' or '.join(kinds)}", f"b{buffer}, {spec.kind}", rule
            )

    def source(self, source: Sequence[int]) -> Iterator[Problem]:
        """That nodes of the model are named in order."""
        if any(a >= b for a, b in pairwise(source)) or any(ordinal < 0 for ordinal in source):
            yield self.problem("ascending ordinals", str(list(source)), "source nodes")

    def sizes(self, dims: Iterable[Dim]) -> Iterator[Problem]:
        """That all symbols are bound."""
        for name in sorted({name for dim in dims for name in symbol_set(dim)} - self.symbols):
            yield self.problem(
                "a size of an input, or one that a step binds before", name, "symbols are bound"
            )

    def bind(self, names: Sequence[str]) -> Iterator[Problem]:
        """That names can be written down; they are bound from here on."""
        for name in names:
            if not is_symbol_name(name):
                yield self.problem("an identifier of the text form", repr(name), "names of symbols")
        self.symbols.update(names)

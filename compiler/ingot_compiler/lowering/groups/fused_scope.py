"""What a step of a fused graph can use: buffers, those that hold something, the symbols that are
bound.

In: a fused graph; what its steps bind and write, in order. Out: problems of buffers and symbols.
Not done here: the steps themselves (``verify_fused``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from ingot_compiler.ir.dims import Dim, is_symbol_name, symbol_set
from ingot_compiler.ir.problem import Path, Problem
from ingot_compiler.lowering.groups.fused import BufferSpec, FusedGraph
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(slots=True)
class FusedScope:
    """One way to run: the symbols that are bound and the buffers that hold something, as the steps
    pass. ``kinds``: of kernels, none where nobody knows; ``begun``: copies that have not ended,
    by operand and result; ``path`` and ``name``: of the step at
    hand."""

    fused: FusedGraph
    kinds: Collection[str]
    symbols: set[str]
    written: set[int]
    begun: set[tuple[int, int]]
    path: Path = ()
    name: str = ""

    def problem(self, expected: str, got: str, rule: str) -> Problem:
        """A problem of the step at hand."""
        return Problem(self.path, self.name, expected, got, rule)

    # ---- buffers ---------------------------------------------------------------------------------

    def spec(self, buffer: int) -> BufferSpec | None:
        """A buffer, if there is one of that number."""
        return self.fused.buffers[buffer] if 0 <= buffer < len(self.fused.buffers) else None

    def no_buffer(self, buffer: int) -> Problem:
        """The problem of a buffer that is not there."""
        return self.problem(f"b0 to b{len(self.fused.buffers) - 1}", f"b{buffer}", "buffers")

    def may_be_written(self, buffer: int, rule: str) -> Iterator[Problem]:
        """That a buffer is one that steps write."""
        spec = self.spec(buffer)
        if spec is None:
            yield self.no_buffer(buffer)
        elif spec.kind not in ("workspace", "output"):
            expected = "a buffer of kind workspace or output"
            yield self.problem(expected, f"b{buffer}, {spec.kind}", rule)

    def holds_something(self, buffer: int, rule: str) -> Iterator[Problem]:
        """That a buffer was written before."""
        if buffer not in self.written:
            yield self.problem("a buffer that is written before", f"b{buffer}", rule)

    def is_on_host(self, buffer: int, rule: str) -> Iterator[Problem]:
        """That a buffer, if it exists, is one of the host."""
        spec = self.spec(buffer)
        if spec is not None and spec.device:
            got = f"b{buffer} on device {spec.device}"
            yield self.problem("a buffer of the host", got, rule)

    # ---- symbols and sources ---------------------------------------------------------------------

    def source(self, source: Sequence[int]) -> Iterator[Problem]:
        """That nodes of the model are named in order."""
        if any(a >= b for a, b in pairwise(source)) or any(ordinal < 0 for ordinal in source):
            yield self.problem("ascending ordinals", str(list(source)), "source nodes")

    def sizes(self, dims: Iterable[Dim]) -> Iterator[Problem]:
        """That all symbols are bound."""
        expected = "a size of an input, or one that a step binds before"
        for name in sorted({name for dim in dims for name in symbol_set(dim)} - self.symbols):
            yield self.problem(expected, name, "symbols are bound")

    def bind(self, names: Sequence[str]) -> Iterator[Problem]:
        """That names can be written down; they are bound from here on."""
        for name in names:
            if not is_symbol_name(name):
                yield self.problem("an identifier of the text form", repr(name), "names of symbols")
        self.symbols.update(names)

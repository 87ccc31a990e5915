"""Writes one function: instructions, blocks, branches, loops.

In: calls that name instructions. Out: ``KernelIr``. Not done here: what to compute (``emit``), the
text (``llvm_text``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.codegen.function_code import Code, Values
from ingot_compiler.codegen.instructions import Instructions
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_runtime.lazy_dataclass import dataclass

LoopBody = Callable[[LlvmValue, Values], Sequence[LlvmValue]]
"""(index, carried) -> carried into the next round."""


@dataclass(frozen=True, slots=True)
class _LoopHead:
    """The first block of a loop: ``names`` are what rounds carry, ``starts`` what the block
    ``before`` gives them; ``phis`` is the place of the instructions that say so."""

    phis: Code
    before: str
    starts: Values
    names: Values


class Writer(Instructions):
    """One function under construction: straight-line code, and the blocks around it."""

    __slots__ = ()

    def new_label(self, hint: str) -> str:
        """A label that is not used yet."""
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        """Begin a block; the previous one must have ended."""
        self._sink.append(label)
        self.label = label

    def branch(self, label: str) -> None:
        """End the block with a jump."""
        self.write("br", labels=(label,))

    def branch_if(self, condition: LlvmValue, then: str, otherwise: str) -> None:
        """End the block with a two-way jump on a scalar i1."""
        self.write("br", (condition,), labels=(then, otherwise))

    def phi(self, sources: Sequence[tuple[LlvmValue, str]]) -> LlvmValue:
        """Merge values at the start of a block."""
        operands, labels = zip(*sources, strict=True)
        first = sources[0][0]
        return self.define("phi", operands, first.element, first.lanes, labels=labels)

    def if_then(self, condition: LlvmValue, body: Callable[[], None]) -> None:
        """Run ``body`` when a scalar i1 holds."""
        then, done = self.new_label("then"), self.new_label("done")
        self.branch_if(condition, then, done)
        self.start(then)
        body()
        self.branch(done)
        self.start(done)

    def if_else(
        self, condition: LlvmValue, body: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """Run ``body`` when a scalar i1 holds, else ``otherwise``."""
        then, other, done = (self.new_label(hint) for hint in ("then", "else", "done"))
        self.branch_if(condition, then, other)
        for label, write in ((then, body), (other, otherwise)):
            self.start(label)
            write()
            self.branch(done)
        self.start(done)

    def loop(
        self,
        first: LlvmValue,
        last: LlvmValue,
        step: int,
        carried: Sequence[LlvmValue],
        body: LoopBody,
        *,
        nonempty: bool = False,
    ) -> Values:
        """``for index in range(first, last, step): carried = body(index, carried)``; returns the
        last ``carried``.

        ``nonempty`` promises at least one round; for integer bounds it is seen.
        """
        if first.integer is not None and last.integer is not None:
            if first.integer >= last.integer:
                return tuple(carried)
            nonempty = True
        before, label, done = self.label, self.new_label("loop"), self.new_label("exit")
        if nonempty:
            self.branch(label)
        else:
            self.branch_if(self.compare("slt", first, last), label, done)
        head = self._open_loop(label, before, (first, *carried))
        index, *inside = head.names
        results = body(index, tuple(inside))
        following = self.binary("add", index, constant(step, first.element))
        latch = self.label
        self.branch_if(self.compare("slt", following, last), label, done)
        self._close_loop(head, (following, *results), latch)
        self.start(done)
        if nonempty:
            return tuple(results)
        pairs = zip(carried, results, strict=True)
        return tuple(self.phi(((old, before), (new, latch))) for old, new in pairs)

    def loop_while(
        self,
        carried: Sequence[LlvmValue],
        condition: Callable[[Values], LlvmValue],
        body: Callable[[Values], Sequence[LlvmValue]],
    ) -> Values:
        """``while condition(carried): carried = body(carried)``; the condition is a scalar i1."""
        before = self.label
        test, again, done = (self.new_label(hint) for hint in ("test", "loop", "exit"))
        self.branch(test)
        head = self._open_loop(test, before, tuple(carried))
        self.branch_if(condition(head.names), again, done)
        self.start(again)
        results = body(head.names)
        latch = self.label
        self.branch(test)
        self._close_loop(head, results, latch)
        self.start(done)
        return head.names

    def loop_with_between(
        self,
        count: LlvmValue,
        body: Callable[[LlvmValue], Values],
        between: Callable[[LlvmValue, Values], None],
    ) -> Values:
        """``body(0)``, then for each index from 1 to ``count - 1`` first ``between(index - 1, values)``
        with what ``body`` gave before, then ``body(index)``; returns what it gave last."""
        before = self.label
        label, again, done = (self.new_label(hint) for hint in ("loop", "again", "exit"))
        self.branch(label)
        head = self._open_loop(label, before, (constant(0, count.element),))
        (index,) = head.names
        values = body(index)
        following = self.binary("add", index, constant(1, index.element))
        self.branch_if(self.compare("slt", following, count), again, done)
        self.start(again)
        between(index, values)
        latch = self.label
        self.branch(label)
        self._close_loop(head, (following,), latch)
        self.start(done)
        return values

    def _open_loop(self, label: str, before: str, starts: Values) -> _LoopHead:
        """Begin the first block of a loop; what rounds carry gets its names."""
        self.start(label)
        names = tuple(self.fresh(value.element, value.lanes) for value in starts)
        return _LoopHead(self.mark(), before, starts, names)

    def _close_loop(self, head: _LoopHead, results: Sequence[LlvmValue], latch: str) -> None:
        """Say at the loop's head what a round that ends with the block ``latch`` carries into the
        next."""
        with self.at(head.phis):
            for name, start, again in zip(head.names, head.starts, results, strict=True):
                self.write("phi", (start, again), name, labels=(head.before, latch))

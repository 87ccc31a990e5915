"""Loops that carry no value, the remainder after whole steps, branches with a value.

In: extents, conditions, what one round or branch writes. Out: instructions. Not done here: loops of
a program (``for_loop``, ``reduce``), loops that carry sums (``Writer.loop``).
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.codegen.emit.operands import Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer


def for_each(
    w: Writer,
    first: LlvmValue,
    last: LlvmValue,
    step: int,
    body: Callable[[LlvmValue], None],
    *,
    nonempty: bool = False,
) -> None:
    """``for index in range(first, last, step): body(index)``.

    ``nonempty`` promises at least one round, as in ``Writer.loop``. One round that is known to be
    the only one has no loop.
    """
    ends = first.integer, last.integer
    if ends[0] is not None and ends[1] is not None and ends[0] < ends[1] <= ends[0] + step:
        body(first)
        return

    def turn(index: LlvmValue, _: Operands) -> Operands:
        body(index)
        return ()

    w.loop(first, last, step, (), turn, nonempty=nonempty)


def if_below(w: Writer, first: LlvmValue, extent: LlvmValue, body: Callable[[], None]) -> None:
    """Run ``body`` when ``first < extent``; no branch where both are known."""
    if first.integer is None or extent.integer is None:
        w.if_then(w.compare("slt", first, extent), body)
    elif first.integer < extent.integer:
        body()


def multiple_below(w: Writer, extent: LlvmValue, step: int) -> LlvmValue:
    """The greatest multiple of ``step`` up to ``extent``, which is not negative where ``step`` is no
    power of two; at least 0 if known."""
    if extent.integer is not None:
        return i64(max(extent.integer, 0) // step * step)
    if step & (step - 1):
        return w.sub(extent, w.binary("urem", extent, i64(step)))
    return w.binary("and", extent, i64(-step))


def values_if(
    w: Writer, condition: LlvmValue, otherwise: Operands, body: Callable[[], Operands]
) -> Operands:
    """The values of ``body``, which runs when a scalar i1 holds, else ``otherwise``."""
    before, then, done = w.label, w.new_label("then"), w.new_label("done")
    w.branch_if(condition, then, done)
    w.start(then)
    values = body()
    after = w.label
    w.branch(done)
    w.start(done)
    pairs = zip(otherwise, values, strict=True)
    return tuple(w.phi(((old, before), (new, after))) for old, new in pairs)

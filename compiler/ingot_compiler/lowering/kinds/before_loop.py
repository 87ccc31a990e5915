"""Moves what is the same in all rounds of a loop before the loop.

In: the statements of a round, the loop's variable. Out: those before the loop, those in it. Not
done here: index expressions, which are written outside of loops anyway (``emit.context``).

Of what is loaded, LLVM cannot see that the loop's stores leave it alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_compiler.ir.dims import Sum, symbols_of
from ingot_compiler.lowering.loops.loop_values import Load, Local
from ingot_compiler.lowering.loops.nested import nested
from ingot_compiler.lowering.loops.program import Let, LetIndex, Statement


def before_loop(
    statements: Sequence[Statement], variable: str, written: Collection[int]
) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """(Before, in) a loop that runs at least once; ``written``: buffers that it stores to."""
    before: list[Statement] = []
    inside: list[Statement] = []
    changing = {variable}
    for statement in statements:
        named = isinstance(statement, (Let, LetIndex))
        if named and not _reads(statement, changing, written):
            before.append(statement)
        else:
            inside.append(statement)
            changing |= {statement.name} if isinstance(statement, (Let, LetIndex)) else set()
    return tuple(before), tuple(inside)


def _reads(statement: Statement, names: Collection[str], buffers: Collection[int]) -> bool:
    """Whether a statement reads one of some names or buffers."""
    for item in nested(statement):
        if isinstance(item, Local):
            found = item.name in names
        elif isinstance(item, Load):
            found = item.buffer in buffers
        else:
            found = isinstance(item, Sum) and any(name in names for name in symbols_of(item))
        if found:
            return True
    return False

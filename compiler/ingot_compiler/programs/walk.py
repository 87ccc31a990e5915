"""Visits the expressions of a program, however deep, each once.

In: an expression. Out: all expressions in it, operands first or last; an expression rebuilt. Not
done here: anything about what an expression means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ingot_compiler.programs.expressions import Expression, FunctionLiteral


def with_devices(expression: Expression) -> tuple[Expression, ...]:
    """The operands, but for the body of a primitive function: it has no devices of its own."""
    is_kernel = isinstance(expression, FunctionLiteral) and expression.primitive
    return () if is_kernel else expression.operands


def all_operands(expression: Expression) -> tuple[Expression, ...]:
    """The operands."""
    return expression.operands


def post_order(
    roots: Iterable[Expression],
    operands_of: Callable[[Expression], tuple[Expression, ...]] = all_operands,
) -> Iterator[Expression]:
    """Every expression, behind its operands."""
    seen: set[Expression] = set()
    stack: list[tuple[Expression, bool]] = [(root, False) for root in reversed(list(roots))]
    while stack:
        expression, is_done = stack.pop()
        if is_done:
            yield expression
        elif expression not in seen:
            seen.add(expression)
            stack.append((expression, True))
            stack += [(operand, False) for operand in reversed(operands_of(expression))]


def pre_order(
    root: Expression,
    operands_of: Callable[[Expression], tuple[Expression, ...]] = all_operands,
) -> Iterator[Expression]:
    """Every expression, before its operands, from left to right."""
    seen: set[Expression] = set()
    stack = [root]
    while stack:
        expression = stack.pop()
        if expression not in seen:
            seen.add(expression)
            yield expression
            stack.extend(reversed(operands_of(expression)))


def rebuild(
    root: Expression, rule: Callable[[Expression, Sequence[Expression]], Expression]
) -> Expression:
    """``root`` with each expression replaced by what ``rule`` makes of it and of its new operands;
    what is shared stays shared."""
    made: dict[Expression, Expression] = {}
    for expression in post_order([root]):
        made[expression] = rule(expression, [made[operand] for operand in expression.operands])
    return made[root]


def keep(expression: Expression, operands: Sequence[Expression]) -> Expression:
    """The expression itself where its operands have not changed, else with the new ones."""
    if all(old is new for old, new in zip(expression.operands, operands, strict=True)):
        return expression
    return expression.with_operands(operands)

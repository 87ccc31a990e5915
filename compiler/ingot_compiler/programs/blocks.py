"""Finds in which block of its text each expression of a function is named or stands.

In: a function. Out: ``Blocks``. Not done here: writing the text (``print_expression``).

A block is the body of a function, a branch, an arm, or a ``let`` inside an expression. What several
read belongs to the innermost block around all of them.
"""

from __future__ import annotations

from dataclasses import field

from ingot_compiler.programs.expressions import (
    Expression,
    FunctionLiteral,
    GlobalReference,
    IfElse,
    LetIn,
    MatchData,
    Variable,
)
from ingot_compiler.programs.operators import is_source
from ingot_compiler.programs.walk import post_order
from ingot_runtime.lazy_dataclass import dataclass

LET = -1
"""In the place of an operand: the block that a ``let`` inside an expression opens."""
_DEPTH_MAX = 12  # of an expression in one line


@dataclass(slots=True)
class Blocks:
    """``named``: expressions with a number, and the block of each; ``block_of``: where any other
    stands; ``inner``: the block that an operand opens."""

    named: dict[Expression, int] = field(default_factory=dict[Expression, int])
    block_of: dict[Expression, int] = field(default_factory=dict[Expression, int])
    parents: list[int] = field(default_factory=lambda: [-1])
    depths: list[int] = field(default_factory=lambda: [0])
    inner: dict[tuple[Expression, int], int] = field(
        default_factory=dict[tuple[Expression, int], int]
    )

    def new(self, parent: int) -> int:
        """A block inside another one."""
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        return len(self.parents) - 1

    def common(self, one: int, other: int) -> int:
        """The innermost block around two."""
        while one != other:
            if self.depths[one] < self.depths[other]:
                one, other = other, one
            one = self.parents[one]
        return one


def find_blocks(function: FunctionLiteral) -> Blocks:
    """The blocks of a function, whose own body is block 1 in block 0."""
    order = list(post_order([function]))
    counts: dict[Expression, int] = {}
    for expression in order:
        for operand in expression.operands:
            counts[operand] = counts.get(operand, 0) + 1
    blocks = Blocks()
    blocks.block_of[function] = 0
    named = _too_deep(order, counts)
    named |= {one for one, count in counts.items() if count > 1 and not _is_word(one)}
    chained: set[Expression] = set()
    for expression in reversed(order):
        block = blocks.block_of[expression]
        if expression in named:
            blocks.named[expression] = block
        if isinstance(expression, LetIn) and expression not in chained:
            block = blocks.inner[expression, LET] = blocks.new(block)
        for index, operand in enumerate(expression.operands):
            inside = block
            if opens_block(expression, index):
                inside = blocks.inner[expression, index] = blocks.new(block)
            if operand not in named and (inside != block or _is_body(expression, index)):
                chained.add(operand)
            known = blocks.block_of.get(operand)
            blocks.block_of[operand] = inside if known is None else blocks.common(known, inside)
    return blocks


def opens_block(parent: Expression, index: int) -> bool:
    """Whether an operand is a block of its own, in braces."""
    return isinstance(parent, FunctionLiteral) or (
        isinstance(parent, IfElse | MatchData) and index > 0
    )


def _is_body(parent: Expression, index: int) -> bool:
    return isinstance(parent, LetIn) and index == 1


def _is_word(expression: Expression) -> bool:
    """Whether it is written again wherever it is read."""
    return isinstance(expression, Variable | GlobalReference) or is_source(expression)


def _too_deep(order: list[Expression], counts: dict[Expression, int]) -> set[Expression]:
    """Every so many levels, an expression that gets a number."""
    found: set[Expression] = set()
    depths: dict[Expression, int] = {}
    for expression in order:
        if isinstance(expression, LetIn) or _is_word(expression):
            depths[expression] = 0
            continue
        depth = 1 + max((depths[operand] for operand in expression.operands), default=0)
        if depth > _DEPTH_MAX and not isinstance(expression, FunctionLiteral):
            found.add(expression)
            depth = 0
        depths[expression] = 0 if counts.get(expression, 0) > 1 else depth
    return found

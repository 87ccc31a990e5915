"""Values that have few zeros, recognised by the ops that make them.

In: a value, what is known of the graph. Out: whether it is dense. Not done here: what follows
(``choose_winograd``), what ops say of themselves (``Trait.DENSE``).

ReLU and its kin give zeros on purpose; LeakyRelu, PRelu and Elu do not. An input of the model may
be anything.
"""

from __future__ import annotations

from typing import Protocol

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait


class ValueMakers(Protocol):
    """What is asked about values."""

    def maker(self, value: int) -> Node | None:
        """The node that makes a value, if one does."""
        ...

    def is_constant(self, value: int) -> bool:
        """Whether it is made from constants alone."""
        ...


_STEPS_MAX = 16  # back to the ops that decide: further ones are unknown


def is_dense(values: ValueMakers, value: int, steps: int = _STEPS_MAX) -> bool:
    """Whether the value is dense for all that is known of it; constants among operands are taken to
    have no zeros, but for branches: what is masked becomes a constant, mostly 0."""
    node = values.maker(value)
    if node is None or steps == 0:
        return False
    traits = OPS_BY_NAME[node.op].traits
    if Trait.DENSE in traits:
        return True
    if Trait.DENSE_OF_BRANCHES in traits:
        return all(is_dense(values, branch, steps - 1) for branch in node.operands[1:])
    computed = [operand for operand in node.operands if not values.is_constant(operand)]
    found = (is_dense(values, operand, steps - 1) for operand in computed)
    if Trait.DENSE_OF_ANY in traits:
        return any(found)
    is_like_all = Trait.DENSE_OF_ALL in traits or Trait.MOVEMENT in traits
    return is_like_all and bool(computed) and all(found)

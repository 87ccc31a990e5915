"""What passes, frontend and lowering may rely on of a core op beside its types, so that none of
them lists names.

In: nothing. Out: ``Trait``, a set of flags. Not done here: who has which (each op's file).
"""

from __future__ import annotations

from enum import Flag, auto


class Trait(Flag):
    """``NONE`` promises nothing, and is always right."""

    NONE = 0
    SOURCE = auto()
    """No operands, one result, no effect: attributes decide every element."""
    ELEMENTWISE = auto()
    """result[i] depends on operand[i] alone; operands broadcast as in numpy."""
    CHEAP = auto()
    """Computing an element again costs no more than loading it."""
    COMMUTATIVE = auto()
    """Two operands that may be exchanged."""
    EXACT = auto()
    """The reference gives the same bits on every machine: integers, or IEEE 754 operations that
    round once."""
    EXACT_ON_INTEGERS = auto()
    """The reference is ``EXACT`` for integers and booleans alone (the order of a float sum is
    numpy's)."""
    CLOSED = auto()
    """From floats of the result's type the op gives floats of that type without rounding, or rounds
    to it itself. So does every op that has ``MOVEMENT`` or ``INDEXED``."""
    DIVIDES = auto()
    """The op divides: for integers, the result of a divisor of 0 is not defined."""
    STEP = auto()
    """The result jumps where an operand that is a float changes a little: rounding decides between
    two answers."""
    MOVEMENT = auto()
    """Every element of the result is an element of an operand; attributes and sizes decide
    which."""
    CODES = auto()
    """Operands may be of a low-bit type: the op moves elements, or reads their bits. Every op that
    has ``MOVEMENT`` or ``INDEXED`` may, too."""
    INDEXED = auto()
    """The op is a ``MOVEMENT`` in which the integers of operand 1 decide which (of an op with a
    ``reduction``: if it is "none")."""
    DENSE = auto()
    """Few elements of the result are zero in practice, none on purpose: products, normalisations,
    smooth activations."""
    DENSE_OF_ANY = auto()
    """The result is dense if an operand is."""
    DENSE_OF_ALL = auto()
    """The result is dense if all operands are; so is what ``MOVEMENT`` gives."""
    DENSE_OF_BRANCHES = auto()
    """The result is dense if all operands but the first one are, which chooses between them."""

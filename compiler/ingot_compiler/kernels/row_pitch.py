"""The distance between the rows of a register tile in A.

In: A's index, the tile's height. Out: a number of elements, where that is one for all of them. Not
done here: the pointers (``contraction_rows``).

The rows of a convolution are pixels, whose index has quotients and remainders by the sizes of the
image. A tile that begins at a multiple of its height lies within one row of the image where the
height divides these.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Atom, Call, Dim, Symbol, symbol, symbol_set, terms_of
from ingot_compiler.lowering.kernel_target import KernelTarget

_FEW_REGISTERS = 16


def may_share_address(target: KernelTarget) -> bool:
    """Whether the pixels of a tile may have one address: LLVM then keeps elements that windows have
    in common, for which few registers have no room."""
    return target.vector_register_count > _FEW_REGISTERS


def row_pitch(index: Dim, row: str, height: int) -> int | None:
    """What each of the ``height`` values of ``row`` from a multiple of ``height`` on adds to the
    index; None where they add different numbers."""
    pitch = 0
    for monomial, factor in terms_of(index):
        pitches = [_pitch_of_atom(atom, row, height) for atom in monomial]
        moving = [each for each in pitches if each != 0]
        if moving and (len(pitches) > 1 or moving[0] is None):
            return None
        pitch += factor * sum(each for each in moving if each is not None)
    return pitch


def _pitch_of_atom(atom: Atom, row: str, height: int) -> int | None:
    if isinstance(atom, Symbol):
        return int(atom.name == row)
    if not any(row in symbol_set(part) for part in (atom.left, atom.right)):
        return 0
    if _is_whole(atom, row, height):
        return int(atom.function == "mod")
    parts = [row_pitch(part, row, height) for part in (atom.left, atom.right)]
    return 0 if parts == [0, 0] else None


def _is_whole(call: Call, row: str, height: int) -> bool:
    """Whether a quotient is one number for the tile, and a remainder rises with the row."""
    if call.function not in ("floordiv", "mod") or call.left != symbol(row):
        return False
    return isinstance(call.right, int) and call.right % height == 0

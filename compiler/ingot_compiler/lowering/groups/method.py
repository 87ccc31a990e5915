"""How the loops of one group are computed: the kind of kernel, and the parameters of that kernel.

In: nothing. Out: ``Method``; ``method_language``, how one is written and read. Not done here: choosing one
(``kernels.products``).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.lowering.loops.strassen import StrassenShape
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.text.spelling import Language

KindName = Annotated[str, "of a kind of kernel"]


@dataclass(frozen=True, slots=True)
class Method:
    """``kind`` picks the lowering; most kinds have one way to run, and need nothing else.

    ``factor``: how the second factor of a product lies; "" as it is stored. ``weight_shape``: of a
    convolution's weights as the graph has them, before they are laid out anew. ``parts``: how many
    parts of bf16 each factor is made of. ``has_addends``: what is added to the columns of the
    second factor is one more operand. ``tile``: rows and columns of results of a tile by Winograd's
    algorithm. ``strassen``: tiles by Strassen's. ``digits``: how many bytes stand for a number of
    the first factor; 0 where it is multiplied as it is.
    """

    TEXT: ClassVar = (
        "$kind| factor=$factor|| weight_shape=[$weight_shape]|| parts=$parts|| has_addends|"
        "| tile=[$tile]|| strassen=$strassen|| digits=$digits|"
    )
    kind: KindName
    factor: str = ""
    weight_shape: tuple[Dim, ...] = ()
    parts: int = 1
    has_addends: bool = False
    tile: tuple[int, ...] = ()
    strassen: StrassenShape | None = None
    digits: int = 0

    def __str__(self) -> str:
        """Return the kind, and the fields that say more: ``winograd_2x2 factor=panels tile=[2, 2]``."""
        return method_language().show(self)


@cache
def method_language() -> Language:
    """How a method is written and read: made when one is, which most processes do not."""
    from ingot_compiler.ir.text.read_terms import read_dim
    from ingot_compiler.ir.text.spelling import Language, Speller
    from ingot_compiler.ir.text.text_reader import Reader

    return Language(
        {
            int: Speller(str, Reader.integer),
            str: Speller(str, Reader.name),
            KindName: Speller(str, lambda reader: reader.name("a kind of kernel")),
            Dim: Speller(format_dim, read_dim),
        }
    )

"""How the loops of one group are computed: by which kind of kernel, and what that kernel is told.

In: nothing. Out: ``Method``, which prints itself, and ``read_method``. Not done here: choosing one
(``backends``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, fields
from typing import Any

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.ir.text.read_terms import read_dim
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.lowering.loops.strassen import StrassenShape
from ingot_runtime.lazy_dataclass import dataclass


def _dims(reader: Reader) -> tuple[Dim, ...]:
    reader.expect("[")
    return reader.items(lambda: read_dim(reader), "]")


def _ints(reader: Reader, count: int) -> tuple[int, ...]:
    start = reader.expect("[")
    found = reader.items(reader.integer, "]")
    if len(found) != count:
        raise reader.fail(f"expected {count} numbers, got {len(found)}", start)
    return found


def _field(default: object, read: Callable[[Reader], object]) -> Any:
    """A field that is printed where it is not ``default``, and how its value is read back."""
    return field(default=default, metadata={"read": read})


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

    kind: str
    factor: str = _field("", Reader.name)
    weight_shape: tuple[Dim, ...] = _field((), _dims)
    parts: int = _field(1, Reader.integer)
    has_addends: bool = _field(False, lambda reader: bool(reader.integer()))
    tile: tuple[int, ...] = _field((), lambda reader: _ints(reader, 2))
    strassen: StrassenShape | None = _field(
        None, lambda reader: StrassenShape.of(_ints(reader, StrassenShape.COUNT))
    )
    digits: int = _field(0, Reader.integer)

    def __str__(self) -> str:
        """Return the kind, and the fields that say more: ``winograd_2x2 factor=panels tile=[2, 2]``."""
        return " ".join((self.kind, *_said(self)))


def _said(method: Method) -> Iterator[str]:
    for each in fields(method)[1:]:
        value = getattr(method, each.name)
        if value != each.default:
            yield f"{each.name}={_text(value)}"


def _text(value: str | int | StrassenShape | tuple[Dim, ...]) -> str:
    if isinstance(value, StrassenShape):
        value = value.ints
    if isinstance(value, tuple):
        return f"[{', '.join(map(format_dim, value))}]"
    return value if isinstance(value, str) else str(int(value))


def read_method(reader: Reader) -> Method:
    """Read what ``str`` of a method writes."""
    kind, said = reader.name("a kind of kernel"), dict[str, Any]()
    readers = {each.name: each.metadata["read"] for each in fields(Method)[1:]}
    while reader.ahead() == "=":
        name = reader.choice(tuple(readers))
        reader.expect("=")
        said[name] = readers[name](reader)
    return Method(kind, **said)

"""Symbols that are bound while ``main`` runs, and buffers whose size depends on them: both forms of
control flow need them.

In: the fuser, values and sizes. Out: steps that read and set symbols, buffers and their growth. Not
done here: branches and loops (``control``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, symbol, symbols_of
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.relayout import dense
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.fused import BufferSpec, Grow, SymbolRead, SymbolSet
from ingot_compiler.lowering.groups.views import Shape, dense_view

Sizes = Sequence[tuple[Dim, Dim]]
"""Symbols, and what they are to be set to."""


def new_symbol(fuser: Fuser) -> str:
    """A symbol that no size has."""
    return fuser.symbols.new(fuser.values.size_names())


def is_name(dim: Dim, names: frozenset[str]) -> bool:
    """Whether a size is one of some symbols, and nothing else."""
    return not isinstance(dim, int) and any(
        dim == symbol(name) for name in symbols_of(dim) if name in names
    )


def named_sizes(shape: Shape, own: Shape, names: frozenset[str]) -> Sizes:
    """The sizes of ``shape`` that only the run decides, and what they are in ``own``."""
    pairs = zip(shape, own, strict=True)
    return [(dim, size) for dim, size in pairs if is_name(dim, names)]


def is_true(fuser: Fuser, value: int) -> bool:
    """Whether a condition is the literal."""
    return fuser.values.literal(value) == 1


def read_number(fuser: Fuser, value: int, name: str = "") -> str:
    """Bind a symbol, a new one unless given, to the one element of a value that is no size."""
    name = name or new_symbol(fuser)
    known = fuser.values.literal(value)
    if known is not None:
        set_symbols(fuser, [(symbol(name), known)])
        return name
    stored, dtype = dense(fuser, value), fuser.values.type_of(value).dtype
    fuser.append(SymbolRead(name, stored.buffer, stored.view.offset, dtype, is_size=False))
    fuser.symbols.bind((name,))
    return name


def set_symbols(fuser: Fuser, sizes: Sizes) -> None:
    """Set symbols, all at once; those that are equal already are left out."""
    changed = [(next(iter(symbols_of(dim))), size) for dim, size in sizes if dim != size]
    if changed:
        names, values = zip(*changed, strict=True)
        fuser.append(SymbolSet(names, values))
        fuser.symbols.bind(names)


def new_buffer(
    fuser: Fuser,
    tensor_type: TensorType,
    names: frozenset[str] = frozenset(),
    *,
    grows: bool = False,
) -> int:
    """A dense buffer; a block that grows when its size is not known when ``main`` begins."""
    fuser.symbols.bind(names)
    spec = BufferSpec("workspace", tensor_type.dtype, tensor_type.element_count)
    return fuser.storage.add(spec, grows=grows or fuser.symbols.are_in(tensor_type.element_count))


def grow_block(fuser: Fuser, buffer: int, element_count: Dim) -> None:
    """Append the step that enlarges a block that grows."""
    if fuser.storage.grows(buffer):
        fuser.append(Grow(buffer, element_count))


def store_dense(fuser: Fuser, value: int, buffer: int) -> None:
    """Compute or copy a value into a buffer, which is enlarged for it."""
    tensor_type = fuser.values.type_of(value)
    grow_block(fuser, buffer, tensor_type.element_count)
    fuser.store(value, Stored(buffer, dense_view(tensor_type.shape)))

"""The bundle's inputs and outputs as outsiders see them: names, dtypes, sizes or symbols.

In: tensor types of the graph, the user's names. Out: ``Interface``, within the limits of the bundle
format. Not done here: encoding (``ingot_artifacts``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, format_dim_in_names
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.message import within
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.types import DType, TensorType, dtype_code, dtype_size_bytes
from ingot_runtime.format.interface import Signature
from ingot_runtime.format.limits import (
    ELEMENT_COUNT_MAX,
    NAME_SIZE_BYTES_MAX,
    RANK_MAX,
    SYMBOL_COUNT_MAX,
    TENSOR_COUNT_MAX,
)
from ingot_runtime.lazy_dataclass import dataclass

_NAME_SHOWN = 64  # characters of a name that may be too long
_SIZE_SHOWN = 1024  # bytes of a computed size, which may be made of many


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """One input or output; a dimension is a size or the text of an expression over the user's
    symbols."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Interface:
    """All inputs and outputs, in the model's order; ``values``: name and form of each input, and of
    each output, where some are no tensors."""

    inputs: tuple[NamedTensor, ...]
    outputs: tuple[NamedTensor, ...]
    values: tuple[tuple[tuple[str, str], ...], ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every dimension that is a text, in order of first appearance."""
        dims = [dim for tensor in (*self.inputs, *self.outputs) for dim in tensor.shape]
        return tuple(dict.fromkeys(dim for dim in dims if isinstance(dim, str)))

    def signatures(self) -> tuple[tuple[Signature, ...], tuple[Signature, ...]]:
        """Return inputs and outputs without names: (dtype code, dims with
        ``-(symbol index + 1)``)."""
        numbers = {name: index for index, name in enumerate(self.symbols)}

        def sign(tensor: NamedTensor) -> Signature:
            dims = tuple(
                dim if isinstance(dim, int) else -(numbers[dim] + 1) for dim in tensor.shape
            )
            return dtype_code(tensor.dtype), dims

        return tuple(map(sign, self.inputs)), tuple(map(sign, self.outputs))


def make_interface(
    inputs: tuple[TensorType, ...], outputs: tuple[TensorType, ...], names: Names
) -> Interface:
    """Join types with names. Sizes that are different expressions have different texts, whatever
    the user calls his dimensions."""
    shapes = [tensor_type.shape for tensor_type in (*inputs, *outputs)]
    texts = _texts([dim for shape in shapes for dim in shape], dict(names.symbols))

    def named(name: str, tensor_type: TensorType) -> NamedTensor:
        shape = tuple(dim if isinstance(dim, int) else texts[dim] for dim in tensor_type.shape)
        return NamedTensor(name, tensor_type.dtype, shape)

    return Interface(
        tuple(map(named, names.inputs, inputs)),
        tuple(map(named, names.outputs, outputs)),
    )


def _texts(dims: Sequence[Dim], called: dict[str, str]) -> dict[Dim, str]:
    """What each open size is called: the user's names come first, so that one which is spelled like
    a computed size keeps its spelling."""
    texts: dict[Dim, str] = {}
    taken: set[str] = set()
    for dim in sorted(dict.fromkeys(dims), key=lambda dim: bare_symbol(dim) not in called):
        if not isinstance(dim, int):
            text = within(format_dim_in_names(dim, called), _SIZE_SHOWN)
            while text in taken:
                text = f"({text})"
            taken.add(text)
            texts[dim] = text
    return texts


def check_interface(interface: Interface) -> None:
    """Raise LimitError where the bundle format cannot hold the interface."""
    for what, tensors in (("input", interface.inputs), ("output", interface.outputs)):
        _check(len(tensors), TENSOR_COUNT_MAX, f"{what}s", f"the model's {what}s")
        for tensor in tensors:
            _check_tensor(tensor, f"{what} {tensor.name[:_NAME_SHOWN]!r}")
    symbol_count, where = len(interface.symbols), "the model's inputs and outputs"
    _check(symbol_count, SYMBOL_COUNT_MAX, "different open sizes", where)


def _check_tensor(tensor: NamedTensor, where: str) -> None:
    for text in (tensor.name, *(dim for dim in tensor.shape if isinstance(dim, str))):
        text_bytes = len(text.encode(errors="surrogatepass"))
        _check(text_bytes, NAME_SIZE_BYTES_MAX, "bytes in a name", where, "rename it, export again")
    _check(len(tensor.shape), RANK_MAX, "dimensions", where)
    sizes = [max(dim, 1) for dim in tensor.shape if isinstance(dim, int)]
    size_bytes = math.prod(sizes) * dtype_size_bytes(tensor.dtype)
    _check(size_bytes, ELEMENT_COUNT_MAX, "bytes", where)


def _check(
    found: int, limit: int, unit: str, where: str, do: str = "make the model smaller"
) -> None:
    if found > limit:
        why = f"expected at most {limit} {unit}, got {found}"
        what = "a bundle cannot hold this model's inputs and outputs"
        raise LimitError(what, where, why, do)


def signatures_of(
    inputs: tuple[TensorType, ...], outputs: tuple[TensorType, ...]
) -> tuple[tuple[Signature, ...], tuple[Signature, ...]]:
    """Return the signatures of inputs and outputs, which no name decides."""
    nameless = Names("", ("",) * len(inputs), ("",) * len(outputs), (), ())
    return make_interface(inputs, outputs, nameless).signatures()

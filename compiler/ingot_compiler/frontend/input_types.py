"""Types of graph inputs: the file's dimensions, the user's sizes (``--shape``), canonical symbols.

In: ``ValueInfoProto`` of each input and the sizes the user gave. Out: ``InputTypes`` with symbols
s0, s1, .. by first appearance, what the user calls each, and which of them the user's sizes bind.
Not done here: other tensors' shapes (``infer_types``), binding the sizes (``ir/specialise``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import TensorShapeProto, ValueInfoProto

from ingot_compiler.frontend.findings import ImportFinding, tensor_finding
from ingot_compiler.frontend.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.frontend.suggest import suggest
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.message import OptionRef, Text, message
from ingot_compiler.ir.types import DType, TensorType
from ingot_runtime.format.limits import RANK_MAX, SIZE_BYTES_MAX

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class InputTypes:
    """``types`` of all inputs; ``symbols``: (canonical symbol, user's name); ``sizes``: (canonical
    symbol, ``--shape``)."""

    types: tuple[TensorType, ...]
    symbols: tuple[tuple[str, str], ...]
    sizes: tuple[tuple[str, int], ...]


def input_types(
    inputs: Sequence[ValueInfoProto], shapes: Shapes, findings: list[ImportFinding]
) -> InputTypes:
    """Types of all inputs; unsupported inputs go to ``findings``."""
    _check_names(inputs, shapes)
    sizes = _given_sizes(inputs, shapes)
    symbols: dict[str, str] = {}
    types: list[TensorType] = []
    for value in inputs:
        dtype = _dtype(value)
        if dtype is None:
            findings.append(_finding(value, _type_name(value), "an input type that Ingot has not"))
        elif not _has_shape(value) and value.name not in shapes:
            reason = message("its number of dimensions is not given; give ", OptionRef("shape"))
            findings.append(_finding(value, dtype, reason))
        else:
            types.append(TensorType(dtype, _shape(value, shapes.get(value.name), symbols)))
    return InputTypes(
        tuple(types),
        tuple((canonical, user) for user, canonical in symbols.items()),
        tuple((canonical, sizes[user]) for user, canonical in symbols.items() if user in sizes),
    )


def _finding(value: ValueInfoProto, dtype: str, reason: Text) -> ImportFinding:
    return tensor_finding(f"input {value.name!r}", dtype, reason)


def _dtype(value: ValueInfoProto) -> DType | None:
    """The element type of a tensor; None for another one than Ingot's, and for other values."""
    is_tensor = value.type.WhichOneof("value") == "tensor_type"
    return dtype_of(value.type.tensor_type.elem_type) if is_tensor else None


def _has_shape(value: ValueInfoProto) -> bool:
    return bool(value.type.tensor_type.HasField("shape"))


def _type_name(value: ValueInfoProto) -> str:
    kind = value.type.WhichOneof("value") or "no type"
    if kind == "tensor_type":
        return onnx_dtype_name(value.type.tensor_type.elem_type)
    return kind.removesuffix("_type")


def _check_names(inputs: Sequence[ValueInfoProto], shapes: Shapes) -> None:
    names = [value.name for value in inputs]
    listed = ", ".join(map(repr, names))
    for name in sorted(set(shapes) - set(names)):
        close = suggest(name, names)
        do = f"did you mean {close!r}?" if close else f"the inputs are {listed or 'none'}"
        why = f"expected one of {listed or 'none: the model has no inputs'}"
        raise UserError(f"the model has no input {name!r}", OptionRef("shape", name), why, do)


def _dims(value: ValueInfoProto) -> Sequence[TensorShapeProto.Dimension]:
    dims: Sequence[TensorShapeProto.Dimension] = value.type.tensor_type.shape.dim
    return dims


def _given_sizes(inputs: Sequence[ValueInfoProto], shapes: Shapes) -> dict[str, int]:
    """User's name of an open dimension -> size, from all ``--shape`` options together."""
    sizes: dict[str, int] = {}
    for value in inputs:
        given = shapes.get(value.name)
        if given is not None and _has_shape(value):
            _take_sizes(value, given, sizes)
    return sizes


def _take_sizes(value: ValueInfoProto, given: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Put the sizes of one ``--shape`` into ``sizes``; UserError when they contradict those there,
    or the file's."""
    what, dims = "a shape contradicts the model", _dims(value)
    where = OptionRef("shape", f"{value.name}={'x'.join(map(str, given))}")
    if len(given) != len(dims):
        why = f"expected {len(dims)} sizes, got {len(given)}"
        raise UserError(what, where, why, _DO)
    for axis, (dim, size) in enumerate(zip(dims, given, strict=True)):
        fixed = _fixed(dim)
        expected = sizes.setdefault(_user_name(value, axis), size) if fixed is None else fixed
        in_range = 0 <= size <= SIZE_BYTES_MAX
        if not in_range or expected != size:
            wanted = expected if in_range else f"a size from 0 to {SIZE_BYTES_MAX}"
            why = f"expected {wanted} for dimension {axis}, got {size}"
            raise UserError(what, where, why, _DO)


def _user_name(value: ValueInfoProto, axis: int) -> str:
    """What to call an open dimension; ``?`` is what some exporters write for each one that they do
    not know, and makes none equal to another."""
    name = _dims(value)[axis].dim_param
    return f"{value.name}.{axis}" if name in ("", "?") else name


def _fixed(dim: TensorShapeProto.Dimension) -> int | None:
    """The size that the file gives, if it gives no name; a negative one is what some exporters
    write for an unknown one."""
    if dim.dim_param or not dim.HasField("dim_value") or dim.dim_value < 0:
        return None
    return int(dim.dim_value)


def _shape(
    value: ValueInfoProto, given: tuple[int, ...] | None, symbols: dict[str, str]
) -> tuple[Dim, ...]:
    if given is not None and not _has_shape(value):
        return given
    shape: list[Dim] = []
    for axis, dim in enumerate(_dims(value)):
        fixed = _fixed(dim)
        if fixed is None:
            name = symbols.setdefault(_user_name(value, axis), f"s{len(symbols)}")
            shape.append(symbol(name))
        else:
            shape.append(fixed)
    if len(shape) > RANK_MAX:
        what, why = "an input has too many dimensions", f"at most {RANK_MAX}, got {len(shape)}"
        raise ModelError(what, f"input {value.name!r}", why)
    return tuple(shape)


_DO = "give the sizes that the model allows (see `ingot inspect`)"

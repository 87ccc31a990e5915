"""Types of graph inputs: the file's dimensions, the user's sizes (``--shape``), canonical symbols.

In: ``ValueInfoProto`` of each input and the sizes the user gave. Out: ``InputTypes`` with symbols
s0, s1, .. by first appearance, what the user calls each, and which of them the user's sizes bind.
Not done here: other tensors' shapes (``infer_types``), binding the sizes (``ir/specialise``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import TensorShapeProto, ValueInfoProto

from ingot_compiler.frontend.findings import ImportFinding
from ingot_compiler.frontend.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.frontend.suggest import suggest
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.types import TensorType
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
        tensor = value.type.tensor_type
        dtype = (
            dtype_of(tensor.elem_type) if value.type.WhichOneof("value") == "tensor_type" else None
        )
        if dtype is None:
            findings.append(
                ImportFinding(
                    f"input {value.name!r}",
                    "",
                    "",
                    0,
                    _type_name(value),
                    "an input type that Ingot has not",
                )
            )
            continue
        if not tensor.HasField("shape") and value.name not in shapes:
            reason = "its number of dimensions is not given; give --shape"
            findings.append(ImportFinding(f"input {value.name!r}", "", "", 0, dtype, reason))
            continue
        types.append(TensorType(dtype, _shape(value, shapes.get(value.name), symbols)))
    return InputTypes(
        tuple(types),
        tuple((canonical, user) for user, canonical in symbols.items()),
        tuple((canonical, sizes[user]) for user, canonical in symbols.items() if user in sizes),
    )


def _type_name(value: ValueInfoProto) -> str:
    kind = value.type.WhichOneof("value") or "no type"
    return (
        onnx_dtype_name(value.type.tensor_type.elem_type)
        if kind == "tensor_type"
        else kind.removesuffix("_type")
    )


def _check_names(inputs: Sequence[ValueInfoProto], shapes: Shapes) -> None:
    names = [value.name for value in inputs]
    for name in sorted(set(shapes) - set(names)):
        close = suggest(name, names)
        do = (
            f"did you mean {close!r}?"
            if close
            else f"the inputs are {', '.join(map(repr, names)) or 'none'}"
        )
        why = f"expected one of {', '.join(map(repr, names)) or 'none: the model has no inputs'}"
        raise UserError(f"the model has no input {name!r}", f"--shape {name}", why, do)


def _dims(value: ValueInfoProto) -> Sequence[TensorShapeProto.Dimension]:
    dims: Sequence[TensorShapeProto.Dimension] = value.type.tensor_type.shape.dim
    return dims


def _given_sizes(inputs: Sequence[ValueInfoProto], shapes: Shapes) -> dict[str, int]:
    """User's name of an open dimension -> size, from all ``--shape`` options together."""
    sizes: dict[str, int] = {}
    for value in inputs:
        given = shapes.get(value.name)
        if given is None or not value.type.tensor_type.HasField("shape"):
            continue
        where, dims = f"--shape {value.name}={'x'.join(map(str, given))}", _dims(value)
        if len(given) != len(dims):
            raise UserError(
                "a shape contradicts the model",
                where,
                f"expected {len(dims)} sizes, got {len(given)}",
                _DO,
            )
        for axis, (dim, size) in enumerate(zip(dims, given, strict=True)):
            fixed = _fixed(dim) if not dim.dim_param else None
            expected = sizes.setdefault(_user_name(value, axis), size) if fixed is None else fixed
            if not 0 <= size <= SIZE_BYTES_MAX or expected not in (None, size):
                wanted = (
                    expected
                    if 0 <= size <= SIZE_BYTES_MAX
                    else f"a size from 0 to {SIZE_BYTES_MAX}"
                )
                why = f"expected {wanted} for dimension {axis}, got {size}"
                raise UserError("a shape contradicts the model", where, why, _DO)
    return sizes


def _user_name(value: ValueInfoProto, axis: int) -> str:
    """What to call an open dimension."""
    return _dims(value)[axis].dim_param or f"{value.name}.{axis}"


def _fixed(dim: TensorShapeProto.Dimension) -> int | None:
    """The size that the file gives; a negative one is what some exporters write for an unknown
    one."""
    return int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def _shape(
    value: ValueInfoProto, given: tuple[int, ...] | None, symbols: dict[str, str]
) -> tuple[Dim, ...]:
    if given is not None and not value.type.tensor_type.HasField("shape"):
        return given
    shape: list[Dim] = []
    for axis, dim in enumerate(_dims(value)):
        fixed = _fixed(dim) if not dim.dim_param else None
        name = _user_name(value, axis)
        shape.append(
            fixed if fixed is not None else symbol(symbols.setdefault(name, f"s{len(symbols)}"))
        )
    if len(shape) > RANK_MAX:
        raise ModelError(
            "an input has too many dimensions",
            f"input {value.name!r}",
            f"at most {RANK_MAX}, got {len(shape)}",
        )
    return tuple(shape)


_DO = "give the sizes that the model allows (see `ingot inspect`)"

"""Types of graph inputs: the file's dimensions, the user's sizes (``--shape``), canonical symbols.

In: ``ValueInfoProto`` of each input and the shapes the user gave. Out: ``InputTypes`` with symbols
s0, s1, .. by first appearance, what the user calls each, and what the user's profiles bind. Not
done here: other tensors' shapes (``infer_types``), what a profile may be (``input_profiles``),
binding the sizes (``ir/specialise``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import TensorShapeProto, ValueInfoProto

from ingot_compiler.frontend.inputs.dimension_names import DimensionNames
from ingot_compiler.frontend.inputs.input_profiles import Dims, Shapes, check_names, input_profiles
from ingot_compiler.frontend.inputs.same_names import Groups
from ingot_compiler.frontend.model.findings import ImportFinding, tensor_finding
from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.message import Text, message
from ingot_compiler.ir.sizes.given_shape import GivenSize
from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.ir.types import DType, TensorType
from ingot_runtime.format.limits import RANK_MAX
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef


@dataclass(frozen=True, slots=True)
class InputTypes:
    """``types`` of all inputs; ``symbols``: (canonical symbol, user's name); ``profiles``: what the
    user's shapes bind, by canonical symbols; ``alike``: symbols of one name in the file."""

    types: tuple[TensorType, ...]
    symbols: tuple[tuple[str, str], ...]
    profiles: tuple[Profile, ...]
    alike: Groups


def input_types(
    inputs: Sequence[ValueInfoProto],
    shapes: Shapes,
    findings: list[ImportFinding],
    *,
    strict_dims: bool = False,
) -> InputTypes:
    """Types of all inputs; unsupported inputs go to ``findings``. ``strict_dims``: dimensions of
    one name are one size."""
    check_names([value.name for value in inputs], shapes)
    names = DimensionNames()
    dims = {value.name: _dims(value, shapes, names) for value in inputs}
    known: dict[str, tuple[DType, Dims]] = {}
    for value in inputs:
        dtype, own = _dtype(value), dims[value.name]
        if dtype is None:
            findings.append(_finding(value, _type_name(value), "an input type that Ingot has not"))
        elif own is None:
            option = message(OptionRef("shape", f"{value.name}=1x3x224x224"))
            reason = "its number of dimensions is not given"
            findings.append(_finding(value, dtype, reason, option))
        else:
            known[value.name] = dtype, own
    symbols = _Symbols(names, strict_dims=strict_dims)
    for _, own in known.values():
        symbols.add(own)
    types = tuple(
        TensorType(dtype, symbols.shape(name, own)) for name, (dtype, own) in known.items()
    )
    given = {name: own for name, own in dims.items() if own is not None}
    profiles = tuple(map(symbols.profile, input_profiles(given, shapes)))
    return InputTypes(types, tuple(symbols.called.items()), profiles, symbols.alike())


class _Symbols:
    """Symbols of open dimensions: one for each name, in order of appearance, then one for each
    further dimension of that name, which is called by its place."""

    def __init__(self, names: DimensionNames, *, strict_dims: bool) -> None:
        self.called: dict[str, str] = {}
        self._names, self._strict_dims = names, strict_dims
        self._groups: dict[str, list[str]] = {}
        self._met: set[str] = set()

    def add(self, dims: Dims) -> None:
        """Give the names of an input their first symbols."""
        for dim in dims:
            if isinstance(dim, str) and dim not in self._groups:
                self._groups[dim] = [self._new(dim)]

    def shape(self, name: str, dims: Dims) -> tuple[Dim, ...]:
        """The shape of the input ``name``."""
        if len(dims) > RANK_MAX:
            what, why = "an input has too many dimensions", f"at most {RANK_MAX}, got {len(dims)}"
            raise ModelError(what, f"input {name!r}", why)
        return tuple(
            dim if isinstance(dim, int) else symbol(self._of(dim, f"{name}.{axis}"))
            for axis, dim in enumerate(dims)
        )

    def _of(self, dim: str, place: str) -> str:
        group = self._groups[dim]
        if dim in self._met and not self._strict_dims:
            group.append(self._new(self._names.of_place(place)))
            return group[-1]
        self._met.add(dim)
        return group[0]

    def _new(self, called: str) -> str:
        name = f"s{len(self.called)}"
        self.called[name] = called
        return name

    def profile(self, profile: Profile) -> Profile:
        """A profile by symbols: a name binds all dimensions that have it."""
        return tuple(
            replace(item, symbol=name)
            for item in profile
            for name in self._groups.get(item.symbol, ())
        )

    def alike(self) -> Groups:
        """The symbols of each name that several dimensions have."""
        return tuple(tuple(group) for group in self._groups.values() if len(group) > 1)


def _finding(value: ValueInfoProto, dtype: str, reason: Text, option: Text = "") -> ImportFinding:
    return tensor_finding(f"input {value.name!r}", dtype, reason, option)


def has_dtype(value: ValueInfoProto) -> bool:
    """Whether an input is a tensor of an element type that Ingot has."""
    return _dtype(value) is not None


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


def _dims(value: ValueInfoProto, shapes: Shapes, names: DimensionNames) -> Dims | None:
    """Sizes and names of an input; where the model does not say how many, what all shapes of the
    user have in common. None where nobody says."""
    if _has_shape(value):
        declared: Sequence[TensorShapeProto.Dimension] = value.type.tensor_type.shape.dim
        return tuple(_dim(dim, f"{value.name}.{axis}", names) for axis, dim in enumerate(declared))
    given = [each[value.name] for each in shapes if value.name in each]
    if not given:
        return None
    columns = zip(*(shape for shape in given if len(shape) == len(given[0])), strict=True)
    return tuple(
        _common(sizes, f"{value.name}.{axis}", names) for axis, sizes in enumerate(columns)
    )


def _dim(dim: TensorShapeProto.Dimension, place: str, names: DimensionNames) -> int | str:
    """The size that the file gives, else what to call it: what the file does, or its ``place``.

    A negative size and the name ``?`` are what some exporters write for what they do not know; the
    latter makes no size equal to another.
    """
    if dim.dim_param or not dim.HasField("dim_value") or dim.dim_value < 0:
        unnamed = dim.dim_param in ("", "?")
        return names.of_place(place) if unnamed else names.of_declared(dim.dim_param)
    return int(dim.dim_value)


def _common(sizes: Sequence[GivenSize], place: str, names: DimensionNames) -> int | str:
    size = sizes[0]
    if size is None or size[0] != size[1] or set(sizes) != {size}:
        return names.of_place(place)
    return size[0]

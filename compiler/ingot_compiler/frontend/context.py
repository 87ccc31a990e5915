"""What a translation of one ONNX node works with: operands, attributes, a builder, known values.

In: an imported node and the graph built so far. Out: core ops in the builder. Not done here: the
loop over nodes (``infer_types``), common constructions (``compose``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.frontend.imported import ImportedAttribute
from ingot_compiler.frontend.known_values import (
    DeferredValue,
    KnownValues,
    as_known_values,
    is_known,
    known_or_none,
    propagate,
    symbols_appear,
)
from ingot_compiler.frontend.unify_sizes import Detour, unify_sizes
from ingot_compiler.ir.attributes import Attribute, text_attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.dims import Dim, Sum, dim_add, dim_mul, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import ConstantSource, Graph
from ingot_compiler.ir.message import NodeRef, Text, message
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.types import FLOATS, DType, TensorType, dtype_size_bytes
from ingot_runtime.format.limits import ELEMENT_COUNT_MAX, SIZE_BYTES_MAX

RANK_MAX = 64  # of an intermediate tensor; inputs and outputs have the bundle format's own limit
INDEX_DTYPES = ("i32", "i64")  # of ONNX's indices
_LITERAL_COUNT_MAX = 1024


class Unsupported(Exception):
    """A translation refuses a valid node; ``reason`` says why. Collected, all are listed at
    once."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class Translation:
    """The graph built so far, what is known of its values, and where constants are read."""

    builder: GraphBuilder
    read: ConstantReader
    known_values: dict[int, KnownValues | DeferredValue] = field(
        default_factory=dict[int, KnownValues | DeferredValue]
    )
    dims_read: dict[tuple[int, int], Dim] = field(default_factory=dict[tuple[int, int], Dim])
    stored: dict[int, ConstantSource] = field(
        default_factory=dict[int, ConstantSource]
    )  # whose elements are indices
    local: dict[str, memoryview] = field(
        default_factory=dict[str, memoryview]
    )  # constants of function bodies, by a name of their own
    makers: dict[str, tuple[int, ...]] = field(
        default_factory=dict[str, tuple[int, ...]]
    )  # name of a size that is known at run time only -> the nodes that compute it

    def fresh_symbols(self, count: int, source: tuple[int, ...]) -> tuple[str, ...]:
        """Names that no other size of the graph or of a region has; ``source``: the nodes that
        compute the sizes."""
        # Not s.., the sizes of inputs, nor a letter and a number, which loop programs call their
        # variables.
        names = tuple(f"size{len(self.makers) + number}" for number in range(count))
        self.makers.update(dict.fromkeys(names, source))
        return names

    def bytes_of(self, weight: str) -> memoryview:
        """The bytes of a constant of the model or of a function body."""
        return self.local[weight] if weight in self.local else self.read(weight)


@dataclass(frozen=True, slots=True)
class RegionBody:
    """A graph that is an attribute: ``translate`` puts its nodes into the builder, over value ids
    of its inputs."""

    input_count: int
    output_count: int
    translate: Callable[[Sequence[int]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class OpContext:
    """One node under translation. Operand value ids are None where an optional operand is absent.

    ``source`` and ``mark`` go to every core op made. ``wanted``: which results somebody may read.
    """

    translation: Translation
    op: str
    domain: str
    opset: int
    attributes: dict[str, ImportedAttribute | RegionBody]
    operands: tuple[int | None, ...]
    wanted: tuple[bool, ...]
    source: tuple[int, ...]
    mark: str = ""

    # -- operands and attributes -------------------------------------------------------------------

    def optional(self, position: int) -> int | None:
        """Operand ``position``, None when absent."""
        return self.operands[position] if position < len(self.operands) else None

    def operand(self, position: int) -> int:
        """Operand ``position``; OpTypeError when absent."""
        value = self.optional(position)
        if value is None:
            raise OpTypeError(f"operand {position}", "none")
        return value

    def given(self) -> tuple[int, ...]:
        """All operands that are present."""
        return tuple(value for value in self.operands if value is not None)

    def wants(self, position: int) -> bool:
        """Whether result ``position`` has a name."""
        return position < len(self.wanted) and self.wanted[position]

    def int_attribute(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name, default)
        if isinstance(value, int):
            return value
        raise OpTypeError(f"attribute {name} to be an integer", repr(value))

    def float_attribute(self, name: str, default: float) -> float:
        """A float attribute; a default is the f32 of the operator schemas, as an attribute of the
        file is."""
        value = self.attributes.get(name, rounded_to(default, "f32"))
        if isinstance(value, float):
            return value
        raise OpTypeError(f"attribute {name} to be a float", repr(value))

    def string_attribute(self, name: str, default: str, allowed: Sequence[str] = ()) -> str:
        """A string attribute, one of ``allowed`` when given."""
        value = self.attributes.get(name, default)
        if isinstance(value, str) and (not allowed or value in allowed):
            return value
        raise OpTypeError(
            f"attribute {name} to be {' or '.join(allowed) or 'a string'}", repr(value)
        )

    def ints_attribute(
        self, name: str, default: Sequence[int] | None = None
    ) -> tuple[int, ...] | None:
        """A list of integers; ``default`` when absent."""
        value = self.attributes.get(name, None if default is None else tuple(default))
        if value is None:
            return None
        ints = (
            tuple(item for item in value if isinstance(item, int))
            if isinstance(value, tuple)
            else None
        )
        if ints is None or not isinstance(value, tuple) or len(ints) != len(value):
            raise OpTypeError(f"attribute {name} to be a list of integers", repr(value))
        return ints

    def body(self, name: str) -> RegionBody:
        """A graph attribute."""
        value = self.attributes.get(name)
        if isinstance(value, RegionBody):
            return value
        raise OpTypeError(f"attribute {name} to be a graph", repr(value))

    # -- types -------------------------------------------------------------------------------------

    def type_of(self, value: int) -> TensorType:
        """The type of a value."""
        return self.translation.builder.types[value]

    def shape_of(self, value: int) -> tuple[Dim, ...]:
        """The shape of a value."""
        return self.type_of(value).shape

    def dtype_of(self, value: int) -> DType:
        """The element type of a value."""
        return self.type_of(value).dtype

    def rank_of(self, value: int) -> int:
        """The number of dimensions of a value."""
        return self.type_of(value).rank

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front; OpTypeError outside of [-rank, rank)."""
        if not -rank <= axis < rank:
            raise OpTypeError(f"axis in [{-rank}, {rank})", axis)
        return axis + rank if axis < 0 else axis

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Axes counted from the front, each named once, ascending."""
        counted = sorted(self.axis(axis, rank) for axis in axes)
        if len(set(counted)) < len(counted):
            raise OpTypeError("every axis at most once", list(axes))
        return tuple(counted)

    # -- building ----------------------------------------------------------------------------------

    def fresh_symbols(self, count: int) -> tuple[str, ...]:
        """Names of sizes that this node computes."""
        return self.translation.fresh_symbols(count, self.source)

    def add(self, op: OpName, *operands: int, **attributes: Attribute) -> int:
        """Append a core op; where its result is known, a literal or ``dim_values`` takes its
        place."""
        translation = self.translation
        operands = self._agreeing(op, attributes, operands)
        types = [self.type_of(operand) for operand in operands]
        results = OPS_BY_NAME[op].infer(types, attributes).results
        for result in results:
            self._check_size(result)
        if len(results) != 1:
            return translation.builder.add(op, operands, attributes, self.source, self.mark)
        pairs = [
            (type_, translation.known_values.get(operand))
            for type_, operand in zip(types, operands, strict=True)
        ]
        known_values = propagate(op, attributes, pairs, results[0]) if operands else None
        found = None if results[0].dtype in FLOATS else known_or_none(known_values)
        # One element of ``dim_values`` is a choice among all of them.
        if (
            found is not None
            and is_known(found)
            and (found.size <= RANK_MAX or not symbols_appear(found))
        ):
            return self.known(results[0].dtype, found)
        value = translation.builder.add(op, operands, attributes, self.source, self.mark)
        if isinstance(known_values, DeferredValue) or (
            known_values is not None and any(item is not None for item in known_values.flat)
        ):
            translation.known_values[value] = known_values
        if op == "reshape" or (op == "cast" and results[0].dtype in INDEX_DTYPES):
            translation.stored.update(
                {value: translation.stored[operands[0]]}
                if operands[0] in translation.stored
                else {}
            )
        return value

    def add_regions(
        self, op: OpName, operands: Sequence[int], regions: Sequence[Graph], **attributes: Attribute
    ) -> tuple[int, ...]:
        """Append a core op of control flow; all its results."""
        values = self.translation.builder.add_regions(
            op, operands, regions, attributes, self.source, self.mark
        )
        for value in values:
            self._check_size(self.type_of(value))
        return values

    def _agreeing(
        self, op: OpName, attributes: dict[str, Attribute], operands: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Operands whose sizes agree, some of them behind a run-time check."""
        detours = unify_sizes(op, attributes, [self.type_of(operand) for operand in operands])
        for detour, operand in zip(detours, operands, strict=True):
            self._require_equal(detour, self.shape_of(operand))
        return tuple(
            operand if detour is None else self.add(detour[0], operand, shape=detour[1])
            for operand, detour in zip(operands, detours, strict=True)
        )

    def _require_equal(self, detour: Detour | None, shape: tuple[Dim, ...]) -> None:
        """A reshape compares element counts: where it stands for several sizes, each is
        compared."""
        pairs = (
            [pair for pair in zip(shape, detour[1], strict=False) if pair[0] != pair[1]]
            if detour
            else []
        )
        if detour is not None and detour[0] == "reshape" and len(pairs) > 1:
            for own, wanted in pairs:
                what = message("expected equal sizes, got ", own, " and ", wanted)
                self.add(
                    "require_dim",
                    difference=dim_add(own, dim_mul(wanted, -1)),
                    what=text_attribute(what),
                )

    def _check_size(self, type_: TensorType) -> None:
        if type_.rank > RANK_MAX:
            raise OpTypeError(f"at most {RANK_MAX} dimensions", type_.rank)
        count, size_bytes = type_.element_count, type_.size_bytes
        for found, limit, unit in (
            (size_bytes, SIZE_BYTES_MAX, "bytes"),
            (count, ELEMENT_COUNT_MAX, "elements"),
        ):
            if isinstance(found, int) and found > limit:
                why = message(f"expected at most {limit} {unit}, got {found} for ", type_)
                raise ModelError(
                    "a tensor is too large",
                    NodeRef(self.source[0]),
                    why,
                    "check the sizes that the model asks for",
                )

    def scalar(self, dtype: DType, value: float) -> int:
        """A rank-0 literal; floats are rounded to f32 where the element type is not wider."""
        builder = self.translation.builder
        if dtype not in FLOATS and value != int(value if isfinite(value) else 0):
            raise OpTypeError("a float element type", dtype)
        item: int | float = (
            bool(value)
            if dtype == "bool"
            else rounded_to(float(value), dtype)
            if dtype in FLOATS
            else int(value)
        )
        attributes: dict[str, Attribute] = {"dtype": dtype, "shape": (), "value": (item,)}
        result = builder.add("literal", (), attributes, self.source, self.mark)
        if dtype not in ("f16", "bf16"):
            self.translation.known_values[result] = as_known_values(
                [item if dtype in FLOATS else int(item)], ()
            )
        return result

    def float_vector(self, dtype: DType, values: Sequence[float]) -> int:
        """A short vector of floats that is written in the graph, from one literal per element."""
        if not values:
            return self.add("broadcast_to", self.scalar(dtype, 0.0), shape=(0,))
        if len(values) > 64:
            raise Unsupported(f"a constant of {len(values)} floats outside of a tensor")
        parts = [self.add("reshape", self.scalar(dtype, value), shape=(1,)) for value in values]
        return self.add("concat", *parts, axis=0)

    def integers(self, values: Sequence[Dim]) -> int:
        """An i64 vector of known integers or expressions."""
        return self.known("i64", as_known_values(values, (len(values),)))

    def known(self, dtype: DType, known_values: KnownValues) -> int:
        """A tensor of integers, bools or expressions that are known: ``literal``, or ``dim_values``
        when symbols appear."""
        builder, place = self.translation.builder, (self.source, self.mark)
        shape = tuple(int(size) for size in known_values.shape)
        flat: tuple[Any, ...] = tuple(known_values.ravel().tolist())
        if not symbols_appear(known_values):
            value = (
                tuple(bool(item) for item in flat)
                if dtype == "bool"
                else tuple(int(item) for item in flat)
            )
            result = builder.add(
                "literal", (), {"dtype": dtype, "shape": shape, "value": value}, *place
            )
        else:
            assert dtype != "bool"
            result = builder.add("dim_values", (), {"values": flat}, *place)
            if len(shape) != 1:
                result = builder.add("reshape", (result,), {"shape": shape}, *place)
            if dtype != "i64":
                result = builder.add("cast", (result,), {"dtype": dtype}, *place)
        self.translation.known_values[result] = known_values
        return result

    def constant(self, source: ConstantSource) -> int:
        """A stored tensor: a literal when it is small enough for the graph's text, else by its
        number."""
        builder = self.translation.builder
        shape = tuple(dim for dim in source.type.shape if isinstance(dim, int))
        count = int(np.prod(shape, dtype=np.int64))
        dtype = source.type.dtype
        self._check_size(source.type)
        if shape == () or (dtype not in FLOATS and count <= _LITERAL_COUNT_MAX):
            values = decode(self.translation.bytes_of(source.weight), dtype)
            if dtype in FLOATS:
                return self.scalar(dtype, float(values[0]))
            return self.known(
                dtype, as_known_values([int(item) for item in values.tolist()], shape)
            )
        if source.weight in self.translation.local:
            # A function body's own tensor: no rule has stored it.
            vector = self.float_vector(
                dtype,
                [float(item) for item in decode(self.translation.local[source.weight], dtype)],
            )
            return self.add("reshape", vector, shape=shape)
        attributes: dict[str, Attribute] = {"weight": source.weight, "dtype": dtype, "shape": shape}
        result = builder.add("constant", (), attributes, self.source, self.mark)
        if dtype in INDEX_DTYPES:
            self.translation.stored[result] = source
        if dtype in ("f32", "f64") and count <= 64:
            # Scale factors that sizes are multiplied by.
            def find() -> KnownValues:
                values = decode(self.translation.bytes_of(source.weight), dtype)
                return as_known_values([float(item) for item in values.tolist()], shape)

            self.translation.known_values[result] = DeferredValue(cache(find))
        return result

    # -- known values ------------------------------------------------------------------------------

    def known_values(self, value: int) -> KnownValues | None:
        """What is known of a value's elements; elements that are not known are None."""
        return known_or_none(self.translation.known_values.get(value))

    def dims(self, value: int) -> tuple[Dim, ...] | None:
        """All elements, row-major, as integer expressions; None when one is not known."""
        known_values = self.known_values(value)
        if known_values is None:
            return () if 0 in self.shape_of(value) else None
        return tuple(known_values.ravel().tolist()) if is_known(known_values) else None

    def known_ints(self, value: int) -> tuple[int, ...] | None:
        """All elements, row-major, as integers; None when one is not known at compile time."""
        dims = self.dims(value)
        ints = None if dims is None else tuple(dim for dim in dims if isinstance(dim, int))
        return ints if dims is not None and ints is not None and len(ints) == len(dims) else None

    def count_of(self, value: int) -> int:
        """The number of elements of a tensor that fixes a rank; Unsupported when it is known at run
        time only."""
        count = self.type_of(value).element_count
        if isinstance(count, int) and count > _LITERAL_COUNT_MAX:
            raise OpTypeError(f"at most {_LITERAL_COUNT_MAX} sizes or axes", count)
        if isinstance(count, int):
            return count
        raise Unsupported("a number of dimensions that is known at run time only")

    def read_dims(self, value: int) -> tuple[Dim, ...]:
        """All elements of an integer tensor as expressions; those not known are read at run time,
        and must be >= 0 then."""
        known_values = self.known_values(value)
        known: Sequence[object] = (
            [None] * self.count_of(value) if known_values is None else list(known_values.flat)
        )
        return tuple(
            item if isinstance(item, (int, Sum)) else self._read_dim(value, index)
            for index, item in enumerate(known)
        )

    def _read_dim(self, value: int, index: int) -> Dim:
        table = self.translation.dims_read
        if (value, index) not in table:
            (name,) = self.fresh_symbols(1)
            table[value, index] = symbol(name)
            self.add("read_dim", value, index=index, symbol=name)
        return table[value, index]


def rounded_to(value: float, dtype: DType) -> float:
    """``value`` as f32, unless ``dtype`` is wider."""
    if dtype == "f64":
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def decode(data: memoryview, dtype: DType) -> npt.NDArray[np.generic]:
    """The elements of a dense little-endian tensor, flat; bf16 as f32."""
    if dtype == "bf16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    kind = {"f": "f", "i": "i", "u": "u", "b": "u"}[dtype[0]]
    return np.frombuffer(data, np.dtype(f"<{kind}{dtype_size_bytes(dtype)}"))

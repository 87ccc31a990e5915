"""What a translation of one ONNX node works with: operands, attributes, a builder, known values.

In: an imported node and the graph built so far. Out: core ops in the builder. Not done here: the
loop over nodes (``infer_types``), common constructions (``compose``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from math import isfinite, prod
from typing import Any

import numpy as np

from ingot_compiler.frontend.build.known_values import (
    DeferredValue,
    KnownValues,
    as_known_values,
    is_known,
    known_or_none,
    symbols_appear,
    tells_something,
)
from ingot_compiler.frontend.build.propagate import propagate
from ingot_compiler.frontend.build.translation import Translation
from ingot_compiler.frontend.build.unify_sizes import Detour, unify_sizes
from ingot_compiler.frontend.model.onnx_node import OnnxNode, rounded_to
from ingot_compiler.ir.attributes import Attribute, attribute_dims, text_attribute
from ingot_compiler.ir.dims import Dim, Sum, dim_add, dim_mul, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import ConstantSource, Graph
from ingot_compiler.ir.message import NodeRef, Text, message
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.types import FLOATS, DType, TensorType
from ingot_runtime.format.limits import ELEMENT_COUNT_MAX, SIZE_BYTES_MAX
from ingot_runtime.lazy_dataclass import dataclass

RANK_MAX = 64  # of an intermediate tensor; inputs and outputs have the bundle format's own limit
INDEX_DTYPES = ("i32", "i64")  # of ONNX's indices
_LITERAL_COUNT_MAX = 1024
_QUANTIZED_COUNT_MAX = 4  # of a literal that stands for floats: more of them are weights
_FLOAT_COUNT_MAX = 64  # of a tensor whose floats are looked at: factors of sizes


@lru_cache(maxsize=1 << 12)  # a model has many values of few types
def _is_possible(type_: TensorType) -> bool:
    """Whether a tensor has no more axes, elements and bytes than any may have."""
    sizes = ((type_.size_bytes, SIZE_BYTES_MAX), (type_.element_count, ELEMENT_COUNT_MAX))
    few = all(not isinstance(found, int) or found <= limit for found, limit in sizes)
    return few and type_.rank <= RANK_MAX


class Unsupported(Exception):
    """A translation refuses a valid node; ``reason`` says why. Collected, all are listed at
    once."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class OpContext(OnnxNode):
    """One node under translation. ``source`` and ``mark`` go to every core op made."""

    translation: Translation

    @classmethod
    def of_constant(
        cls, translation: Translation, source: tuple[int, ...] = (), mark: str = ""
    ) -> OpContext:
        """What stored tensors are put into the graph with; ``source``: the nodes that read it."""
        return cls("Constant", "", 0, {}, (), (True,), source, mark, (), translation)

    # -- types -------------------------------------------------------------------------------------

    def type_of(self, value: int) -> TensorType:
        """The type of a value.

        Raises:
            Unsupported: it is a sequence or an optional, where a tensor was expected.
        """
        if value < 0:
            raise Unsupported("a sequence or an empty optional in the place of a tensor")
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

    # -- building ----------------------------------------------------------------------------------

    def fresh_symbols(self, count: int) -> tuple[str, ...]:
        """Names of sizes that this node computes."""
        return self.translation.fresh_symbols(count, self.source)

    def add(self, op: OpName, *operands: int, **attributes: Attribute) -> int:
        """Append a core op; where its result is known, a literal or ``dim_values`` takes its
        place."""
        self._compare(op, operands, attributes)
        # A model has many casts and elementwise ops of few types.
        is_common = bool(operands) and (not attributes or op == "cast")
        given = op, attributes.get("dtype"), *map(self.type_of, operands)
        inferred = self.translation.inferred
        if is_common and given in inferred:
            return self._add_or_know(op, operands, attributes, inferred[given])
        before, operands = operands, self._agreeing(op, attributes, operands)
        types = [self.type_of(operand) for operand in operands]
        results = OPS_BY_NAME[op].infer(types, attributes).results
        for result in results:
            self._check_size(result)
        if is_common and operands is before and len(results) == 1:
            inferred[given] = results[0]
        if len(results) != 1 or not operands:
            return self._append(op, operands, **attributes)
        return self._add_or_know(op, operands, attributes, results[0])

    def add_many(self, op: OpName, *operands: int, **attributes: Attribute) -> tuple[int, ...]:
        """Append a core op of several results."""
        self._compare(op, operands, attributes)
        operands = self._agreeing(op, attributes, operands)
        add = self.translation.builder.add_many
        results = add(op, operands, attributes, self.source, self.mark)
        for result in results:
            self._check_size(self.type_of(result))
        return results

    def _compare(
        self, op: OpName, operands: tuple[int, ...], attributes: dict[str, Attribute]
    ) -> None:
        """Note which sizes the op compares, where the file may call them by one name."""
        same_names = self.translation.same_names
        if not same_names.groups:
            return
        types = [self.type_of(operand) for operand in operands]
        if op == "reshape":
            same_names.compare_reshape(types[0].shape, attribute_dims(attributes, "shape"))
        elif len(operands) > 1:
            inferred = OPS_BY_NAME[op].infer(types, attributes)
            same_names.compare_constraints(types, inferred.constraints)
            if inferred.results[0].dtype == "bool":
                self._compare_known(operands)

    def _compare_known(self, operands: tuple[int, ...]) -> None:
        """Note the sizes whose values an op compares."""
        table = self.translation.known_values
        found = [known_or_none(table.get(operand)) for operand in operands]
        known = [values for values in found if values is not None and is_known(values)]
        if len(known) == len(operands):
            pairs = np.broadcast_arrays(*known)
            self.translation.same_names.compare_shapes(*(one.ravel().tolist() for one in pairs[:2]))

    def _add_or_know(
        self,
        op: OpName,
        operands: tuple[int, ...],
        attributes: dict[str, Attribute],
        result: TensorType,
    ) -> int:
        """The op with its one ``result``, or what is known of that in the op's place."""
        table, known_values = self.translation.known_values, None
        if not table.keys().isdisjoint(operands):  # of few ops
            pairs = [(self.type_of(operand), table.get(operand)) for operand in operands]
            known_values = propagate(op, attributes, pairs, result)
        found = None if result.dtype in FLOATS else known_or_none(known_values)
        # One element of ``dim_values`` is a choice among all of them.
        if (
            found is not None
            and is_known(found)
            and (found.size <= RANK_MAX or not symbols_appear(found))
        ):
            return self.known(result.dtype, found)
        value = self.translation.builder.add_typed(
            op, operands, attributes, result, self.source, self.mark
        )
        if known_values is not None and tells_something(known_values):
            table[value] = known_values
        stored = self.translation.stored
        keeps_elements = op == "reshape" or (op == "cast" and result.dtype in INDEX_DTYPES)
        if keeps_elements and operands[0] in stored:
            stored[value] = stored[operands[0]]
        return value

    def _append(self, op: OpName, operands: Sequence[int] = (), **attributes: Attribute) -> int:
        """The op itself, whatever is known."""
        return self.translation.builder.add(op, operands, attributes, self.source, self.mark)

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
        if detours.count(None) == len(detours):
            return operands
        for detour, operand in zip(detours, operands, strict=True):
            self._require_equal(detour, self.shape_of(operand))
        return tuple(
            operand if detour is None else self.add(detour[0], operand, shape=detour[1])
            for operand, detour in zip(operands, detours, strict=True)
        )

    def _require_equal(self, detour: Detour | None, shape: tuple[Dim, ...]) -> None:
        """A reshape compares element counts: where it stands for several sizes, each is
        compared."""
        if detour is None or detour[0] != "reshape":
            return
        pairs = [pair for pair in zip(shape, detour[1], strict=False) if pair[0] != pair[1]]
        for own, wanted in pairs if len(pairs) > 1 else ():
            what = text_attribute(message("expected equal sizes, got ", own, " and ", wanted))
            self.add("require_dim", difference=dim_add(own, dim_mul(wanted, -1)), what=what)

    def _check_size(self, type_: TensorType) -> None:
        if _is_possible(type_):
            return
        if type_.rank > RANK_MAX:
            raise OpTypeError(f"at most {RANK_MAX} dimensions", type_.rank)
        for found, limit, unit in (
            (type_.size_bytes, SIZE_BYTES_MAX, "bytes"),
            (type_.element_count, ELEMENT_COUNT_MAX, "elements"),
        ):
            if isinstance(found, int) and found > limit:
                why = message(f"expected at most {limit} {unit}, got {found} for ", type_)
                do = "check the sizes that the model asks for"
                raise ModelError("a tensor is too large", NodeRef(self.source[0]), why, do)

    def scalar(self, dtype: DType, value: float) -> int:
        """A rank-0 literal; floats are rounded to f32 where the element type is not wider."""
        is_float = dtype in FLOATS
        if not is_float and value != int(value if isfinite(value) else 0):
            raise OpTypeError("a float element type", dtype)
        whole = bool(value) if dtype == "bool" else int(value) if not is_float else 0
        item = rounded_to(float(value), dtype) if is_float else whole
        result = self.translation.builder.scalar(dtype, item, self.source, self.mark)
        if dtype not in ("f16", "bf16"):
            known_values = as_known_values([item if is_float else int(item)], ())
            self.translation.known_values[result] = known_values
        return result

    def float_vector(self, dtype: DType, values: Sequence[float]) -> int:
        """A short vector of floats that is written in the graph, from one literal per element."""
        if not values:
            return self.add("broadcast_to", self.scalar(dtype, 0.0), shape=(0,))
        if len(values) > _FLOAT_COUNT_MAX:
            raise Unsupported(f"a constant of {len(values)} floats outside of a tensor")
        parts = [self.add("reshape", self.scalar(dtype, value), shape=(1,)) for value in values]
        return self.add("concat", *parts, axis=0)

    def integers(self, values: Sequence[Dim]) -> int:
        """An i64 vector of known integers or expressions."""
        return self.known("i64", as_known_values(values, (len(values),)))

    def known(self, dtype: DType, known_values: KnownValues) -> int:
        """A tensor of integers, bools or expressions that are known: ``literal``, or ``dim_values``
        when symbols appear."""
        shape = tuple(int(size) for size in known_values.shape)
        flat: tuple[Any, ...] = tuple(known_values.ravel().tolist())
        if not symbols_appear(known_values):
            plain = bool if dtype == "bool" else int
            value = tuple(plain(item) for item in flat)
            builder = self.translation.builder
            if shape:
                result = self._append("literal", dtype=dtype, shape=shape, value=value)
            else:
                result = builder.scalar(dtype, value[0], self.source, self.mark)
        else:
            assert dtype != "bool"
            result = self._append("dim_values", values=flat)
            if len(shape) != 1:
                result = self._append("reshape", (result,), shape=shape)
            if dtype != "i64":
                result = self._append("cast", (result,), dtype=dtype)
        self.translation.known_values[result] = known_values
        return result

    def constant(self, source: ConstantSource, *, is_quantized: bool = False) -> int:
        """A stored tensor: a literal when it is small enough for the graph's text, else by its
        number; ``is_quantized``: it is dequantized and read by nothing else, so that it is weights,
        unless it has very few elements."""
        self._check_size(source.type)
        shape, dtype = source.type.shape, source.type.dtype
        if source.stored:
            halves = ConstantSource(source.weight, TensorType(source.stored, shape))
            return self.add("cast", self.constant(halves), dtype=dtype)
        count = prod(dim for dim in shape if isinstance(dim, int))
        count_max = _QUANTIZED_COUNT_MAX if is_quantized else _LITERAL_COUNT_MAX
        if shape == () or (dtype not in FLOATS and count <= count_max):
            return self._literal(source)
        if source.weight in self.translation.local:
            # A function body's own tensor: no rule has stored it.
            numbers = [float(item) for item in self.translation.elements(source)]
            vector = self.float_vector(dtype, numbers)
            return self.add("reshape", vector, shape=shape)
        result = self._append("constant", weight=source.weight, dtype=dtype, shape=shape)
        if dtype not in FLOATS:
            self.translation.stored[result] = source
        if dtype in ("f32", "f64", "f16") and count <= _FLOAT_COUNT_MAX:
            find = cache(partial(self.translation.known_floats, source))
            self.translation.known_values[result] = DeferredValue(find)
        return result

    def written(self, source: ConstantSource) -> int:
        """A tensor that a node of the graph writes down: one number is a literal whatever its rank,
        for exporters write the numbers of patterns so, and weights as initializers."""
        shape, dtype = source.type.shape, source.type.dtype
        if shape == () or dtype not in FLOATS or any(dim != 1 for dim in shape):
            return self.constant(source)
        return self.add("reshape", self._literal(source), shape=shape)

    def _literal(self, source: ConstantSource) -> int:
        """A stored tensor that becomes part of the graph's text."""
        dtype = source.type.dtype
        values = self.translation.elements(source).tolist()
        if dtype in FLOATS:
            return self.scalar(dtype, float(values[0]))
        shape = tuple(dim for dim in source.type.shape if isinstance(dim, int))
        return self.known(dtype, as_known_values([int(item) for item in values], shape))

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

    def named_dims(self, value: int) -> tuple[Dim, ...]:
        """All elements of an integer tensor: numbers, and names for all others, which are read at
        run time although an expression of them may be known."""
        return tuple(
            item if isinstance(item, int) else self._read_dim(value, index)
            for index, item in enumerate(self.read_dims(value))
        )

    def _read_dim(self, value: int, index: int) -> Dim:
        table = self.translation.dims_read
        if (value, index) not in table:
            (name,) = self.fresh_symbols(1)
            table[value, index] = symbol(name)
            self.add("read_dim", value, index=index, symbol=name)
        return table[value, index]

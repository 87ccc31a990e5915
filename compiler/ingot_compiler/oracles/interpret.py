"""Runs a graph with the numpy references of its ops: the oracle that compiled code is compared
with.

In: a ``Graph``, arrays for its inputs, a reader of constants. Out: arrays. bf16 tensors are uint16
arrays of bit patterns; references see them as float32. Not done here: speed; bytes that end in a
bundle (numpy's differ between machines).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attribute,
    Attributes,
    attribute_int,
    attribute_ints,
    attribute_str,
)
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.dims import Sum, evaluate, substitute
from ingot_compiler.ir.errors import InternalError, ModelError, UserError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.message import InputRef, Text, message, nodes_text
from ingot_compiler.ir.op import Array, bf16_to_f32
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES, f32_to_bf16
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.types import TensorType, dtype_code
from ingot_compiler.oracles.interpret_regions import bind_sizes, run_if, run_loop
from ingot_runtime.format.dtypes import NUMPY_NAMES
from ingot_runtime.lazy_dataclass import dataclass

Settle = Callable[[int, tuple[Array, ...], Mapping[str, int]], tuple[Array, ...]]
"""(node index, its results, the symbols known so far) -> what the nodes after it read in their
place."""


def interpret(graph: Graph, inputs: Sequence[Array], read: ConstantReader) -> tuple[Array, ...]:
    """The outputs for ``inputs``; UserError when an input's element type or shape contradicts the
    graph."""
    run = _run_of(graph, inputs, read)
    for _ in run.steps():
        pass
    return tuple(run.values[output] for output in graph.outputs)


def interpret_values(
    graph: Graph, inputs: Sequence[Array], read: ConstantReader, settle: Settle | None = None
) -> Iterator[tuple[int, tuple[Array, ...]]]:
    """Yield (node index, results) for every node in order; a value is let go after its last use."""
    return _run_of(graph, inputs, read).steps(settle)


def _run_of(graph: Graph, inputs: Sequence[Array], read: ConstantReader) -> _Run:
    bindings = bind_symbols(graph, inputs)
    return _Run(graph, read, bindings, dict(zip(graph.inputs, inputs, strict=True)))


@dataclass(frozen=True, slots=True)
class _Run:
    """A graph or region that runs: what its symbols stand for, and the values that are alive."""

    graph: Graph
    read: ConstantReader
    bindings: dict[str, int]
    values: dict[int, Array]

    def steps(self, settle: Settle | None = None) -> Iterator[tuple[int, tuple[Array, ...]]]:
        """Run node by node; yield (node index, results)."""
        dying = _dying(self.graph)
        for index, node in enumerate(self.graph.nodes):
            results = self.control(node) if node.regions else self.node(index, node)
            self.check(index, node, results)
            if settle is not None:
                results = settle(index, results, self.bindings)
            self.values.update(zip(node.results, results, strict=True))
            for value in dying.get(index, ()):
                del self.values[value]
            yield index, results

    def node(self, index: int, node: Node) -> tuple[Array, ...]:
        """The results of an op without regions."""
        attributes = {name: _bound(value, self.bindings) for name, value in node.attributes}
        if node.op == "constant":
            return (_constant(self.graph.types[node.results[0]], attributes, self.read),)
        operands = [
            _from_storage(self.values[operand], self.graph.types[operand])
            for operand in node.operands
        ]
        if node.op == "read_dim":
            _read_dim(operands[0], attributes, self.bindings, _place(index, node))
        try:
            results = OPS_BY_NAME[node.op].reference(operands, attributes)
        except (ValueError, IndexError) as error:
            # numpy's own refusal: an index out of range, or sizes that the types left open and
            # that differ.
            what = "a node cannot run on these values"
            raise ModelError(what, _place(index, node), str(error)) from error
        types = [self.graph.types[result] for result in node.results]
        return tuple(_to_storage(array, kind) for array, kind in zip(results, types, strict=True))

    def control(self, node: Node) -> tuple[Array, ...]:
        """The results of an op with regions; the symbols of their sizes are bound."""
        operands = [self.values[operand] for operand in node.operands]
        types = [self.graph.types[result] for result in node.results]
        if node.op == "composite":
            results = self.region(node.regions[0], operands, dict(self.bindings))
        elif node.op == "if":
            results = run_if(node, operands, self.bindings, self.region)
        else:
            results = run_loop(node, types, operands, self.bindings, self.region)
        for kind, array in zip(types, results, strict=True):
            bind_sizes(kind, array, self.bindings)
        return results

    def check(self, index: int, node: Node, results: Sequence[Array]) -> None:
        """Refuse results of another type or size than the node's."""
        for result, array in zip(node.results, results, strict=True):
            type_ = self.graph.types[result]
            shape = tuple(evaluate(dim, self.bindings) for dim in type_.shape)
            dtype = STORAGE_DTYPES[type_.dtype]
            if array.dtype != dtype or array.shape != shape:
                what = "a reference contradicts its type rule, or sizes that must be equal differ"
                why = f"expected {dtype}{list(shape)}, got {array.dtype}{list(array.shape)}"
                raise InternalError(what, _place(index, node), why)

    def region(
        self, region: Graph, inputs: Sequence[Array], bindings: dict[str, int]
    ) -> tuple[Array, ...]:
        """The outputs of a region for ``inputs``; it also reads the values here."""
        values = {**self.values, **dict(zip(region.inputs, inputs, strict=True))}
        for _ in _Run(region, self.read, bindings, values).steps():
            pass
        return tuple(values[output] for output in region.outputs)


def bind_symbols(graph: Graph, inputs: Sequence[Array]) -> dict[str, int]:
    """The symbols' values from the shapes of the inputs; UserError names the input, expected and
    got."""
    if len(inputs) != len(graph.inputs):
        raise UserError(
            "wrong number of inputs", why=f"expected {len(graph.inputs)}, got {len(inputs)}"
        )
    bindings: dict[str, int] = {}
    for value, array in zip(graph.inputs, inputs, strict=True):
        for dim, size in zip(graph.types[value].shape, array.shape, strict=False):
            name = bare_symbol(dim)
            if name is not None:
                bindings.setdefault(name, size)
    for position, (value, array) in enumerate(zip(graph.inputs, inputs, strict=True)):
        _check_input(position, graph.types[value], array, bindings)
    return bindings


def _check_input(
    position: int, type_: TensorType, array: Array, bindings: Mapping[str, int]
) -> None:
    shape = tuple(substitute(dim, dict(bindings)) for dim in type_.shape)
    dtype = np.dtype(NUMPY_NAMES[dtype_code(type_.dtype)])
    if array.dtype != dtype or array.shape != shape:
        expected = message("expected ", type_, " = ", dtype, list(shape))
        why = message(expected, f", got {array.dtype}{list(array.shape)}")
        raise UserError("an input does not fit", InputRef(position), why)


def _dying(graph: Graph) -> dict[int, list[int]]:
    """Map the index of a node to the values that nothing reads after it; outputs live to the
    end."""
    table: dict[int, list[int]] = {}
    producers, users = graph.producers(), graph.users()
    for value in sorted({*graph.inputs, *producers} - set(graph.outputs)):
        if value in users or value in producers:
            table.setdefault(users[value][-1] if value in users else producers[value], []).append(
                value
            )
    return table


def _bound(value: Attribute, bindings: Mapping[str, int]) -> Attribute:
    """An attribute with its symbols replaced by integers."""
    if isinstance(value, tuple):
        return tuple(_bound(item, bindings) for item in value)
    return evaluate(value, bindings) if isinstance(value, Sum) else value


def _constant(type_: TensorType, attributes: Attributes, read: ConstantReader) -> Array:
    flat = np.frombuffer(
        read(attribute_str(attributes, "weight")), STORAGE_DTYPES[type_.dtype].newbyteorder("<")
    )
    return flat.astype(STORAGE_DTYPES[type_.dtype], copy=False).reshape(
        attribute_ints(attributes, "shape")
    )


def _read_dim(
    operand: Array, attributes: Attributes, bindings: dict[str, int], where: Text
) -> None:
    name, index = attribute_str(attributes, "symbol"), attribute_int(attributes, "index")
    size = int(operand.reshape(-1)[index])
    if size < 0:
        raise ModelError(
            "a size computed at run time is negative", where, f"expected >= 0, got {size}"
        )
    bindings[name] = size


def _place(index: int, node: Node) -> Text:
    """The nodes of the model that a node came from; where it came from none, its own place."""
    return nodes_text(node.source) if node.source else f"node {index} ({node.op})"


def _from_storage(array: Array, type_: TensorType) -> Array:
    return bf16_to_f32(array) if type_.dtype == "bf16" else array


def _to_storage(array: Array, type_: TensorType) -> Array:
    return f32_to_bf16(array) if type_.dtype == "bf16" else array

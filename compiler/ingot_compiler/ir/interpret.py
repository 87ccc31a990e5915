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
from ingot_compiler.ir.dims import Sum, evaluate, substitute, symbol, symbols_of
from ingot_compiler.ir.errors import InternalError, ModelError, UserError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.interpret_regions import bind_sizes, run_if, run_loop
from ingot_compiler.ir.message import InputRef, Text, message, nodes_text
from ingot_compiler.ir.op import Array, bf16_to_f32
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.reference_rules import STORAGE_DTYPES, f32_to_bf16
from ingot_compiler.ir.types import TensorType, dtype_code
from ingot_runtime.format.dtypes import NUMPY_NAMES

Settle = Callable[[int, tuple[Array, ...], Mapping[str, int]], tuple[Array, ...]]
"""(node index, its results, the symbols known so far) -> what the nodes after it read in their
place."""


def interpret(graph: Graph, inputs: Sequence[Array], read: ConstantReader) -> tuple[Array, ...]:
    """The outputs for ``inputs``; UserError when an input's element type or shape contradicts the
    graph."""
    values: dict[int, Array] = {}
    for _ in _steps(graph, inputs, read, values):
        pass
    return tuple(values[output] for output in graph.outputs)


def interpret_values(
    graph: Graph, inputs: Sequence[Array], read: ConstantReader, settle: Settle | None = None
) -> Iterator[tuple[int, tuple[Array, ...]]]:
    """Yield (node index, results) for every node in order; a value is let go after its last use."""
    return _steps(graph, inputs, read, {}, settle)


def _steps(
    graph: Graph,
    inputs: Sequence[Array],
    read: ConstantReader,
    values: dict[int, Array],
    settle: Settle | None = None,
) -> Iterator[tuple[int, tuple[Array, ...]]]:
    """Run node by node, with the live values in ``values``."""
    bindings = bind_symbols(graph, inputs)
    values.update(zip(graph.inputs, inputs, strict=True))
    return _steps_with(graph, bindings, read, values, settle)


def _steps_with(
    graph: Graph,
    bindings: dict[str, int],
    read: ConstantReader,
    values: dict[int, Array],
    settle: Settle | None = None,
) -> Iterator[tuple[int, tuple[Array, ...]]]:
    dying = _dying(graph)
    for index, node in enumerate(graph.nodes):
        operands = [values[operand] for operand in node.operands]
        if node.regions:
            results = _run_control(graph, node, operands, bindings, read, values)
        else:
            results = _run(graph, index, operands, bindings, read)
        for result, array in zip(node.results, results, strict=True):
            _check(index, node, graph.types[result], array, bindings)
        if settle is not None:
            results = settle(index, results, bindings)
        values.update(zip(node.results, results, strict=True))
        for value in dying.get(index, ()):
            del values[value]
        yield index, results


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
            for name in () if isinstance(dim, int) else symbols_of(dim):
                if dim == symbol(name):
                    bindings.setdefault(name, size)
    for position, (value, array) in enumerate(zip(graph.inputs, inputs, strict=True)):
        type_ = graph.types[value]
        shape = tuple(substitute(dim, dict(bindings)) for dim in type_.shape)
        dtype = np.dtype(NUMPY_NAMES[dtype_code(type_.dtype)])
        if array.dtype != dtype or array.shape != shape:
            expected = message("expected ", type_, " = ", dtype, list(shape))
            why = message(expected, f", got {array.dtype}{list(array.shape)}")
            raise UserError("an input does not fit", InputRef(position), why)
    return bindings


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


def _run(
    graph: Graph,
    index: int,
    operands: Sequence[Array],
    bindings: dict[str, int],
    read: ConstantReader,
) -> tuple[Array, ...]:
    node = graph.nodes[index]
    attributes = {name: _bound(value, bindings) for name, value in node.attributes}
    if node.op == "constant":
        return (_constant(graph.types[node.results[0]], attributes, read),)
    if node.op == "read_dim":
        _read_dim(operands[0], attributes, bindings, _place(index, node))
    types = [graph.types[operand] for operand in node.operands]
    widened = [_from_storage(array, type_) for array, type_ in zip(operands, types, strict=True)]
    try:
        results = OPS_BY_NAME[node.op].reference(widened, attributes)
    except (ValueError, IndexError) as error:
        # numpy's own refusal: an index out of range, or sizes that the types left open and that
        # differ.
        raise ModelError(
            "a node cannot run on these values", _place(index, node), str(error)
        ) from error
    return tuple(
        _to_storage(array, graph.types[result])
        for array, result in zip(results, node.results, strict=True)
    )


def _run_control(
    graph: Graph,
    node: Node,
    operands: Sequence[Array],
    bindings: dict[str, int],
    read: ConstantReader,
    values: Mapping[int, Array],
) -> tuple[Array, ...]:
    """Run an op with regions; the symbols of its results are bound."""

    def run(region: Graph, inputs: Sequence[Array], inner: dict[str, int]) -> tuple[Array, ...]:
        own = {**values, **dict(zip(region.inputs, inputs, strict=True))}
        for _ in _steps_with(region, inner, read, own):
            pass
        return tuple(own[output] for output in region.outputs)

    types = [graph.types[result] for result in node.results]
    if node.op == "if":
        results = run_if(node, operands, bindings, run)
    else:
        results = run_loop(node, types, operands, bindings, run)
    for kind, array in zip(types, results, strict=True):
        bind_sizes(kind, array, bindings)
    return results


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


def _check(
    index: int, node: Node, type_: TensorType, array: Array, bindings: Mapping[str, int]
) -> None:
    shape = tuple(evaluate(dim, bindings) for dim in type_.shape)
    if array.dtype != STORAGE_DTYPES[type_.dtype] or array.shape != shape:
        raise InternalError(
            "a reference contradicts its type rule, or sizes that must be equal differ",
            _place(index, node),
            f"expected {STORAGE_DTYPES[type_.dtype]}{list(shape)}, got {array.dtype}{list(array.shape)}",
        )

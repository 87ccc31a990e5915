"""Helpers of the tests of the graph IR: run one core op, run one ONNX node.

In: arrays and attributes. Out: arrays. Not done here: assertions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper
from onnx.reference import ReferenceEvaluator

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.op_names import OP_NAMES, OpName
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.types import COMPUTED_DTYPES, DType, TensorType
from ingot_compiler.ir.verify import verify
from ingot_compiler.oracles.interpret import interpret

Array = npt.NDArray[Any]
NUMPY_NAMES = {
    "f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
}  # fmt: skip


def op_name(text: str) -> OpName:
    """The name of a core op that a test puts together."""
    return next(name for name in OP_NAMES if name == text)


def no_constants(digest: str) -> memoryview:
    """A reader for graphs without constants."""
    raise AssertionError(f"unexpected constant {digest}")


def type_of(array: Array) -> TensorType:
    """The tensor type of an array (never bf16)."""
    dtype: DType = next(
        dtype for dtype in COMPUTED_DTYPES if NUMPY_NAMES.get(dtype) == array.dtype.name
    )
    return TensorType(dtype, array.shape)


def run_op(
    op: str, operands: Sequence[Array], attributes: Mapping[str, Attribute] | None = None
) -> Array:
    """The one result of a graph of one op; the graph is verified, and printed and parsed, on the
    way."""
    builder = GraphBuilder([type_of(operand) for operand in operands])
    graph = builder.finish([builder.add(op_name(op), range(len(operands)), attributes)])
    verify(graph)
    assert parse_graph(print_graph(graph)) == graph
    (result,) = interpret(graph, operands, no_constants)
    return result


def run_onnx(op: str, inputs: Sequence[Array | None], opset: int, **attributes: Any) -> Array:
    """The first result of ONNX's own reference of one node; None is an absent optional input."""
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(inputs)]
    node = onnx.helper.make_node(op, names, ["y"], **attributes)
    feeds = {name: array for name, array in zip(names, inputs, strict=True) if array is not None}
    values = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in feeds.items()
    ]
    output = onnx.helper.make_empty_tensor_value_info("y")
    graph = onnx.helper.make_graph([node], "one", values, [output])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    results: Any = ReferenceEvaluator(model).run(None, feeds)  # pyright: ignore[reportUnknownMemberType]  # half typed
    return np.asarray(results[0])

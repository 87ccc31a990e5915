"""The networks of ``tests.tiny_models`` as converters for small machines quantize them: every value
is int8, from the input to the output.

In: a model in f32 of one input and one output. Out: the model with int8 in and out: weights with a
scale for each channel, biases in i32, QuantizeLinear and DequantizeLinear between the nodes, their
scales from one random call. Not done here: accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray[Any, np.dtype[Any]]
_I8 = onnx.TensorProto.INT8
_WEIGHTED = ("Conv", "Gemm", "MatMul")
_UNROUNDED = ("Flatten",)  # moves numbers


def to_int8(model: onnx.ModelProto) -> onnx.ModelProto:
    """Quantize it."""
    return _Quantizer(model).model()


class _Quantizer:
    """The graph as it is rewritten; ``names``: what stands for a value of the f32 model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.stored = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        self.ranges = _ranges(model)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.names: dict[str, str] = {}
        self.scales: dict[str, float] = {}

    def model(self) -> onnx.ModelProto:
        """Rewrite node by node."""
        (given,), (made,) = self.graph.input, self.graph.output
        self._dequantize(given.name, given.name)
        relus = {node.input[0] for node in self.graph.node if node.op_type == "Relu"}
        for node in self.graph.node:
            result = node.output[0]
            self.nodes.append(
                helper.make_node(node.op_type, self._operands(node), [f"{result}.f"], node.name)
            )
            self.nodes[-1].attribute.extend(node.attribute)
            self.names[result] = f"{result}.f"
            if result in relus or node.op_type in _UNROUNDED:
                self.scales[result] = self.scales.get(node.input[0], 0)
                continue
            self._pair("QuantizeLinear", f"{result}.f", result, result)
            if result != made.name:
                self._dequantize(result, result)
        ends = [helper.make_tensor_value_info(end.name, _I8, _shape(end)) for end in (given, made)]
        graph = helper.make_graph(self.nodes, "tiny", ends[:1], ends[1:], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def _operands(self, node: onnx.NodeProto) -> list[str]:
        """The operands in f32; stored ones behind DequantizeLinear."""
        if node.op_type not in _WEIGHTED:
            return [self.names[name] for name in node.input]
        x, w, *bias = node.input
        axis = 0 if node.op_type == "Conv" else 1
        values = self.stored[w]
        others = tuple(at for at in range(values.ndim) if at != axis)
        scale = (np.abs(values).max(others) / 127).astype(np.float32)
        spread = np.expand_dims(scale, others)
        integers = np.clip(np.rint(values / spread), -127, 127).astype(np.int8)
        found = [self.names[x], self._constant(w, integers, scale, axis)]
        if bias:
            of_sums = (scale * np.float32(self.scales[x])).astype(np.float32)
            sums = np.rint(self.stored[bias[0]] / of_sums).astype(np.int32)
            found.append(self._constant(bias[0], sums, of_sums, 0))
        return found

    def _constant(self, name: str, integers: Array, scale: Array, axis: int) -> str:
        if f"{name}.f" not in {node.output[0] for node in self.nodes}:
            zero = np.zeros(scale.shape, integers.dtype)
            self._store({name: integers, f"{name}.scale": scale, f"{name}.zero": zero})
            names = [name, f"{name}.scale", f"{name}.zero"]
            self.nodes.append(helper.make_node("DequantizeLinear", names, [f"{name}.f"], axis=axis))
        return f"{name}.f"

    def _pair(self, op: str, given: str, made: str, value: str) -> None:
        """A node between f32 and int8, by the range of a value."""
        if f"{value}.scale" not in {each.name for each in self.weights}:
            low, high = self.ranges[value]
            scale = np.float32((high - low) / 255)
            zero = np.int8(np.clip(np.rint(-128 - low / scale), -128, 127))
            self._store({f"{value}.scale": np.asarray(scale), f"{value}.zero": np.asarray(zero)})
            self.scales[value] = float(scale)
        names = [given, f"{value}.scale", f"{value}.zero"]
        self.nodes.append(helper.make_node(op, names, [made], f"/{made}/{op}"))

    def _dequantize(self, name: str, value: str) -> None:
        self._pair("DequantizeLinear", name, f"{value}.d", value)
        self.names[value] = f"{value}.d"

    def _store(self, arrays: dict[str, Array]) -> None:
        self.weights += [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def _ranges(model: onnx.ModelProto) -> dict[str, tuple[float, float]]:
    """The least and the greatest number of each value, 0 among them, in one call."""
    (given,), random = model.graph.input, np.random.default_rng(0)
    values = [node.output[0] for node in model.graph.node]
    named = onnx.ModelProto()
    named.CopyFrom(model)
    del named.graph.output[:]
    named.graph.output.extend(helper.make_tensor_value_info(n, 1, None) for n in values)
    x = random.standard_normal(_shape(given)).astype(np.float32)
    evaluator: Any = ReferenceEvaluator(named)
    found = evaluator.run(None, {given.name: x})
    arrays: dict[str, Array] = {given.name: x, **dict(zip(values, found, strict=True))}
    return {n: (min(float(a.min()), 0.0), max(float(a.max()), 1e-3)) for n, a in arrays.items()}


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]

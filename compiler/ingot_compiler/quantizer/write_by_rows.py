"""A model whose products round what they multiply when it runs: each row by its own range, weights
by columns.

In: a ``ModelProto``, patterns of nodes that stay in floats. Out: its products, a ``ModelProto``.
Not done here: rounding weights (``channel_weights``), ranges of calls (``ranges``).

Standard ops alone: a row is divided by its largest magnitude / 127 and rounded to int8, multiplied
by MatMulInteger, and scaled back. DynamicQuantizeLinear has one range for a whole tensor: a token
would be rounded by the steps of the largest one beside it, and a sample by those of its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from ingot_compiler.frontend.model.model_bytes import drop_unread
from ingot_compiler.quantizer.channel_weights import channel_weights
from ingot_compiler.quantizer.epilogues import Epilogue
from ingot_compiler.quantizer.layers import ProductLayer, find_layer, finite_weights
from ingot_compiler.quantizer.model_view import view_model
from ingot_compiler.quantizer.new_tensors import NewTensors
from ingot_compiler.quantizer.op_classes import PRODUCTS
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

_RANGES, _DYNAMIC = OptionRef("calibrate"), OptionRef("dynamic")
_LARGEST = 127
_LEAST_SCALE = np.float32(1e-30)
_OPSET_OF_AXES = 18  # from here on ReduceMax has axes as an operand


def row_layers(
    model: ModelProto, kept: Sequence[str] = ()
) -> tuple[list[ProductLayer], list[tuple[str, str]]]:
    """Products by stored matrices, and (node, why) of those that stay in floats."""
    view = view_model(model)
    layers: list[ProductLayer] = []
    left: list[tuple[str, str]] = []
    for index, node in enumerate(view.nodes):
        if node.op_type not in PRODUCTS:
            continue
        found = find_layer(view, Epilogue(index, (), node.output[0], ()), kept)
        if isinstance(found, ProductLayer) and node.op_type == "Conv":
            found = f"a convolution has no rows: give it ranges by {_RANGES} without {_DYNAMIC}"
        elif isinstance(found, ProductLayer) and not found.weights:
            found = "it multiplies two activations"
        if isinstance(found, ProductLayer):
            layers.append(found)
        elif found:
            left.append((view.name(index), found))
    return layers, left


def write_by_rows(model: ModelProto, layers: Sequence[ProductLayer]) -> ModelProto:
    """The model with these products on integers; the given one stays as it is."""
    return _Writer(model, {layer.node: layer for layer in layers}).written()


@dataclass(slots=True)
class _Writer:
    """``rows``: of each activation its integers and their scale."""

    model: ModelProto
    layers: dict[int, ProductLayer]
    new: NewTensors = field(init=False)
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    rows: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def written(self) -> ModelProto:
        """The new model."""
        changed = ModelProto()
        changed.CopyFrom(self.model)
        graph = changed.graph
        self.new = NewTensors(graph)
        for index, node in enumerate(self.model.graph.node):
            layer = self.layers.get(index)
            if layer is None:
                self.nodes.append(node)
            else:
                self._product(node, layer)
        kept = [NodeProto.FromString(node.SerializeToString()) for node in self.nodes]
        del graph.node[:]
        graph.node.extend(kept)
        graph.initializer.extend(self.new.stored.values())
        drop_unread(changed)
        return changed

    def _product(self, node: NodeProto, layer: ProductLayer) -> None:
        """``node`` on integers: its bias is added to what is scaled back."""
        integers, scale = self._integers(layer.activations[0])
        own = channel_weights(finite_weights(self.model, layer.weights), layer.axis, 1.0, None)
        suffix = f"{layer.weights}_{layer.node}"
        matrix = own.integers if layer.axis else own.integers.T
        weights = self.new.add(f"{suffix}_quantized", np.ascontiguousarray(matrix))
        columns = self.new.add(f"{suffix}_scale", own.scales)
        result = node.output[0]
        sums = self._add("MatMulInteger", [integers, weights], f"{result}_sums")
        wide = self._add("Cast", [sums], f"{result}_wide", to=TensorProto.FLOAT)
        by_rows = self._add("Mul", [wide, scale], f"{result}_by_rows")
        bias = [name for name in node.input[2:] if name]
        scaled = f"{result}_scaled" if bias else ""
        last = self._add("Mul", [by_rows, columns], scaled, result)
        if bias:
            self._add("Add", [last, *bias], "", result)

    def _integers(self, x: str) -> tuple[str, str]:
        """Rows of an activation as int8, and their scales; made once for all products of it."""
        if x not in self.rows:
            size = self._add("Abs", [x], f"{x}_magnitude")
            largest = self._largest(size, x)
            part = self.new.add("part_of_largest", np.float32(1 / _LARGEST))
            least = self.new.add("least_scale", _LEAST_SCALE)
            step = self._add("Mul", [largest, part], f"{x}_step")
            scale = self._add("Max", [step, least], f"{x}_row_scale")
            quotient = self._add("Div", [x, scale], f"{x}_quotient")
            rounded = self._add("Round", [quotient], f"{x}_rounded")
            integers = self._add("Cast", [rounded], f"{x}_integers", to=TensorProto.INT8)
            self.rows[x] = integers, scale
        return self.rows[x]

    def _largest(self, size: str, x: str) -> str:
        opset = max(
            each.version for each in self.model.opset_import if each.domain in ("", "ai.onnx")
        )
        if opset < _OPSET_OF_AXES:
            return self._add("ReduceMax", [size], f"{x}_largest", axes=[-1], keepdims=1)
        axes = self.new.add("last_axis", np.array([-1]))
        return self._add("ReduceMax", [size, axes], f"{x}_largest", keepdims=1)

    def _add(
        self, op: str, inputs: Sequence[str], name: str, result: str = "", **more: object
    ) -> str:
        """One node; its result is ``result``, or has a new name."""
        made = result if result and not name else self.new.name(name)
        node = helper.make_node(op, inputs, [made], f"{made}/{op}")
        node.attribute.extend(helper.make_attribute(key, value) for key, value in more.items())
        self.nodes.append(node)
        return made

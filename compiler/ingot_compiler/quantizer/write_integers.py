"""A model in which QuantizeLinear and DequantizeLinear stand around what a plan names.

In: a ``ModelProto``, a ``TensorPlan``, parameters by tensor. Out: a ``ModelProto``. Not done here:
choosing (``choose_tensors``), rounding (``channel_weights``).

Names of tensors stay; those of new ones are theirs with an ending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, helper

from ingot_compiler.frontend.model.model_bytes import drop_unread
from ingot_compiler.quantizer.channel_weights import channel_weights
from ingot_compiler.quantizer.choose_tensors import TensorPlan
from ingot_compiler.quantizer.layers import ProductLayer, finite_weights
from ingot_compiler.quantizer.new_tensors import NewTensors
from ingot_compiler.quantizer.ranges import Parameters
from ingot_runtime.lazy_dataclass import dataclass

_SIGNED_ZERO = 128


def write_integers(
    model: ModelProto, plan: TensorPlan, parameters: Mapping[str, Parameters], *, signed: bool
) -> ModelProto:
    """The model with integers; ``parameters``: parameters of the plan's roots, ``signed``: whether
    activations are ``int8`` instead of ``uint8``."""
    return _Writer(model, plan, parameters, signed).written()


@dataclass(slots=True)
class _Writer:
    model: ModelProto
    plan: TensorPlan
    found: Mapping[str, Parameters]
    signed: bool
    new: NewTensors = field(init=False)

    def written(self) -> ModelProto:
        """The new model; the given one stays as it is."""
        changed = ModelProto()
        changed.CopyFrom(self.model)
        graph = changed.graph
        self.new = NewTensors(graph)
        layers = {layer.node: layer for layer in self.plan.layers}
        read = {name: self.new.name(f"{name}_dequantized") for name in self.plan.roots}
        made = {name for node in graph.node for name in node.output}
        nodes = [pair for name in read if name not in made for pair in self._pair(name, read[name])]
        for index, node in enumerate(self.model.graph.node):
            nodes += self._node(node, layers.get(index), read)
            nodes += [
                pair
                for name in node.output
                if name in read
                for pair in self._pair(name, read[name])
            ]
        del graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(self.new.stored.values())
        drop_unread(changed)
        return changed

    def _node(
        self, node: NodeProto, layer: ProductLayer | None, read: Mapping[str, str]
    ) -> list[NodeProto]:
        """The node, reading what its operands became, behind its own weights."""
        new = NodeProto()
        new.CopyFrom(node)
        new.input[:] = [read.get(name, name) for name in node.input]
        return [*(self._weights(new, layer) if layer and layer.weights else []), new]

    def _pair(self, name: str, dequantized: str) -> list[NodeProto]:
        """Through integers and back; equal roots share their parameters."""
        root = self.plan.roots[name]
        own, zero = self.found[root], np.uint8(self.found[root].zero)
        shifted = np.int8(own.zero - _SIGNED_ZERO) if self.signed else zero
        parameters = [
            self.new.add(f"{root}_scale", np.float32(own.scale)),
            self.new.add(f"{root}_zero_point", shifted),
        ]
        integers = self.new.name(f"{name}_quantized")
        return [
            _made("QuantizeLinear", [name, *parameters], integers),
            _made("DequantizeLinear", [integers, *parameters], dequantized),
        ]

    def _weights(self, node: NodeProto, layer: ProductLayer) -> list[NodeProto]:
        activation = self.found[self.plan.roots[layer.activations[0]]]
        weights = finite_weights(self.model, layer.weights)
        bias = finite_weights(self.model, layer.bias) if layer.bias else None
        rounded = channel_weights(weights, layer.axis, activation.scale, bias)
        suffix = layer.node
        nodes = [
            self._stored(
                node, 1, f"{layer.weights}_{suffix}", rounded.integers, rounded.scales, layer.axis
            )
        ]
        if rounded.bias is not None:
            nodes.append(
                self._stored(
                    node, 2, f"{layer.bias}_{suffix}", rounded.bias, rounded.bias_scales, 0
                )
            )
        return nodes

    def _stored(
        self,
        node: NodeProto,
        position: int,
        name: str,
        integers: npt.NDArray[np.int8] | npt.NDArray[np.int32],
        scales: npt.NDArray[np.float32],
        axis: int,
    ) -> NodeProto:
        """DequantizeLinear of stored integers, which the node reads then."""
        zeros = np.zeros(scales.shape, integers.dtype)
        parts = (("quantized", integers), ("scale", scales), ("zero_point", zeros))
        names = [self.new.add(f"{name}_{part}", array) for part, array in parts]
        node.input[position] = self.new.name(f"{name}_dequantized")
        return _made("DequantizeLinear", names, node.input[position], axis=axis)


def _made(op: str, inputs: list[str], output: str, axis: int | None = None) -> NodeProto:
    node = helper.make_node(op, inputs, [output], f"{output}/{op}")
    if axis is not None:
        node.attribute.append(helper.make_attribute("axis", axis))
    return node

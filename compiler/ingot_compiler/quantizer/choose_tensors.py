"""Which tensors of a model become integers, so that its products run on them from end to end.

In: a ``ModelProto``, patterns of nodes that stay in floats. Out: a ``TensorPlan``. Not done here:
their ranges (``ranges``), the new model (``write_integers``).

The operands of each product do. From there it goes back through what moves, pools, joins and adds
numbers. Softmax, normalisation and their like compute in floats, and what only they read stays so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from onnx import ModelProto, NodeProto

from ingot_compiler.quantizer.epilogues import Epilogue, epilogues
from ingot_compiler.quantizer.layers import ProductLayer, find_layer
from ingot_compiler.quantizer.model_view import ModelView, view_model
from ingot_compiler.quantizer.op_classes import (
    FLOAT_PRODUCTS,
    MIXES,
    MOVES,
    PRODUCTS,
    SUMS,
    UNARY,
)
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """``layers``: products that are quantized, with the tensor that the epilogue of each gives.
    ``roots``: each tensor that becomes integers -> the one whose range it has. ``left``: products
    that stay in floats, and why."""

    layers: tuple[ProductLayer, ...]
    roots: Mapping[str, str]
    left: tuple[tuple[str, str], ...]


def choose_tensors(model: ModelProto, kept: Sequence[str] = ()) -> TensorPlan:
    """TensorPlan; ``kept`` are names of nodes that stay in floats, perhaps with wildcards."""
    return _Choice(view_model(model), kept).plan()


@dataclass(slots=True)
class _Choice:
    """``wanted``: tensors that become integers -> the tensor that they are moved from, if any."""

    view: ModelView
    kept: Sequence[str]
    wanted: dict[str, str] = field(default_factory=dict[str, str])
    layers: list[ProductLayer] = field(default_factory=list[ProductLayer])
    left: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def plan(self) -> TensorPlan:
        """Look at all nodes, the last one first."""
        found = epilogues(self.view)
        for result, epilogue in reversed([*found.items()]):
            node = self.view.nodes[epilogue.start]
            is_layer = node.op_type in PRODUCTS | FLOAT_PRODUCTS and self._is_layer(epilogue)
            if epilogue.exit not in self.wanted:
                continue
            if is_layer or self._carries(epilogue, found):
                self._want(epilogue.beside)
                if not is_layer:
                    self._want_operands(node, result, epilogue)
        order = [value for node in self.view.nodes for value in node.output]
        places = {name: place for place, name in enumerate(order)}
        names = sorted(self.wanted, key=lambda name: (places.get(name, -1), name))
        roots = {name: self._root(name) for name in names}
        return TensorPlan(tuple(self.layers[::-1]), roots, tuple(self.left[::-1]))

    def _is_layer(self, epilogue: Epilogue) -> bool:
        layer = find_layer(self.view, epilogue, self.kept)
        if layer is None:
            return False
        if isinstance(layer, str):
            self.left.append((self.view.name(epilogue.start), layer))
            return False
        self.layers.append(layer)
        self._want(layer.activations)
        return True

    def _want(self, names: Sequence[str]) -> None:
        for name in names:
            self.wanted.setdefault(name, name)

    def _want_operands(self, node: NodeProto, result: str, epilogue: Epilogue) -> None:
        """What a node that is no product reads, and its result, if it is stored."""
        own = self.view.activations(node)
        if node.op_type in MOVES:
            self._want(own[:1])
            self.wanted[result] = own[0]
        else:
            self._want(own)
            if epilogue.nodes and node.op_type in MIXES:
                self._want([result])

    def _carries(self, epilogue: Epilogue, epilogues: Mapping[str, Epilogue]) -> bool:
        """Whether a node that is no product reads integers where its result becomes integers."""
        node = self.view.nodes[epilogue.start]
        own = self.view.activations(node)
        if not own or node.domain not in ("", "ai.onnx"):
            return False
        if node.op_type in MOVES | MIXES:
            return node.input[0] in own
        if node.op_type in UNARY or (node.op_type in SUMS and len(own) == 1):
            maker = epilogues.get(own[0])
            start = self.view.nodes[maker.start].op_type if maker else ""
            return len(own) == 1 and start in PRODUCTS | MOVES | MIXES
        return node.op_type in SUMS and not self._has_scales(epilogue)

    def _has_scales(self, epilogue: Epilogue) -> bool:
        """Whether it ends a normalisation: a factor or term for each channel."""
        names = (name for index in epilogue.nodes for name in self.view.nodes[index].input)
        known = (self.view.stored.get(name) for name in names)
        return any(sum(dim > 1 for dim in tensor.dims) for tensor in known if tensor is not None)

    def _root(self, name: str) -> str:
        while self.wanted[name] != name:
            name = self.wanted[name]
        return name

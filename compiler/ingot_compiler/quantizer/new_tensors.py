"""Tensors that a quantizer adds to a model, each once, under names that nothing has.

In: a graph of ONNX. Out: names; the tensors, for its initializers. Not done here: which tensors
(``write_integers``, ``write_by_rows``).
"""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, numpy_helper


class NewTensors:
    """``stored``: by the name that each was asked for."""

    def __init__(self, graph: GraphProto) -> None:
        self.stored = dict[str, TensorProto]()
        self._names = {name for node in graph.node for name in (*node.input, *node.output)}
        self._names.update(tensor.name for tensor in graph.initializer)

    def add(self, name: str, array: object) -> str:
        """The name under which an array is stored."""
        if name not in self.stored:
            self.stored[name] = numpy_helper.from_array(np.asarray(array), self.name(name))
        return self.stored[name].name

    def name(self, wanted: str) -> str:
        """A name that no tensor has."""
        while wanted in self._names:
            wanted += "_"
        self._names.add(wanted)
        return wanted

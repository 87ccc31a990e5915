"""One node of another domain with its operands, and what numpy says that it gives.

In: an op, attributes, arrays. Out: ``ContribCase``, the model of its one node. Not done here: the
cases (``cases_*.py``), running them (``test_contrib_ops``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, helper, numpy_helper

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ContribCase:
    """``operands``: None where one is absent; ``expected``: None where a result is not asked for;
    ``constant``: positions of operands that are initializers; ``opset``: of ONNX's own domain;
    ``is_numpy_only``: ONNX Runtime has no kernel for processors; ``needs_sizes``:
    the op is refused where they are not known."""

    name: str
    op: str
    operands: Sequence[Array | None]
    expected: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    constant: Sequence[int] = ()
    domain: str = "com.microsoft"
    opset: int = 17
    tolerance: float = 1e-5
    is_numpy_only: bool = False
    needs_sizes: bool = False

    def inputs(self) -> list[Array]:
        """What a caller gives."""
        return [
            array
            for position, array in enumerate(self.operands)
            if array is not None and position not in self.constant
        ]

    def model(self) -> ModelProto:
        """A model of the one node."""
        names = ["" if array is None else f"x{i}" for i, array in enumerate(self.operands)]
        results = ["" if array is None else f"y{i}" for i, array in enumerate(self.expected)]
        node = helper.make_node(
            self.op, names, results, self.op, domain=self.domain, **self.attributes
        )
        inputs: list[onnx.ValueInfoProto] = []
        stored: list[onnx.TensorProto] = []
        for position, (name, array) in enumerate(zip(names, self.operands, strict=True)):
            if array is None:
                continue
            if position in self.constant:
                stored.append(numpy_helper.from_array(array, name))
            else:
                inputs.append(_value(name, array))
        outputs = [
            _value(name, array)
            for name, array in zip(results, self.expected, strict=True)
            if array is not None
        ]
        graph = helper.make_graph([node], self.name, inputs, outputs, stored)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def opened(model: ModelProto) -> ModelProto:
    """A model of an attention op where the sizes of batches, sequences and caches are unknown."""
    changed = ModelProto()
    changed.CopyFrom(model)
    for value in changed.graph.input:
        dims = value.type.tensor_type.shape.dim
        is_float = value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        of_past = value.name == "x4"
        axes = {3: (0, 1), 4: (0, 2), 5: (1, 3) if of_past else (0, 1)}.get(len(dims), (0, 1))
        for axis in axes[: 0 if is_float and len(dims) < 3 else len(dims)]:
            dims[axis].dim_param = f"{value.name}_{axis}"
    for value in changed.graph.output:
        value.type.tensor_type.ClearField("shape")
    return changed


def _value(name: str, array: Array) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Normal numbers, f32."""
    return f32(scale * np.random.RandomState(seed + len(shape)).randn(*shape))


def f32(values: object) -> Array:
    """An array of f32."""
    return np.asarray(values, dtype=np.float32)

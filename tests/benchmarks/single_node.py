"""Models of one node with the inputs that are given to it.

In: an op, arrays by name. Out: ``Case``s. Not done here: which ops (``algorithm_cases``,
``everyday_cases``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
Case = tuple[ModelProto, Mapping[str, Array]]
_VERSIONS = {"": 20, "ai.onnx.ml": 4}


def random(seed: int = 0) -> np.random.Generator:
    """Numbers that are the same in every run."""
    return np.random.default_rng(seed)


def normal(*shape: int) -> Array:
    """Floats around 0."""
    return random().standard_normal(shape).astype(np.float32)


def one(
    op: str,
    inputs: Mapping[str, Array],
    weights: Mapping[str, Array] | None = None,
    result: int = TensorProto.FLOAT,
    domain: str = "",
    more: Sequence[int] = (),
    **attributes: Any,
) -> Callable[[], Case]:
    """One node of some inputs, with weights behind them; a name that begins with "-" is left out.
    ``result``: the type of the first result, ``more``: those of others."""
    constants = weights or {}
    names = ["" if name.startswith("-") else name for name in (*inputs, *constants)]
    kept = {name: array for name, array in constants.items() if not name.startswith("-")}
    results = {f"y{at or ''}": kind for at, kind in enumerate((result, *more))}
    node = helper.make_node(op, names, list(results), domain=domain, **attributes)
    versions = {domain: 1, **_VERSIONS}
    opsets = [helper.make_opsetid(name, version) for name, version in versions.items()]

    def case() -> Case:
        declared = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
        ]
        made = [helper.make_tensor_value_info(name, kind, None) for name, kind in results.items()]
        graph = helper.make_graph(
            [node], "op", declared, made,
            [numpy_helper.from_array(array, name) for name, array in kept.items()],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=opsets, ir_version=10), inputs

    return case


def opened(case: Callable[[], Case]) -> Callable[[], Case]:
    """The same with sizes above 4 that only the call tells; equal ones have one name."""

    def open_case() -> Case:
        model, inputs = case()
        for value in model.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value > 4:
                    dim.dim_param = f"n{dim.dim_value}"
        return model, inputs

    return open_case

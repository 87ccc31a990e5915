"""A random model in a form that is easy to build, to cut down and to write.

In: inputs, constants, nodes. Out: an ONNX model; several programs as one model. Not done here: what
nodes compute (``reference``), choosing them (``generate``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, printer

Array = npt.NDArray[Any]
OPSET = 20
IR_VERSION = 9
ML = "ai.onnx.ml"
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
OPSETS = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, 3)]


@dataclass(slots=True)
class Program:
    """``shapes``: of the inputs, with names where a size is symbolic; ``inputs``: arrays of one
    call."""

    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    shapes: dict[str, tuple[int | str, ...]] = field(
        default_factory=dict[str, tuple[int | str, ...]]
    )
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    outputs: dict[str, np.dtype[Any]] = field(default_factory=dict[str, np.dtype[Any]])

    def without_dead_parts(self) -> Program:
        """Only what the outputs need."""
        needed, nodes = set(self.outputs), list[NodeProto]()
        for node in reversed(self.nodes):
            if needed & set(node.output):
                nodes.append(node)
                needed |= set(node.input)
        return Program(
            {name: array for name, array in self.inputs.items() if name in needed},
            {name: shape for name, shape in self.shapes.items() if name in needed},
            {name: array for name, array in self.constants.items() if name in needed},
            nodes[::-1],
            dict(self.outputs),
        )

    def symbols(self) -> dict[str, int]:
        """Symbol -> its size in the call that ``inputs`` is."""
        return {
            dim: size
            for name, shape in self.shapes.items()
            for dim, size in zip(shape, self.inputs[name].shape, strict=True)
            if isinstance(dim, str)
        }


def to_model(programs: Sequence[Program]) -> ModelProto:
    """One model of several programs, whose names get prefixes; of one, as it is."""
    graph = helper.make_graph([], "fuzz", [], [])
    for position, program in enumerate(programs):
        prefix = prefix_of(position, len(programs))
        for name, shape in program.shapes.items():
            dims = [prefix + dim if isinstance(dim, str) else dim for dim in shape]
            graph.input.append(
                helper.make_tensor_value_info(
                    prefix + name, element(program.inputs[name].dtype), dims
                )
            )
        for name, dtype in program.outputs.items():
            graph.output.append(helper.make_tensor_value_info(prefix + name, element(dtype), None))
        for name, array in program.constants.items():
            graph.initializer.append(numpy_helper.from_array(np.asarray(array), prefix + name))
        for node in program.nodes:
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.input[:] = [prefix + name if name else "" for name in node.input]
            copy.output[:] = [prefix + name if name else "" for name in node.output]
            graph.node.append(copy)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=IR_VERSION)


def prefix_of(position: int, count: int) -> str:
    """What the names of one of several programs begin with."""
    return f"p{position}_" if count > 1 else ""


def element(dtype: np.dtype[Any]) -> TensorProto.DataType:
    """ONNX's number of a numpy type."""
    return helper.np_dtype_to_tensor_dtype(dtype)


def is_float(array: Array) -> bool:
    """Whether elements are floats, bf16 among them."""
    return array.dtype.kind == "f" or array.dtype in HALVES


def describe(program: Program, why: str) -> str:
    """The program as text: model, then constants and inputs as Python would write them."""
    lines = [f"# {line}" for line in why.splitlines()] + [printer.to_text(to_model([program]))]
    tables: Mapping[str, Mapping[str, Array]] = {
        "constant": program.constants,
        "input": program.inputs,
    }
    for role, arrays in tables.items():
        lines += [
            f"{role} {name}: {array.dtype}{list(array.shape)} {array.tolist()}"
            for name, array in arrays.items()
        ]
    return "\n".join(lines) + "\n"

"""Every ONNX op that is translated, with operands of any rank and attributes of any value: a graph
or a refusal, never a bug."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.defs import OpSchema
from tests.harness.frontend_harness import Array
from tests.hostile.model_builder import FLOAT, INT64, graph_of, model, value

from ingot_compiler.frontend.build import scope
from ingot_compiler.frontend.model.op_schemas import newest_opset, schema_of
from ingot_compiler.frontend.op_table import OPS
from ingot_compiler.ir.errors import InternalError, ModelError
from ingot_runtime.ingot_error import IngotError

OPSET = 26
DTYPES = {
    "tensor(float)": FLOAT,
    "tensor(int64)": INT64,
    "tensor(int32)": TensorProto.INT32,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(uint8)": TensorProto.UINT8,
    "tensor(int8)": TensorProto.INT8,
}
FOUND = {key: schema_of(*key, newest_opset(key[0])) for key in OPS}
SCHEMAS: dict[tuple[str, str], OpSchema] = {
    key: schema
    for key, schema in FOUND.items()
    if schema
    and not any(
        attribute.type == OpSchema.AttrType.GRAPH for attribute in schema.attributes.values()
    )
}
ATTRIBUTES: dict[OpSchema.AttrType, Callable[[random.Random], Any]] = {
    OpSchema.AttrType.INT: lambda draw: draw.choice([-7, -2, -1, 0, 1, 2, 3, 9]),
    OpSchema.AttrType.INTS: lambda draw: [
        draw.choice([-2, -1, 0, 1, 2, 3]) for _ in range(draw.randint(1, 5))
    ],
    OpSchema.AttrType.FLOAT: lambda draw: draw.choice([0.0, 1.0, -1.0, 0.5, float("nan"), 1e30]),
    OpSchema.AttrType.FLOATS: lambda draw: [
        draw.choice([0.0, 1.0, 0.5]) for _ in range(draw.randint(1, 4))
    ],
    OpSchema.AttrType.STRING: lambda draw: draw.choice(
        ["linear", "ij,jk->ik", "SAME_UPPER", "bogus", ""]
    ),
    OpSchema.AttrType.STRINGS: lambda draw: [draw.choice(["Tanh", "Relu", "bogus"])],
    OpSchema.AttrType.TENSOR: lambda draw: numpy_helper.from_array(
        np.ones(draw.choice([(), (1,), (2,)]), np.float32)
    ),
}


def _operands(
    schema: OpSchema, draw: random.Random
) -> tuple[list[ValueInfoProto], dict[str, Array]]:
    """Inputs and constants of types that the schema allows, mostly of one rank, sometimes open."""
    allowed = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    chosen: dict[str, int] = {}
    inputs: list[ValueInfoProto] = []
    constants: dict[str, Array] = {}
    rank = draw.randint(0, 4)
    for position in range(
        draw.randint(schema.min_input, min(schema.max_input, schema.min_input + 6))
    ):
        kind = schema.inputs[min(position, len(schema.inputs) - 1)].type_str
        numbers = [
            DTYPES[text] for text in sorted(allowed.get(kind, [kind])) if text in DTYPES
        ] or [FLOAT]
        dtype = chosen.setdefault(
            kind, FLOAT if FLOAT in numbers and draw.random() < 0.8 else draw.choice(numbers)
        )
        own = rank if draw.random() < 0.5 else draw.randint(0, 5)
        sizes: list[int | str] = [0, 1, 2, 3, 4, "n"]
        shape = [draw.choice(sizes if draw.random() < 0.3 else sizes[1:5]) for _ in range(own)]
        fixed = [size for size in shape if isinstance(size, int)]
        if position and len(fixed) == own and draw.random() < 0.5:
            numbers_drawn = np.random.RandomState(draw.randint(0, 999)).randint(-2, 6, fixed)
            constants[f"x{position}"] = numbers_drawn.astype(helper.tensor_dtype_to_np_dtype(dtype))
        else:
            inputs.append(value(f"x{position}", shape, dtype))
    return inputs, constants


def _model(schema: OpSchema, draw: random.Random) -> ModelProto:
    inputs, constants = _operands(schema, draw)
    attributes: dict[str, Any] = {
        name: ATTRIBUTES[attribute.type](draw)
        for name, attribute in sorted(schema.attributes.items())
        if attribute.type in ATTRIBUTES and (attribute.required or draw.random() < 0.4)
    }
    names = sorted([*constants, *(each.name for each in inputs)], key=lambda name: int(name[1:]))
    outputs = [f"y{position}" for position in range(max(schema.min_output, 1))]
    node: NodeProto = helper.make_node(
        schema.name, names, outputs, "n", domain=schema.domain, **attributes
    )
    built = model(
        [node],
        inputs,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        constants,
        OPSET,
    )
    if schema.domain:
        built.opset_import.append(helper.make_opsetid(schema.domain, newest_opset(schema.domain)))
    return built


@pytest.mark.parametrize("key", sorted(SCHEMAS), ids=lambda key: ".".join(filter(None, key)))
@pytest.mark.sweep(60)
def test_any_rank_and_attribute(key: tuple[str, str]) -> None:
    """Every exception is one of ours, and none of them an InternalError."""
    draw = random.Random(f"{key}")
    for case in range(12):
        try:
            graph_of(_model(SCHEMAS[key], draw))
        except IngotError as error:
            bug_or_silent = isinstance(error, InternalError) or not error.why
            if bug_or_silent:
                pytest.fail(f"case {case}: {error}")


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_recurrent_layers(op: str, rank: int) -> None:
    """Each operand of a recurrent layer, of a wrong rank, names the node."""
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    right = [
        [5, 2, 3],
        [1, 4 * gates, 3],
        [1, 4 * gates, 4],
        [1, 8 * gates],
        [2],
        [1, 2, 4],
        [1, 2, 4],
        [1, 12],
    ]
    right = right[: 8 if op == "LSTM" else 6]
    for position in range(len(right)):
        if rank == len(right[position]):
            continue
        shapes = [[1] * rank if other == position else shape for other, shape in enumerate(right)]
        inputs = [
            value(f"x{i}", shape, TensorProto.INT32 if i == 4 else FLOAT)
            for i, shape in enumerate(shapes)
        ]
        node = helper.make_node(op, [each.name for each in inputs], ["y"], "layer", hidden_size=4)
        with pytest.raises(ModelError) as caught:
            graph_of(model([node], inputs, [value("y", None)]))
        assert caught.value.where == f"node 'layer' ({op})"


def test_a_bug_in_a_translation_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a translation raises reaches the user with the node's name, in four parts, as a bug
    of ours."""

    def broken(_: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(scope, "translate_node", broken)
    node = helper.make_node("Neg", ["x"], ["y"], "/head/neg")
    with pytest.raises(InternalError, match="a bug in Ingot") as caught:
        graph_of(model([node], [value("x", [2])], [value("y", None)]))
    assert caught.value.exit_code == 2
    assert caught.value.where == "node '/head/neg' (Neg)"
    assert "ZeroDivisionError" in caught.value.why
    assert caught.value.do

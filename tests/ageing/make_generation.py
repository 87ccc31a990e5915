"""A new generation of bundles that are kept for ever:
``python tests/ageing/make_generation.py NAME``, from the root, with ``PYTHONPATH=.``

In: a name that no generation has yet, such as the release. Out: a folder with bundles, the inputs
of some calls, what each variant gave. Not done here: comparing (``test_ageing``); changing an old
generation, which nobody ever does.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.decoder_harness import DEPTH, KEY_HEADS, WIDTH, decoder
from tests.harness.end_to_end_harness import make_model, node, reference, tensor
from tests.harness.lowering_harness import assert_close, normal

import ingot
import ingot_runtime
from ingot_runtime.npz import in_bits

HERE = Path(__file__).parent
V2, V3 = "x86-64-v2", "x86-64-v3"
RELATIVE_ERROR_MAX = 1e-5


@dataclass(frozen=True)
class Network:
    """What one bundle is made of, and the inputs of its calls."""

    model: ModelProto
    calls: Sequence[dict[str, Array]]
    targets: tuple[str, ...] = (V2, V3)
    devices: dict[str, str] = field(default_factory=dict[str, str])
    place: dict[str, str] = field(default_factory=dict[str, str])


def elementwise() -> Network:
    """Sizes that the call gives, also 0; two inputs that share one."""
    nodes = [
        node("Sigmoid", "x", "s"),
        node("Mul", "s x", "m"),
        node("Add", "m b", "y"),
        node("ReduceSum", "y", "z", keepdims=0),
    ]
    model = make_model(
        nodes,
        [tensor("x", ["n", "m"]), tensor("b", ["m"])],
        [tensor("y", ["n", "m"]), tensor("z", [])],
    )
    return Network(
        model,
        [{"x": normal(n, n, m), "b": normal(m, m)} for n, m in ((3, 5), (1, 1), (9, 21), (0, 4))],
    )


def convolutions() -> Network:
    """Weights, two convolutions with a residual sum, a dense layer, softmax; any batch."""
    nodes = [
        node("Conv", "x w0", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", "a", "b"),
        node("Conv", "b w1", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Add", "b c", "d"),
        node("GlobalAveragePool", "d", "e"), node("Flatten", "e", "f"), node("Gemm", "f w2 b2", "g"), node("Softmax", "g", "y"),
    ]  # fmt: skip
    weights = {
        "w0": normal(0, 8, 3, 3, 3),
        "w1": normal(1, 8, 8, 3, 3),
        "w2": normal(2, 8, 5),
        "b2": normal(3, 5),
    }
    model = make_model(nodes, [tensor("x", ["n", 3, 10, 10])], [tensor("y", ["n", 5])], weights)
    return Network(model, [{"x": normal(n, n, 3, 10, 10)} for n in (2, 1)])


def control() -> Network:
    """An If of which both branches are taken, and a Loop with a number of turns that is an
    input."""
    then = helper.make_graph([node("Exp", "x", "t")], "then", [], [tensor("t", ["n"])])
    other = helper.make_graph([node("Neg", "x", "e")], "else", [], [tensor("e", ["n"])])
    body = helper.make_graph(
        [
            node("Identity", "going", "goes"),
            node("Mul", "carried half", "h"),
            node("Add", "h x", "next"),
        ],
        "body",
        [
            tensor("i", [], TensorProto.INT64),
            tensor("going", [], TensorProto.BOOL),
            tensor("carried", ["n"]),
        ],
        [tensor("goes", [], TensorProto.BOOL), tensor("next", ["n"])],
    )
    nodes = [
        node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
        node("If", "c", "r", then_branch=then, else_branch=other), node("Loop", "turns yes r", "y", body=body),
    ]  # fmt: skip
    constants = {
        "zero": np.array(0, np.float32),
        "half": np.array(0.5, np.float32),
        "yes": np.array(True),
    }
    inputs = [tensor("x", ["n"]), tensor("turns", [], TensorProto.INT64)]
    model = make_model(nodes, inputs, [tensor("y", ["n"])], constants)
    x = normal(5, 7)
    return Network(
        model,
        [
            {"x": sign * np.abs(x), "turns": np.array(turns)}
            for sign, turns in ((np.float32(1), 3), (np.float32(-1), 0))
        ],
    )


def found() -> Network:
    """Sizes that the data decide: what is not zero, by place and value."""
    nodes = [
        node("Relu", "x", "r"), node("NonZero", "r", "i"), node("Transpose", "i", "t", perm=[1, 0]), node("GatherND", "r t", "g"),
        node("Mul", "g g", "y"),
    ]  # fmt: skip
    model = make_model(
        nodes,
        [tensor("x", ["n", 4])],
        [tensor("y", ["k"]), tensor("t", ["k", 2], TensorProto.INT64)],
    )
    return Network(
        model,
        [{"x": x} for x in (normal(6, 5, 4), -np.abs(normal(7, 2, 4)), normal(8, 30, 4))],
        (V2,),
    )


def types() -> Network:
    """Every element type of ONNX that is computed with, in and out."""
    nodes: list[NodeProto] = []
    inputs: list[ValueInfoProto] = []
    outputs: list[ValueInfoProto] = []
    calls: dict[str, Array] = {}
    for name in (
        "float32",
        "float64",
        "float16",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
    ):
        code = helper.np_dtype_to_tensor_dtype(np.dtype(name))
        nodes += [
            node("Cast", name, f"{name}_f", to=TensorProto.FLOAT),
            node("Cast", f"{name}_f", f"{name}_y", to=code),
        ]
        inputs.append(tensor(name, ["n"], code))
        outputs += [tensor(f"{name}_f", ["n"]), tensor(f"{name}_y", ["n"], code)]
        calls[name] = np.abs(normal(9, 11) * 9).astype(name)
    return Network(make_model(nodes, inputs, outputs), [calls], (V2,))


def devices() -> Network:
    """The convolutions over the host and two devices of kind null: weights on each, copies between
    all of them."""
    made = convolutions()
    for each in made.model.graph.node:
        each.name = f"/{each.output[0]}"
    place = {"/c": "acc", "/d": "acc", "/e": "other", "/g": "other"}
    return Network(made.model, made.calls, (V2,), {"acc": "null:0", "other": "null:1"}, place)


def states() -> Network:
    """A cache that an output continues (format 1.1), read by queries one at a time and several."""
    calls: list[dict[str, Array]] = []
    for past, length in ((0, 3), (3, 1), (7, 2)):
        caches = {
            f"past.{name}": normal(past + 1, 1, KEY_HEADS, past, DEPTH) for name in ("key", "value")
        }
        calls.append({"x": normal(length, 1, length, WIDTH), **caches})
    return Network(decoder(), calls)


def low_bits() -> Network:
    """An input and an output of 8-bit floats (format 1.1), and a sum of them in f32."""
    nodes = [
        node("Cast", "x", "wide", to=TensorProto.FLOAT),
        node("Add", "wide wide", "y"),
        node("Cast", "y", "z", to=TensorProto.FLOAT8E5M2),
    ]
    model = make_model(
        nodes,
        [tensor("x", ["n"], TensorProto.FLOAT8E4M3FN)],
        [tensor("y", ["n"]), tensor("z", ["n"], TensorProto.FLOAT8E5M2)],
    )
    return Network(model, [{"x": normal(1, 7).astype(ml_dtypes.float8_e4m3fn)}])


def _wide(array: Array) -> Array:
    """Floats of 8 bits as f32; others as they are."""
    return array if in_bits(array) is array else array.astype(np.float32)


NETWORKS = (elementwise, convolutions, control, found, types, devices, states, low_bits)


def make(folder: Path) -> None:
    """Write one generation: each bundle compressed (weights are padded to a MiB), its arrays, and
    what must be true of it."""
    folder.mkdir()  # an old generation stays as it is
    index: dict[str, Any] = {}
    for make_network in NETWORKS:
        name, network = make_network.__name__, make_network()
        bundle = ingot.compile(
            network.model, targets=network.targets, devices=network.devices, place=network.place
        )
        data = bundle.to_bytes()
        (folder / f"{name}.ingot.xz").write_bytes(
            lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
        )
        arrays: dict[str, Array] = {}
        for number, call in enumerate(network.calls):
            arrays |= {f"{number}/in/{key}": in_bits(array) for key, array in call.items()}
            for target in network.targets:
                outputs = ingot_runtime.load(data, variant=target).run(call)
                arrays |= {
                    f"{number}/{target}/{key}": in_bits(array) for key, array in outputs.items()
                }
                for key, array in reference(
                    network.model, call
                ).items():  # what is wrong must not be kept for ever
                    assert_close(_wide(array), _wide(outputs[key]), RELATIVE_ERROR_MAX)
        np.savez_compressed(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]  # its stub takes a name for an option
        # The root digest: 32 bytes at the end of the header of 72.
        index[name] = {
            "root_digest": data[40:72].hex(),
            "targets": network.targets,
            "devices": network.devices,
        }
    (folder / "index.json").write_text(
        json.dumps(index, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    make(HERE / sys.argv[1])

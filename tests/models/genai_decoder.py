"""Decoders as the model builder of ONNX Runtime GenAI writes them: attention, caches and rotation
are one op of its own domain, ``GroupQueryAttention``.

In: sizes and switches. Out: an ONNX model with seeded random weights. Not done here: running it.

The shapes of lengths, the names of inputs and outputs and the skipping norms are the builder's;
weights are drawn so that activations stay near one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

DOMAIN = "com.microsoft"
SHAPES = {
    "input_ids": ["batch_size", "sequence_length"],
    "attention_mask": ["batch_size", "total_sequence_length"],
}


@dataclass(frozen=True, slots=True)
class GenaiSizes:
    """``packed``: one product for q, k and v; ``window``: keys that a query sees, -1 for all;
    ``softcap``: of the scores, 0 for none; ``gate``: what the first half of the MLP goes through;
    ``rotary``: rotation inside of the attention; ``bias``: products have one; ``norms``: q and k
    have norms of their own."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    groups: int = 2
    depth: int = 16
    inner: int = 96
    tokens: int = 48
    positions: int = 256
    packed: bool = False
    window: int = -1
    softcap: float = 0.0
    gate: str = "silu"
    rotary: bool = True
    bias: bool = False
    norms: bool = False


@dataclass(slots=True)
class _Graph:
    """Nodes and weights as they are added."""

    sizes: GenaiSizes
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    weights: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])

    def add(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> str:
        """Append a node; ``Name@`` is of the domain of ONNX Runtime. Return its first output."""
        name = op.removesuffix("@")
        domain = DOMAIN if op.endswith("@") else ""
        node = helper.make_node(name, inputs, outputs, outputs[0], domain=domain, **attributes)
        self.nodes.append(node)
        return outputs[0]

    def draw(self, name: str, *shape: int) -> str:
        """Append a weight of standard deviation 1 / sqrt(rows)."""
        scale = shape[0] ** -0.5
        self.weights[name] = (self.rng.standard_normal(shape, np.float32) * scale).astype("f")
        return name

    def scales(self, name: str, count: int) -> str:
        """Append the weights of a norm: near one."""
        self.weights[name] = (1 + self.rng.standard_normal(count) / 8).astype("f")
        return name

    def product(self, x: str, name: str, rows: int, columns: int) -> str:
        """Multiply by a drawn weight; add a drawn bias where the model has them."""
        result = self.add("MatMul", [x, self.draw(f"{name}.weight", rows, columns)], [name])
        if not self.sizes.bias:
            return result
        self.weights[f"{name}.bias"] = self.rng.standard_normal(columns, np.float32) / 8
        return self.add("Add", [result, f"{name}.bias"], [f"{name}.biased"])


def genai_decoder(sizes: GenaiSizes) -> ModelProto:
    """Return a model of these sizes."""
    graph = _Graph(sizes)
    _lengths(graph)
    graph.draw("tokens", sizes.tokens, sizes.width)
    graph.weights["tokens"] *= np.float32(sizes.tokens**0.5)
    x = graph.add("Gather", ["tokens", "input_ids"], ["embedded"])
    normed = _norm(graph, x, "first")
    for number in range(sizes.layers):
        x, normed = _layer(graph, number, x, normed)
    graph.add("MatMul", [normed, graph.draw("head", sizes.width, sizes.tokens)], ["logits"])
    outputs = [_value("logits", TensorProto.FLOAT, [*SHAPES["input_ids"], sizes.tokens])]
    inputs = [_value(name, TensorProto.INT64, shape) for name, shape in SHAPES.items()]
    initializers = [numpy_helper.from_array(array, it) for it, array in graph.weights.items()]
    inputs += _caches(sizes, "past_key_values", "past_sequence_length")
    outputs += _caches(sizes, "present", "total_sequence_length")
    whole = helper.make_graph(graph.nodes, "genai", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(whole, opset_imports=opsets, ir_version=10)


def _lengths(graph: _Graph) -> None:
    """What the attention of all layers is told, computed from the mask."""
    graph.weights |= {"axis": np.array([1]), "single": np.array([1]), "number": np.array(1)}
    graph.add("ReduceSum", ["attention_mask", "axis"], ["mask.sum"], keepdims=1)
    graph.add("Sub", ["mask.sum", "single"], ["mask.before"])
    graph.add("Cast", ["mask.before"], ["seqlens_k"], to=TensorProto.INT32)
    graph.add("Shape", ["attention_mask"], ["mask.shape"])
    graph.add("Gather", ["mask.shape", "number"], ["mask.length"], axis=0)
    graph.add("Cast", ["mask.length"], ["total_length"], to=TensorProto.INT32)
    half = graph.sizes.depth // 2
    angles = np.arange(graph.sizes.positions)[:, None] / 10000 ** (np.arange(half) / half)
    if graph.sizes.rotary:
        graph.weights |= {"cos": np.cos(angles).astype("f"), "sin": np.sin(angles).astype("f")}


def _norm(graph: _Graph, x: str, name: str) -> str:
    scales = graph.scales(f"{name}.scale", graph.sizes.width)
    how: dict[str, Any] = {"axis": -1, "epsilon": 1e-6, "stash_type": 1}
    return graph.add("SimplifiedLayerNormalization", [x, scales], [f"{name}.norm"], **how)


def _skip_norm(graph: _Graph, x: str, other: str, name: str) -> tuple[str, str]:
    """Return the sum of two, and its norm."""
    scales = graph.scales(f"{name}.scale", graph.sizes.width)
    outputs = [f"{name}.norm", "", "", f"{name}.sum"]
    graph.add("SkipSimplifiedLayerNormalization@", [x, other, scales], outputs, epsilon=1e-6)
    return f"{name}.sum", f"{name}.norm"


def _layer(graph: _Graph, number: int, x: str, normed: str) -> tuple[str, str]:
    """Return what the layer adds to, and the norm that the next one reads."""
    at, sizes = f"layers.{number}", graph.sizes
    attended = _attention(graph, number, normed)
    out = graph.product(attended, f"{at}.o", sizes.heads * sizes.depth, sizes.width)
    x, normed = _skip_norm(graph, x, out, f"{at}.middle")
    gate = graph.product(normed, f"{at}.gate", sizes.width, sizes.inner)
    up = graph.product(normed, f"{at}.up", sizes.width, sizes.inner)
    if sizes.gate == "silu":
        graph.add("Sigmoid", [gate], [f"{at}.sigmoid"])
        gate = graph.add("Mul", [gate, f"{at}.sigmoid"], [f"{at}.active"])
    else:
        gate = graph.add("Gelu", [gate], [f"{at}.active"], approximate="tanh")
    both = graph.add("Mul", [gate, up], [f"{at}.inner"])
    down = graph.product(both, f"{at}.down", sizes.inner, sizes.width)
    return _skip_norm(graph, x, down, f"{at}.last")


def _attention(graph: _Graph, number: int, x: str) -> str:
    at, sizes = f"layers.{number}", graph.sizes
    counts = {"q": sizes.heads, "k": sizes.groups, "v": sizes.groups}
    if sizes.packed:
        columns = sum(counts.values()) * sizes.depth
        operands = [graph.product(x, f"{at}.qkv", sizes.width, columns), "", ""]
    else:
        operands = [
            graph.product(x, f"{at}.{name}", sizes.width, count * sizes.depth)
            for name, count in counts.items()
        ]
    if sizes.norms:
        pairs = zip("qk", (sizes.heads, sizes.groups), strict=True)
        normed = [_normed_heads(graph, f"{at}.{name}", count) for name, count in pairs]
        operands[:2] = normed
    operands += [f"past_key_values.{number}.{name}" for name in ("key", "value")]
    operands += ["seqlens_k", "total_length"]
    operands += ["cos", "sin"] if sizes.rotary else ["", ""]
    outputs = [f"{at}.attended", *(f"present.{number}.{name}" for name in ("key", "value"))]
    return graph.add(
        "GroupQueryAttention@",
        operands,
        outputs,
        num_heads=sizes.heads,
        kv_num_heads=sizes.groups,
        do_rotary=int(sizes.rotary),
        local_window_size=sizes.window,
        softcap=sizes.softcap,
        scale=sizes.depth**-0.5,
    )


def _normed_heads(graph: _Graph, name: str, count: int) -> str:
    """The norm of each head of a product without a bias."""
    depth = graph.sizes.depth
    graph.weights |= {
        "heads.apart": np.array([0, -1, depth]),
        f"{name}.together": np.array([0, -1, count * depth]),
    }
    heads = graph.add("Reshape", [name, "heads.apart"], [f"{name}.heads"])
    operands = [heads, graph.scales(f"{name}.scale", depth)]
    how: dict[str, Any] = {"axis": -1, "epsilon": 1e-6, "stash_type": 1}
    graph.add("SimplifiedLayerNormalization", operands, [f"{name}.norm"], **how)
    return graph.add("Reshape", [f"{name}.norm", f"{name}.together"], [f"{name}.normed"])


def _caches(sizes: GenaiSizes, prefix: str, length: str) -> list[ValueInfoProto]:
    return [
        _value(
            f"{prefix}.{number}.{name}",
            TensorProto.FLOAT,
            ["batch_size", sizes.groups, length, sizes.depth],
        )
        for number in range(sizes.layers)
        for name in ("key", "value")
    ]


def _value(name: str, kind: int, shape: Sequence[str | int]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(shape))

"""Write a small decoder with random weights, as exporters write theirs: it speaks nonsense.

In: a file to write, the number of tokens. Out: an ONNX model with caches as inputs and outputs. Not
done here: a real one (docs/decoders.md has the lines that export it).
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

WIDTH, HEADS, KEY_HEADS, DEPTH, LAYERS = 64, 4, 2, 16, 2
Weights = dict[str, np.ndarray]


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    """One node; names are separated by blanks."""
    return helper.make_node(op, inputs.split(), [output], output, **attributes)


def heads(name: str, source: str, count: int, weights: Weights) -> list[NodeProto]:
    """A projection, as [batch, heads, length, depth]."""
    weights[f"{name}.weight"] = np.empty((WIDTH, count * DEPTH), np.float32)
    weights[f"{name}.shape"] = np.array([0, 0, count, DEPTH])
    return [
        node("MatMul", f"{source} {name}.weight", f"{name}.flat"),
        node("Reshape", f"{name}.flat {name}.shape", f"{name}.split"),
        node("Transpose", f"{name}.split", name, perm=[0, 2, 1, 3]),
    ]


def repeated(cache: str, name: str) -> list[NodeProto]:
    """Each head of the cache for the query heads that share it."""
    return [
        node("Unsqueeze", f"{cache} two", f"{name}.one"),
        node("Expand", f"{name}.one repeats", f"{name}.wide"),
        node("Reshape", f"{name}.wide joined", name),
    ]


def layer(number: int, x: str, weights: Weights) -> list[NodeProto]:
    """Attention over the caches of a layer, and a projection, added to x."""
    at = f"layers.{number}"
    weights[f"{at}.out.weight"] = np.empty((HEADS * DEPTH, WIDTH), np.float32)
    nodes = heads(f"{at}.q", x, HEADS, weights)
    for name in ("key", "value"):
        past, present = f"past_key_values.{number}.{name}", f"present.{number}.{name}"
        nodes += heads(f"{at}.{name}", x, KEY_HEADS, weights)
        nodes += [node("Concat", f"{past} {at}.{name}", present, axis=2)]
        nodes += repeated(present, f"{at}.{name}s")
    return [
        *nodes,
        node("Transpose", f"{at}.keys", f"{at}.turned", perm=[0, 1, 3, 2]),
        node("MatMul", f"{at}.q {at}.turned", f"{at}.raw"),
        node("Mul", f"{at}.raw scale", f"{at}.scaled"),
        node("Where", f"seen {at}.scaled lowest", f"{at}.scores"),
        node("Softmax", f"{at}.scores", f"{at}.parts", axis=-1),
        node("MatMul", f"{at}.parts {at}.values", f"{at}.heads"),
        node("Transpose", f"{at}.heads", f"{at}.rows", perm=[0, 2, 1, 3]),
        node("Reshape", f"{at}.rows flat", f"{at}.joined"),
        node("MatMul", f"{at}.joined {at}.out.weight", f"{at}.projected"),
        node("Add", f"{x} {at}.projected", at),
    ]


def write_model(path: Path, token_count: int) -> None:
    """Random weights of a fixed seed."""
    weights: Weights = {"tokens": np.empty((token_count, WIDTH), np.float32)}
    nodes = [
        node("Gather", "tokens input_ids", "embedded"),
        node("Shape", "attention_mask", "columns", start=1, end=2),
        node("Squeeze", "columns", "total"),
        node("Range", "zero total step", "keys"),
        node("Unsqueeze", "position_ids axes", "queries"),
        node("LessOrEqual", "keys queries", "seen"),
    ]
    x = "embedded"
    for number in range(LAYERS):
        nodes += layer(number, x, weights)
        x = f"layers.{number}"
    nodes += [
        node("Transpose", "tokens", "words", perm=[1, 0]),
        node("MatMul", f"{x} words", "logits"),
    ]
    rng = np.random.default_rng(0)
    for name, weight in weights.items():
        if weight.dtype == np.float32:
            weights[name] = (rng.standard_normal(weight.shape) / 8).astype(np.float32)
    weights |= {
        "two": np.array([2]),
        "axes": np.array([1, 3]),
        "zero": np.array(0),
        "step": np.array(1),
        "repeats": np.array([1, 1, HEADS // KEY_HEADS, 1, 1]),
        "flat": np.array([0, 0, HEADS * DEPTH]),
        "joined": np.array([0, HEADS, -1, DEPTH]),
        "scale": np.array(DEPTH**-0.5, np.float32),
        "lowest": np.array(-np.inf, np.float32),
    }
    tensors = [numpy_helper.from_array(it, name) for name, it in weights.items()]
    graph = helper.make_graph(nodes, "decoder", _inputs(), _outputs(token_count), tensors)
    opset = helper.make_opsetid("", 20)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString()
    )


def _inputs() -> list[ValueInfoProto]:
    tokens, whole = ["batch", "sequence"], ["batch", "past + sequence"]
    names = {"input_ids": tokens, "attention_mask": whole, "position_ids": tokens}
    ids = [helper.make_tensor_value_info(it, TensorProto.INT64, names[it]) for it in names]
    return ids + _caches("past_key_values", "past")


def _outputs(token_count: int) -> list[ValueInfoProto]:
    shape: list[str | int | None] = ["batch", "sequence", token_count]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)
    return [logits, *_caches("present", "past + sequence")]


def _caches(prefix: str, length: str) -> list[ValueInfoProto]:
    return [
        helper.make_tensor_value_info(
            f"{prefix}.{number}.{name}", TensorProto.FLOAT, ["batch", KEY_HEADS, length, DEPTH]
        )
        for number in range(LAYERS)
        for name in ("key", "value")
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="write a tiny decoder with random weights")
    parser.add_argument("model", help="the .onnx file to write")
    parser.add_argument("tokens", nargs="?", type=int, default=256, help="how many it knows (256)")
    options = parser.parse_args()
    write_model(Path(options.model), options.tokens)
    print(options.model)

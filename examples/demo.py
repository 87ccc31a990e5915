"""The whole way in one minute: a ResNet-50 becomes one file, and the file gives the right answer by
the loader alone.

In: the topology of the ResNet-50 inside the ``onnx`` package. Out: a bundle, and a report of what
happened. Not done here: real weights; as shipped every weight is 0.02 and every output 0.001, which
would prove nothing.

The weights come from a stated integer generator, so that everyone gets the same: for tensor number
t and element number e, let i = t * 2**32 + e + 1 and, modulo 2**64, z = i * 0x9E3779B97F4A7C15; z =
(z ^ z >> 30) * 0xBF58476D1CE4E5B9; z = (z ^ z >> 27) * 0x94D049BB133111EB; z = z ^ z >> 31
(SplitMix64). The number is (z >> 40) / 2**23 - 1, in [-1, 1). Weights of convolutions and of the
last layer are scaled by sqrt(3 / fan-in); batch normalisation gets scales and variances in [0.5,
1.5) and biases and means in [-0.1, 0.1).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference import ReferenceEvaluator

import ingot

FOLDER = os.path.join("dist", "demo")
INPUT, LOGITS = "gpu_0/data_0", "r174"
SWAPPED = "gpu_0/res2_0_branch2a_w_0"
RELATIVE_ERROR_MAX = 1e-4
Array = npt.NDArray[np.float32]

RUN_BY_LOADER_ALONE = """
import sys, time
import numpy as np
started = time.perf_counter()
import ingot_runtime
session = ingot_runtime.load(sys.argv[1])
loaded = time.perf_counter()
outputs = session.run(dict(np.load(sys.argv[2])))
first = time.perf_counter()
session.run(dict(np.load(sys.argv[2])))
again = time.perf_counter()
np.savez(sys.argv[3], **outputs)
strangers = sorted({name.split(".")[0] for name in sys.modules} & {"ingot_compiler", "ingot_build_rules", "onnx", "llvmlite"})
assert not strangers, strangers
print(f"{(loaded - started) * 1e3:.1f} {(first - loaded) * 1e3:.1f} {(again - first) * 1e3:.1f}")
"""


def numbers(tensor: int, count: int) -> npt.NDArray[np.float64]:
    """Return ``count`` numbers in [-1, 1) by the generator that the module's text states."""
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(tensor << 32)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0


def weight(name: str, tensor: int, shape: tuple[int, ...]) -> Array:
    """Return tensor number ``tensor`` scaled for its role, which its name tells."""
    values = numbers(tensor, int(np.prod(shape))).reshape(shape)
    if name.endswith(("_bn_s_0", "_bn_riv_0")):
        values = 1.0 + values / 2
    elif len(shape) > 1:
        values = values * np.sqrt(3.0 / np.prod(shape[1:]))
    else:
        values = values / 10
    return values.astype(np.float32)


def make_model() -> onnx.ModelProto:
    """Return the network with generated weights; the logits before Softmax are an output too."""
    path = os.path.join(
        os.path.dirname(onnx.__file__), "backend", "test", "data", "light", "light_resnet50.onnx"
    )
    with open(path, "rb") as file:
        model: onnx.ModelProto = onnx.ModelProto.FromString(file.read())
    model.ir_version = 8  # initializers need not be inputs
    # Every op of this model means the same in opset 15, but onnx.reference takes batch
    # normalisation before opset 14 as
    # training: by the statistics of the batch instead of the stored ones.
    model.opset_import[0].version = 15
    graph = model.graph
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    fills = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    names = sorted(node.output[0] for node in fills)
    for node in fills:
        shape = tuple(int(size) for size in constants[node.input[0]])
        array = weight(node.output[0], names.index(node.output[0]), shape)
        graph.initializer.append(onnx.numpy_helper.from_array(array, node.output[0]))
        graph.node.remove(node)
    logits = onnx.helper.make_tensor_value_info(LOGITS, onnx.TensorProto.FLOAT, [1, 1000])
    graph.output.insert(0, logits)
    keep = {operand for node in graph.node for operand in node.input}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in keep]:
        graph.initializer.remove(tensor)
    for value in [value for value in graph.input if value.name != INPUT]:
        graph.input.remove(value)
    return model


def swap_channels(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which one convolution reads its first two input channels in exchanged
    places."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        if tensor.name == SWAPPED:
            array = onnx.numpy_helper.to_array(tensor).copy()
            array[:, [0, 1]] = array[:, [1, 0]]
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, SWAPPED))
    return changed


def run_by_loader(bundle: str, inputs: str) -> tuple[dict[str, Array], list[float]]:
    """Run a bundle in a process that imports nothing of the compiler; return outputs and
    milliseconds."""
    outputs = os.path.join(FOLDER, "outputs.npz")
    done = subprocess.run(
        [sys.executable, "-c", RUN_BY_LOADER_ALONE, bundle, inputs, outputs],
        check=True,
        capture_output=True,
        text=True,
    )
    with np.load(outputs) as file:
        return {name: file[name] for name in file.files}, [
            float(word) for word in done.stdout.split()
        ]


def compile_to(model: onnx.ModelProto, name: str) -> tuple[str, float]:
    """Compile, save; return the path and the seconds."""
    path = os.path.join(FOLDER, name)
    started = time.perf_counter()
    ingot.compile(model, workers=len(os.sched_getaffinity(0))).save(path)
    return path, time.perf_counter() - started


def reference_logits(model: onnx.ModelProto, image: Array) -> Array:
    """Return what ``onnx.reference``, a plain numpy interpreter, makes of the model."""
    evaluator: Any = ReferenceEvaluator(model)
    return np.asarray(evaluator.run([LOGITS], {INPUT: image})[0], np.float32)


def relative_error(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    """Largest difference, by the largest expected magnitude."""
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def main() -> None:
    """Run the demonstration; a wrong answer ends it with an error."""
    os.makedirs(FOLDER, exist_ok=True)
    model = make_model()
    weights = sum(
        int(np.prod(tensor.dims)) for tensor in model.graph.initializer if tensor.data_type == 1
    )
    image = numbers(1 << 20, 3 * 224 * 224).reshape(1, 3, 224, 224).astype(np.float32)
    inputs = os.path.join(FOLDER, "inputs.npz")
    np.savez(inputs, allow_pickle=False, **{INPUT: image})
    print(
        f"model     ResNet-50 of the onnx package, {len(model.graph.node)} nodes, {weights * 4 / 1e6:.1f} MB of weights"
    )

    path, seconds = compile_to(model, "resnet50.ingot")
    print(f"compiled  {path}, {os.path.getsize(path) / 1e6:.1f} MB, in {seconds:.1f} s")

    outputs, (load_ms, first_ms, next_ms) = run_by_loader(path, inputs)
    print(
        f"loaded    in {load_ms:.1f} ms with every byte verified, by a process without compiler, onnx and LLVM"
    )
    print(f"ran       first call {first_ms:.1f} ms, second {next_ms:.1f} ms, 1 thread")

    started = time.perf_counter()
    expected = reference_logits(model, image)
    error = relative_error(outputs[LOGITS], expected)
    print(
        f"checked   against onnx.reference ({time.perf_counter() - started:.0f} s): relative error {error:.1e}"
    )
    assert error < RELATIVE_ERROR_MAX, f"expected less than {RELATIVE_ERROR_MAX}"

    other, seconds = compile_to(swap_channels(model), "swapped.ingot")
    changed, _ = run_by_loader(other, inputs)
    difference = relative_error(changed[LOGITS], expected)
    print(
        f"swapped   two input channels of {SWAPPED}: built again in {seconds:.1f} s, the logits move by {difference:.1e}"
    )
    assert difference > 10 * RELATIVE_ERROR_MAX, "the weights do not matter"

    print("try next")
    print(f"  .venv/bin/ingot inspect {path}")
    print(f"  .venv/bin/ingot bench {path} --threads 2")
    print(f"  .venv/bin/ingot diff {path} {other}")


if __name__ == "__main__":
    main()

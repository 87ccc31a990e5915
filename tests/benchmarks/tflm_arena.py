"""The networks of MLPerf Tiny in TensorFlow Lite for Microcontrollers: how large the arena is.

In: nothing; runs under a Python that has ``tensorflow`` and ``tflite-micro``. Out: a line of JSON for
each: bytes of the arena's head (values, inputs and outputs among them) and tail (what the interpreter
keeps), of the file. Not done here: our side (``bench_microcontroller``).

The layers are those of ``tests.tiny_models`` and of ``examples/microcontroller``, quantized to int8
from the input to the output; weights are random. The arena is measured by TFLM's recording allocator
on this machine, whose pointers have 64 bits: on a Cortex-M the tail is smaller.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

Pair = tuple[Any, Any]

ARENA_BYTES = 1 << 22
BLOCKS = (
    (16, 1),
    (32, 2),
    (32, 1),
    (64, 2),
    (64, 1),
    (128, 2),
    *[(128, 1)] * 5,
    (256, 2),
    (256, 1),
)


def ds_cnn(layers: Any) -> Pair:
    """Keywords."""
    x = given = layers.Input((49, 10, 1))
    x = layers.Conv2D(64, (10, 4), 2, padding="same", activation="relu")(x)
    for _ in range(4):
        x = layers.DepthwiseConv2D(3, padding="same", activation="relu")(x)
        x = layers.Conv2D(64, 1, activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return given, layers.Dense(12, activation="softmax")(x)


def resnet8(layers: Any) -> Pair:
    """Images."""
    given = layers.Input((32, 32, 3))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(given)
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        y = layers.Conv2D(width, 3, stride, padding="same", activation="relu")(x)
        y = layers.Conv2D(width, 3, padding="same")(y)
        if stride > 1:
            x = layers.Conv2D(width, 1, stride, padding="same")(x)
        x = layers.ReLU()(layers.Add()([x, y]))
    return given, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(x))


def autoencoder(layers: Any) -> Pair:
    """Anomalies."""
    x = given = layers.Input((640,))
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = layers.Dense(width, activation="relu")(x)
    return given, layers.Dense(640)(x)


def person(layers: Any) -> Pair:
    """Is there a person."""
    given = layers.Input((96, 96, 3))
    x = layers.Conv2D(8, 3, 2, padding="same", activation="relu")(given)
    for width, stride in BLOCKS:
        x = layers.DepthwiseConv2D(3, stride, padding="same", activation="relu")(x)
        x = layers.Conv2D(width, 1, activation="relu")(x)
    return given, layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling2D()(x))


NETWORKS = {f.__name__: f for f in (ds_cnn, resnet8, autoencoder, person)}


def convert(name: str, path: str) -> None:
    """Write the file of a network."""
    np: Any = importlib.import_module("numpy")
    tf: Any = importlib.import_module("tensorflow")
    model = tf.keras.Model(*NETWORKS[name](tf.keras.layers))
    random = np.random.default_rng(0)
    for weights in model.weights:
        shape = weights.shape
        fan_in = np.prod(shape[:2] if len(shape) == 4 and shape[3] == 1 else shape[:-1])
        spread = np.sqrt(2 / fan_in) if len(shape) > 1 else 0.1
        weights.assign(spread * random.standard_normal(shape))
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    shape = (1, *model.inputs[0].shape[1:])
    converter.representative_dataset = lambda: (
        [random.standard_normal(shape).astype(np.float32)] for _ in range(8)
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    with open(path, "wb") as file:
        file.write(converter.convert())


def allocate(path: str) -> None:
    """Let the interpreter print what its arena has."""
    runtime: Any = importlib.import_module("tflite_micro.python.tflite_micro.runtime")
    runtime.Interpreter.from_file(path, arena_size=ARENA_BYTES).print_allocations()


def main() -> None:
    """Each step is a process of its own, in the current folder."""
    if len(sys.argv) > 1:
        steps: dict[str, Callable[..., None]] = {"convert": convert, "allocate": allocate}
        steps[sys.argv[1]](*sys.argv[2:])
        return
    for name in NETWORKS:
        path = f"{name}.tflite"
        for arguments in (("convert", name, path), ("allocate", path)):
            line = (sys.executable, __file__, *arguments)
            done = subprocess.run(line, capture_output=True, text=True, check=True)
        told = done.stdout + done.stderr
        found = dict(re.findall(r"Arena allocation (head|tail) (\d+) bytes", told))
        with open(path, "rb") as file:
            size = len(file.read())
        print(json.dumps({"name": name, "file": size, **{k: int(v) for k, v in found.items()}}))


if __name__ == "__main__":
    main()

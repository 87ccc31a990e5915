"""Code for other processors: compiled, linked and inspected here; run under qemu-user where marked.

A bundle's image needs neither loader nor Python nor libc: ``foreign_runner.c``, a static program of
150 lines, maps and calls it. The same runner, made for this machine, must give the loader's own
bits.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, reference, tensor
from tests.harness.lowering_harness import assert_close, normal
from tests.harness.qemu_harness import emulator

import ingot
import ingot_runtime
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format import abi
from ingot_runtime.format import header as head
from ingot_runtime.format.dtypes import DTYPE_CODES
from ingot_runtime.format.source import Source, open_file, read_plan
from ingot_runtime.loader import cpu

RELATIVE = 1e-5
TRIPLES = {
    "aarch64": "aarch64-linux-none",
    "riscv64": "riscv64-linux-none",
    "x86-64-v2": "x86_64-linux-none",
}
_EXPORT_WORDS = {"MAIN_WORD": "main", "FRAME_WORD": "frame_bytes"}
_CODES = {"float32": DTYPE_CODES["f32"], "int64": DTYPE_CODES["i64"]}
_NAMES = {code: name for name, code in _CODES.items()}


def convolutions() -> ModelProto:
    """Contraction, depthwise, pool, row kernel; free batch and height."""
    nodes = [
        node("Conv", "x w0", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
        node("Conv", "r w1", "d", pads=[1, 1, 1, 1], group=8), node("Add", "d r", "s"),
        node("MaxPool", "s", "p", kernel_shape=[2, 2]), node("GlobalAveragePool", "p", "g"), node("Flatten", "g", "f"),
        node("MatMul", "f w2", "m"), node("Gelu", "m", "a"), node("Softmax", "a", "y"), node("ArgMax", "y", "best", axis=1),
    ]  # fmt: skip
    constants = {"w0": normal(0, 8, 3, 3, 3), "w1": normal(1, 8, 1, 3, 3), "w2": normal(2, 8, 37)}
    return make_model(
        nodes,
        [tensor("x", ["n", 3, "h", 9])],
        [tensor("y", ["n", 37]), tensor("best", ["n", 1], 7)],
        constants,
    )


def attention() -> ModelProto:
    """Gathered rows, attention over any length, a normalisation."""
    nodes = [
        node("Gather", "table ids", "h"), node("Reshape", "h split", "q0"), node("Transpose", "q0", "q", perm=[0, 2, 1, 3]),
        node("Transpose", "q0", "k", perm=[0, 2, 3, 1]), node("MatMul", "q k", "s"), node("Softmax", "s", "p"),
        node("MatMul", "p q", "o0"), node("Transpose", "o0", "o1", perm=[0, 2, 1, 3]), node("Reshape", "o1 join", "o"),
        node("LayerNormalization", "o gamma beta", "n"), node("Tanh", "n", "t"), node("Exp", "t", "y"),
    ]  # fmt: skip
    constants: dict[str, Array] = {
        "table": normal(0, 20, 16), "split": np.array([0, 0, 2, 8]), "join": np.array([0, 0, 16]), "gamma": normal(1, 16),
        "beta": normal(2, 16),
    }  # fmt: skip
    return make_model(
        nodes, [tensor("ids", ["b", "s"], 7)], [tensor("y", ["b", "s", 16])], constants
    )


MODELS: dict[str, tuple[ModelProto, dict[str, Array]]] = {
    "convolutions": (convolutions(), {"x": normal(3, 2, 3, 6, 9)}),
    "attention": (attention(), {"ids": np.random.default_rng(0).integers(0, 20, (2, 7))}),
}


def make_runner(folder: Path, target: str) -> Path:
    """Compile the runner for a target, without any libc; the compiler is the linker's package."""
    macros = {
        "ABI": abi.ABI_VERSION,
        **{word: len(abi.IMAGE_HEADER) + abi.EXPORTS.index(name) for word, name in _EXPORT_WORDS.items()},
        "CALL_SIZE": abi.CALL.size_bytes, "TENSOR_SIZE": abi.TENSOR.size_bytes, "DEVICE_SIZE": abi.DEVICE.size_bytes,
        **{f"TENSOR_{name.upper()}": offset for name, offset in abi.TENSOR.offsets.items()},
        **{f"CALL_{'SIZE_FIELD' if name == 'size' else name.upper()}": at for name, at in abi.CALL.offsets.items()},
    }  # fmt: skip
    path = folder / f"runner-{target}"
    subprocess.run(
        [
            sys.executable, "-m", "ziglang", "cc", "-target", TRIPLES[target], "-O1", "-ffreestanding", "-nostdlib", "-static",
            "-fno-stack-protector", "-fno-sanitize=all", *(f"-D{name}={value}" for name, value in macros.items()),
            str(Path(__file__).with_name("foreign_runner.c")), "-o", str(path),
        ],
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    return path


def bundle_weights(source: Source) -> bytes:
    """The weights section (its digests are those of its tree)."""
    row = source.by_key[head.WEIGHTS, 0]
    return os.pread(source.fd, row.size_bytes, row.offset)


def run_image(
    command: Sequence[str | Path], bundle: Path, feed: dict[str, Array]
) -> dict[str, Array]:
    """The outputs of the one variant of a bundle, computed by the runner."""
    source = open_file(bundle)
    plan = read_plan(source)
    weights = bundle_weights(source)
    image = source.section(head.CODE, 0)
    words = [len(image), len(weights), len(plan.inputs), len(plan.outputs)]
    arrays = [np.ascontiguousarray(feed[item.name]) for item in plan.inputs]
    for array in arrays:
        words += [array.ndim, _CODES[array.dtype.name], array.nbytes, *array.shape]
    for item in plan.outputs:
        words += [len(item.dims), item.dtype, 0, *[0] * len(item.dims)]
    stdin = (
        struct.pack(f"<{len(words)}Q", *words)
        + image
        + weights
        + b"".join(array.tobytes() for array in arrays)
    )
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)
    results: dict[str, Array] = {}
    at = 0
    for item in plan.outputs:
        shape = struct.unpack_from(f"<{len(item.dims)}Q", done.stdout, at)
        at += 8 * len(shape)
        values = np.frombuffer(done.stdout, _NAMES[item.dtype], int(np.prod(shape)), at)
        results[item.name] = values.reshape(shape)
        at += values.nbytes
    assert at == len(done.stdout)
    return results


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Every model for every target, one bundle each."""
    folder = tmp_path_factory.mktemp("foreign")
    paths = {
        (name, target): folder / f"{name}-{target}.ingot" for name in MODELS for target in TRIPLES
    }
    for (name, target), path in paths.items():
        ingot.compile(MODELS[name][0], targets=[target]).save(path)
    return paths


@pytest.mark.broad
@pytest.mark.parametrize("target", ["aarch64", "riscv64"])
@pytest.mark.parametrize("name", MODELS)
def test_a_foreign_bundle_is_whole(
    bundles: dict[tuple[str, str], Path], name: str, target: str
) -> None:
    """All sections are there and hold; the image has its table and pages; the loader refuses to run
    it, by name."""
    source = open_file(bundles[name, target])
    plan = read_plan(source)
    assert [variant.target for variant in plan.variants] == [target]
    image = source.section(head.CODE, 0)
    magic, version, text_bytes = struct.unpack_from("<3I", image)
    assert (magic, version) == (abi.IMAGE_MAGIC, abi.ABI_VERSION)
    page_bytes = parse_target(target).page_bytes
    assert len(image) % page_bytes == text_bytes % page_bytes == 0
    if not cpu.machine_architecture().startswith(target):
        with pytest.raises(ingot_runtime.IncompatibleError, match="this processor"):
            ingot_runtime.load(bundles[name, target])


@pytest.mark.broad
def test_foreign_code_uses_its_vectors() -> None:
    """The assembly of a contraction is multiply-adds of whole vectors, not a library call."""
    text = ingot.compile(convolutions(), targets=["aarch64"]).text("library")
    assert "aarch64" in text


@pytest.mark.broad
@pytest.mark.parametrize("name", MODELS)
def test_an_image_needs_no_loader(
    bundles: dict[tuple[str, str], Path], tmp_path: Path, name: str
) -> None:
    """A static program of this machine gives the loader's own bits."""
    runner = make_runner(tmp_path, "x86-64-v2")
    feed = MODELS[name][1]
    expected = ingot_runtime.load(bundles[name, "x86-64-v2"]).run(feed)
    for output, array in run_image([runner], bundles[name, "x86-64-v2"], feed).items():
        np.testing.assert_array_equal(array, expected[output])


@pytest.mark.qemu
@pytest.mark.parametrize("target", ["aarch64", "riscv64"])
@pytest.mark.parametrize("name", MODELS)
def test_foreign_code_gives_the_right_answer(
    bundles: dict[tuple[str, str], Path], tmp_path: Path, name: str, target: str
) -> None:
    """The whole image, ``main`` and all kernels, under qemu-user."""
    model, feed = MODELS[name]
    command: list[str | Path] = [*emulator(target), make_runner(tmp_path, target)]
    results = run_image(command, bundles[name, target], feed)
    for output, array in reference(model, feed).items():
        assert_close(array, results[output], RELATIVE)

"""Fourier transforms of many lengths, beside numpy's in f64."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, run_model, translate

import ingot
from ingot_compiler.frontend.families.fourier.fourier_chirp import convolution_length
from ingot_compiler.frontend.families.fourier.fourier_radices import RADIX_MAX, radices
from ingot_compiler.lowering.constants.constant_expression import constant_values

LENGTHS = (1, 2, 3, 16, 30, 97, 139, 400, 1009, 1018, 4096)
STAGED = (400, 999, 4096)


def model(shape: tuple[Any, ...], size: int | None = None, **attributes: int) -> ModelProto:
    """One DFT along axis 1 of an input of that shape."""
    tables = {"a": np.array(1)} | ({} if size is None else {"n": np.array(size)})
    nodes = [node("DFT", "x - a" if size is None else "x n a", "y", **attributes)]
    return make_model(nodes, [tensor("x", shape)], [tensor("y", None)], tables)


def expected(x: Array, size: int, *, inverse: bool, onesided: bool) -> Array:
    """numpy's transform in f64, as ONNX lays it out."""
    wide = x.astype(np.float64)
    signal = wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]
    if inverse and onesided:
        return np.fft.irfft(signal, size, axis=1)[..., None]
    y = (np.fft.ifft if inverse else np.fft.fft)(signal, size, axis=1)
    y = y[:, : size // 2 + 1] if onesided else y
    return np.stack((y.real, y.imag), -1)


def random(*shape: int) -> Array:
    """Numbers from a fixed seed."""
    return np.random.default_rng(prod(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.sweep(16)
def test_lengths(length: int, inverse: int, parts: int) -> None:
    """Real and complex signals of every kind of length, both directions: the error is that of
    rounding the result to f32."""
    x = random(2, length, 2, parts)
    want = expected(x, length, inverse=bool(inverse), onesided=False)
    scale = float(np.abs(want).max())
    outcome = run_model(
        model(x.shape, inverse=inverse), [x], [want.astype(np.float32)], 1e-7, 1e-7 * scale
    )
    assert outcome.kind == "agrees", outcome.detail


@pytest.mark.parametrize("length", LENGTHS)
def test_one_sided(length: int) -> None:
    """One half of the spectrum of a real signal."""
    x = random(2, length, 1)
    want = expected(x, length, inverse=False, onesided=True)
    scale = float(np.abs(want).max())
    outcome = run_model(
        model(x.shape, onesided=1), [x], [want.astype(np.float32)], 1e-7, 1e-7 * scale
    )
    assert outcome.kind == "agrees", outcome.detail


@pytest.mark.sweep(3)
@pytest.mark.parametrize("size", [30, 400, 401, 1018, 4096])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_real_signal_from_half_of_its_spectrum(size: int, parts: int) -> None:
    """The inverse of the above, for even and odd lengths."""
    x = random(2, size // 2 + 1, parts)
    want = expected(x, size, inverse=True, onesided=True)
    proto = model(x.shape, size, inverse=1, onesided=1)
    outcome = run_model(proto, [x], [want.astype(np.float32)], 1e-6, 1e-7)
    assert outcome.kind == "agrees", outcome.detail


@pytest.mark.parametrize(("own", "size"), [(300, 400), (500, 400), (300, 401), (500, 401)])
def test_a_signal_shorter_and_longer_than_the_transform(own: int, size: int) -> None:
    """Zeros behind, or the first elements alone."""
    x = random(3, own, 2)
    want = expected(x, size, inverse=False, onesided=False)
    scale = float(np.abs(want).max())
    outcome = run_model(model(x.shape, size), [x], [want.astype(np.float32)], 1e-7, 1e-7 * scale)
    assert outcome.kind == "agrees", outcome.detail


@pytest.mark.parametrize("length", STAGED)
def test_matrices_are_constants(length: int) -> None:
    """Where the length is known nothing is computed of angles in a call: every factor of every
    product is constant."""
    graph, _ = translate(model((1, length, 1), onesided=1), MemoryStore())
    products = [each for each in graph.nodes if each.op == "matmul"]
    found = constant_values(graph)
    assert len(products) == len(radices(length)) > 1
    assert all(each.operands[1] in found for each in products)


@pytest.mark.broad
def test_compiled(tmp_path: Path) -> None:
    """Machine code: a dynamic batch, other axes, both algorithms."""
    nodes = [
        node("DFT", "x - a", "y", onesided=1),
        node("DFT", "c", "z", inverse=1),
    ]
    inputs = [tensor("x", ["b", 400, 2, 1]), tensor("c", ["b", 2, 262, 2])]
    outputs = [tensor("y", None), tensor("z", None)]
    proto = make_model(nodes, inputs, outputs, {"a": np.array(1)})
    path = tmp_path / "model.ingot"
    ingot.compile(proto).save(path)
    feeds = [{"x": random(b, 400, 2, 1), "c": random(b, 2, 262, 2)} for b in (1, 3)]
    for feed, result in zip(feeds, run_all_ways(path, feeds), strict=True):
        forth = expected(feed["x"], 400, inverse=False, onesided=True)
        np.testing.assert_allclose(result["y"], forth, rtol=1e-7, atol=1e-5)
        back = expected(feed["c"].swapaxes(1, 2), 262, inverse=True, onesided=False)
        np.testing.assert_allclose(result["z"], back.swapaxes(1, 2), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("length", range(1, 600, 7))
def test_radices(length: int) -> None:
    """Their product is the length; several are at most 128 each."""
    factors = radices(length)
    assert prod(factors) == length
    assert len(factors) == 1 or max(factors) <= RADIX_MAX


@pytest.mark.parametrize("length", range(257, 9000, 379))
def test_lengths_of_convolutions(length: int) -> None:
    """Long enough, little longer, and of small factors."""
    size = convolution_length(length)
    assert 2 * length - 1 <= size < 1.13 * 2 * length
    assert len(radices(size)) > 1

"""``ingot_selftest``: the loader in C proves a bundle as the loader in Python does, call by call."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.c_loader import CBundle, LoaderError, Verdict
from tests.unit.tools.test_selftest import DAMAGES, bundle, changed

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.errors import BundleError
from ingot_runtime.format import header as head
from ingot_runtime.selftest import prove

__all__ = ["bundle"]  # a fixture


def same_proof(path: Path) -> tuple[int, float, list[str]] | Verdict:
    """What both loaders find."""
    found: list[tuple[int, float, list[str]] | Verdict] = []
    with ingot_runtime.load(path) as session, CBundle(path) as in_c:
        try:
            proof = prove(session)
            found.append((proof.count, proof.error, proof.failures[:3]))
        except BundleError as error:
            found.append(Verdict.of(error))
        try:
            told = in_c.selftest()
            lines = [line for line in told.failures.decode().split("; ") if line]
            assert len(lines) == min(told.failure_count, 3)
            found.append((told.call_count, told.error, lines))
        except LoaderError as error:
            found.append(error.verdict)
    assert found[0] == found[1]
    return found[0]


def test_a_bundle_proves_itself(bundle: Path) -> None:
    """With the same error."""
    proof = same_proof(bundle)
    assert isinstance(proof, tuple)
    assert (proof[0], proof[2]) == (2, [])
    assert 0 < proof[1] < 1e-6


CHANGES: list[Callable[[bytearray], object]] = [
    lambda data: data.__setitem__(-64, data[-64] ^ 1),  # an integer
    lambda data: data.__setitem__(-61, 255),  # one that f64 rounds
    *(lambda data, at=at: data.__setitem__(at, data[at] ^ 0x80) for at in range(128, 1000, 61)),
]


@pytest.mark.parametrize("change", [*CHANGES, *DAMAGES])
@pytest.mark.sweep(3)
def test_both_loaders_find_the_same(
    change: Callable[[bytearray], object],
    bundle: Path,
    tmp_path: Path,
) -> None:
    """Of a wrong number, of limits and shapes that are others, of a section that is none."""

    def within(data: bytearray) -> None:
        try:
            change(data)
        except IndexError:
            data[128] ^= 0x80

    same_proof(changed(bundle, tmp_path, within))


def test_a_wrong_result_is_told(bundle: Path, tmp_path: Path) -> None:
    """By call, output and error."""
    proof = same_proof(changed(bundle, tmp_path, CHANGES[0]))
    assert isinstance(proof, tuple)
    assert len(proof[2]) == 1
    assert proof[2][0].startswith("call 1, output 'm': error ")


def test_a_bundle_without_calls(bundle: Path, tmp_path: Path) -> None:
    """It proves nothing, and both say so."""
    with opened(bundle) as source:
        calls = frozenset({(head.SELFTEST, 0), (head.SELFTEST, 1)})
        rewrite_bundle(source, Changes(dropped=calls), tmp_path / "none.ingot")
    verdict = same_proof(tmp_path / "none.ingot")
    assert isinstance(verdict, Verdict)
    assert verdict.what == "the bundle holds no selftest"


SPECIALS = {
    TensorProto.FLOAT16: "<e",
    TensorProto.FLOAT: "<f",
    TensorProto.DOUBLE: "<d",
    TensorProto.INT8: "<b",
    TensorProto.UINT64: "<Q",
    TensorProto.BFLOAT16: "<H",
}


@pytest.mark.parametrize("dtype", SPECIALS)
@pytest.mark.sweep(12)
def test_numbers_of_all_kinds(dtype: TensorProto.DataType, tmp_path: Path) -> None:
    """Largest, smallest, infinite and no numbers as expected results: the same error."""
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", dtype, [16])],
        [helper.make_tensor_value_info("y", dtype, [16])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    path = tmp_path / "m.ingot"
    assert (
        main(["compile", str(tmp_path / "m.onnx"), "-o", str(path), "--selftest", "2", "-q"]) == 0
    )
    width = struct.calcsize(SPECIALS[dtype])
    random = np.random.default_rng(dtype)
    for _ in range(12):
        elements = random.integers(0, 256, (16, width), np.uint8)
        elements[random.random(16) < 0.3] = 255
        elements[random.random(16) < 0.3] = 0

        def forge(data: bytearray, elements: bytes = elements.tobytes()) -> None:
            end = len(data) - -(-len(elements) // 64) * 64
            data[end : end + len(elements)] = elements

        same_proof(changed(path, tmp_path, forge))

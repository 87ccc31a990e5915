"""``--selftest``: calls and results in the bundle, made where it is compiled, proved where it
runs."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.json_schemas import checked

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.command import main as device
from ingot_runtime.errors import FormatError
from ingot_runtime.format import header as head
from ingot_runtime.format.selftest import decode_case
from ingot_runtime.selftest import compare

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two calls of a model with floats of open length, and an integer, and a comparison."""
    folder = tmp_path_factory.mktemp("selftest")
    graph = helper.make_graph(
        [
            helper.make_node("Exp", ["x"], ["e"]),
            helper.make_node("Greater", ["x", "e"], ["b"]),
            helper.make_node("Add", ["n", "n"], ["m"]),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3]),
            helper.make_tensor_value_info("n", TensorProto.INT64, []),
        ],
        [
            helper.make_tensor_value_info("e", TensorProto.FLOAT, ["batch", 3]),
            helper.make_tensor_value_info("b", TensorProto.BOOL, ["batch", 3]),
            helper.make_tensor_value_info("m", TensorProto.INT64, []),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    path = folder / "m.ingot"
    line = ["compile", str(folder / "m.onnx"), "-o", str(path), "--selftest", "2", "-q"]
    assert main([*line, "--target", "x86-64-v2"]) == 0
    return path


def changed(bundle: Path, tmp_path: Path, change: Callable[[bytearray], object]) -> Path:
    """The bundle with another second call."""
    path = tmp_path / "changed.ingot"
    with opened(bundle) as source:
        data = bytearray(source.section(head.SELFTEST, 1))
        change(data)
        rewrite_bundle(source, Changes({(head.SELFTEST, 1): bytes(data)}), path)
    return path


def test_a_bundle_proves_itself(bundle: Path, capsys: Output) -> None:
    """One line and exit code 0, by main and by the vm; the calls differ; whoever does not ask for
    them sees a bundle like any other."""
    assert device(["selftest", str(bundle)]) == 0
    assert capsys.readouterr().out.startswith(f"{bundle}: passed, 2 of x86-64-v2, error ")
    assert device(["selftest", str(bundle), "--executor", "vm", "--json"]) == 0
    told = checked("device-selftest", capsys.readouterr().out)
    assert told["call_count"] == 2
    assert told["failures"] == []
    assert told["error"] < 1e-6
    assert main(["verify", str(bundle)]) == 0
    with opened(bundle) as source, ingot_runtime.load(bundle) as session:
        plan = session.loaded.plan
        first, second = (decode_case(source.section(head.SELFTEST, at), plan, "") for at in (0, 1))
    assert first.inputs[0] != second.inputs[0]
    assert first.limits[2] == (0.0, 0.0)
    assert 0 < first.limits[1][1] < 0.02


def test_a_wrong_result_is_told(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """Exit code 4; call, output and error are named. The second output is an integer: any other is
    wrong."""
    path = changed(bundle, tmp_path, lambda data: data.__setitem__(-64, data[-64] ^ 1))
    assert device(["selftest", str(path)]) == 4
    line = capsys.readouterr().out
    assert "failed" in line
    assert "call 1, output 'm'" in line
    assert line.count("\n") == 1


DAMAGES: list[Callable[[bytearray], object]] = [
    lambda data: data.clear(),
    lambda data: data.__delitem__(slice(-64, None)),
    lambda data: data.extend(bytes(64)),
    lambda data: data.__setitem__(-1, 1),
    lambda data: data.__setitem__(slice(0, 8), struct.pack("<q", 3)),
    lambda data: data.__setitem__(slice(8, 16), struct.pack("<q", -1)),
    lambda data: data.__setitem__(slice(8, 16), struct.pack("<q", 1 << 62)),
    lambda data: data.__setitem__(slice(16, 24), struct.pack("<q", 4)),
]


@pytest.mark.parametrize("change", DAMAGES)
def test_a_section_that_is_none_is_refused(
    change: Callable[[bytearray], object], bundle: Path, tmp_path: Path
) -> None:
    """Whatever is wrong with it, before a call is made of it."""
    with ingot_runtime.load(changed(bundle, tmp_path, change)) as session:
        source = session.loaded.source
        with pytest.raises(FormatError, match=r"section|tensor|rank|shape"):
            decode_case(source.section(head.SELFTEST, 1), session.loaded.plan, "section selftest 1")


def test_limits_that_are_none_are_refused(bundle: Path) -> None:
    """Not a number, and less than nothing."""
    with opened(bundle) as source, ingot_runtime.load(bundle) as session:
        data = source.section(head.SELFTEST, 0)
        at = next(
            at for at in range(0, len(data), 64) if 1e-9 < struct.unpack_from("<d", data, at)[0] < 1
        )
        for wrong in (float("nan"), -1.0, float("inf")):
            forged = data[:at] + struct.pack("<d", wrong) + data[at + 8 :]
            with pytest.raises(FormatError, match="bad limits"):
                decode_case(forged, session.loaded.plan, "")


def test_a_bundle_without_calls(tmp_path: Path, bundle: Path, capsys: Output) -> None:
    """It proves nothing, and says so."""
    path = tmp_path / "none.ingot"
    with opened(bundle) as source:
        calls = frozenset({(head.SELFTEST, 0), (head.SELFTEST, 1)})
        rewrite_bundle(source, Changes(dropped=calls), path)
    assert device(["selftest", str(path)]) == 1
    assert "--selftest N" in capsys.readouterr().err
    assert main(["compile", str(path), "--to", "graph", "--selftest", "1"]) == 1


@pytest.mark.parametrize(
    ("got", "expected", "dtype", "near"),
    [
        ([1.0, np.nan, np.inf], [1.0005, np.nan, np.inf], "f32", True),
        ([1.0, np.nan], [1.0, 1.0], "f32", False),
        ([np.inf], [-np.inf], "f32", False),
        ([1.0, 1e-9], [1.0, 0.0], "f32", True),
        ([1.0, 0.1], [1.0, 0.0], "f32", False),
        ([0x3F80], [0x3F81], "bf16", False),
    ],
)
def test_what_is_near(got: list[float], expected: list[float], dtype: str, *, near: bool) -> None:
    """Errors count by the largest expected magnitude; NaN is near NaN, infinity near itself."""
    kind = np.dtype(np.uint16 if dtype == "bf16" else np.float32)
    bits = np.dtype(np.uint16 if dtype == "bf16" else np.uint32)
    arrays = [np.array(values, kind).view(bits) for values in (got, expected)]
    assert (compare(arrays[0].view(kind), arrays[1], dtype, (1e-3, 0.0)) >= 0) == near

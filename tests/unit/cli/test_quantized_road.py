"""The road of a quantized model: quantize, check, release with a selftest and a signature, thin,
install, selftest, rollback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.codegen_harness import RUNNABLE
from tests.tiny_models import TINY, Network
from tests.unit.runtime.test_signatures import Owner

from ingot_build_rules.tools.cli.main import main
from ingot_compiler.quantizer.weight_layers import load_model
from ingot_runtime.command import main as device

Feed = dict[str, np.ndarray[Any, np.dtype[Any]]]
ARCHITECTURES = Path(__file__).parents[2] / "models"
TARGETS = [str(target) for target in RUNNABLE]


def unet() -> ModelProto:
    """Down, and up again, with what was there before joined."""
    net = Network()
    a = net.node("Relu", net.convolution("x", (3, 8)))
    b = net.node("Relu", net.convolution(a, (8, 16), strides=[2, 2]))
    c = net.node("Relu", net.convolution(b, (16, 16), strides=[2, 2]))
    up = net.node("Concat", net.node("DepthToSpace", c, blocksize=2), b, axis=1)
    up = net.node("Relu", net.convolution(up, (20, 16)))
    up = net.node("Concat", net.node("DepthToSpace", up, blocksize=2), a, axis=1)
    result = net.convolution(up, (12, 2))
    return net.model([1, 3, 32, 32], result, [1, 2, 32, 32])


def mobilenet() -> ModelProto:
    """Inverted residuals: widened, each channel alone, narrowed, added; limits of 6."""
    net = Network()
    x = net.convolution("x", (3, 8), strides=[2, 2])
    for outside in (8, 8, 12):
        y = net.node("HardSwish", net.convolution(x, (8, 32), (1, 1)))
        y = net.node("HardSwish", net.convolution(y, (32, 32), group=32))
        y = net.convolution(y, (32, outside), (1, 1))
        x = net.node("Add", x, y) if outside == 8 else y
    return net.model([1, 3, 32, 32], net.classes(x, 12, 10), [1, 10])


def image() -> Feed:
    """One picture."""
    random = np.random.default_rng(2)
    return {"x": random.normal(size=(1, 3, 32, 32)).astype(np.float32)}


def exported(name: str) -> tuple[ModelProto, Feed]:
    """An architecture of ``tests/models`` and its call."""
    with np.load(ARCHITECTURES / name / "cases.npz") as stored:
        begins = "static/in/"
        feed = {key.removeprefix(begins): stored[key] for key in stored if key.startswith(begins)}
    return load_model(str(ARCHITECTURES / name / "static.onnx")), feed


NETWORKS: dict[str, Callable[[], tuple[ModelProto, Feed]]] = {
    "resnet": lambda: (TINY["resnet8"](), image()),
    "unet": lambda: (unet(), image()),
    "mobilenet": lambda: (mobilenet(), image()),
    "encoder": lambda: exported("bert"),
    "decoder": lambda: exported("gpt2"),
}
RELEASE = """
[model.m]
source = "q.onnx"
[bundle.b]
model = "m"
targets = [{targets}]
[export.shipped]
bundle = "b"
kind = "release"
output = "dist/shipped.ingot"
selftest = 2
sign = ["owner.pem"]
"""


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param("encoder", "--dynamic", marks=pytest.mark.broad),
        *(
            pytest.param(name, way, marks=pytest.mark.slow)
            for name, way in (
                *((name, "--calibrate alone") for name in NETWORKS),
                ("decoder", "--dynamic"),
            )
        ),
    ],
)
def test_the_road(
    name: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Every step passes on every level of this machine, and the device ends with what it had
    before."""
    monkeypatch.chdir(tmp_path)
    model, feed = NETWORKS[name]()
    Path("m.onnx").write_bytes(model.SerializeToString())
    np.savez("x.npz", **feed)  # type: ignore[arg-type]  # of its option
    more = ["--dynamic"] if way == "--dynamic" else []
    assert main(["quantize", "m.onnx", "--calibrate", "x.npz", "-o", "q.onnx", *more]) == 0
    targets = [word for target in TARGETS for word in ("--target", target)]
    assert main(["compile", "q.onnx", "-o", "q.ingot", "--check", *targets]) == 0
    assert main(["compile", "q.onnx", "-o", "q.ingot", "--check", "x.npz", *targets]) == 0
    owner = Owner(tmp_path, "owner", 1)
    Path("ingot.toml").write_text(
        RELEASE.format(targets=", ".join(f'"{each}"' for each in TARGETS))
    )
    assert main(["build"]) == 0
    thin = ["thin", "dist/shipped.ingot", "--target", TARGETS[0], "-o", "thin.ingot"]
    assert main(thin) == 0
    Path("device").mkdir()
    keys = ["--require-key", str(owner.public)]
    for bundle in ("thin.ingot", "dist/shipped.ingot"):
        assert device(["install", bundle, "--to", "device", *keys]) == 0
    assert device(["selftest", "device/current.ingot", *keys]) == 0
    assert device(["rollback", "device"]) == 0
    assert device(["selftest", "device/current.ingot", *keys]) == 0
    assert Path("device/current.ingot").read_bytes() == Path("thin.ingot").read_bytes()
    capsys.readouterr()

"""Programs without Python for aarch64 and riscv64: every architecture of ``tests/models`` and
quantized ones, by the loader in C, under qemu-user."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness import quantized_models
from tests.harness.end_to_end_harness import reference
from tests.harness.lowering_harness import assert_close
from tests.harness.qemu_harness import Foreign
from tests.harness.quantized_models import Scheme
from tests.tidy.source import ROOT
from tests.unit.end_to_end.test_models import DYNAMIC, RELATIVE_ERROR_MAX, STATIC, Cases
from tests.unit.ir.test_quantized_models import assert_within_a_step, sample
from tests.unit.runtime.test_c_native import DYNAMIC_SIZE_BYTES_MAX, SIZE_BYTES_MAX, loader_of

import ingot
from ingot_build_rules.tools.cli.main import main

pytestmark = pytest.mark.qemu

TARGETS = ("aarch64", "riscv64")
# Features beyond the level: a target, a processor of qemu that has them, one that has not.
FEATURES = {
    "aarch64+asimddp": ("max", "cortex-a53"),
    "aarch64+asimddp+asimdhp+bf16+i8mm": ("max", "cortex-a53"),
    "riscv64+v": ("rv64,v=true,vlen=256", "rv64"),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", STATIC)
def test_an_architecture_gives_pytorchs_outputs(model: str, target: str, tmp_path: Path) -> None:
    """At all sizes of the dynamic export where there is one; 1 and 2 threads give the same bits."""
    cases = Cases(model, dynamic=model in DYNAMIC)
    ingot.compile(cases.path, targets=[target]).save(tmp_path / "m.ingot")
    program = Foreign.export(tmp_path / "m.ingot", target)
    for feed, expected in zip(cases.feeds, cases.expected, strict=True):
        one, two = (program.run(feed, "--threads", count) for count in ("1", "2"))
        assert sorted(one) == sorted(expected)
        for name, array in expected.items():
            assert_close(array, one[name], RELATIVE_ERROR_MAX)
            assert one[name].tobytes() == two[name].tobytes()


@pytest.mark.parametrize("target", [*TARGETS, *FEATURES])
def test_products_of_bytes(target: str, tmp_path: Path) -> None:
    """Each way to multiply bytes gives the integers of ONNX's reference, up to a step."""
    architecture, cpu = target.split("+", maxsplit=1)[0], FEATURES.get(target, ("", ""))[0]
    makers = (quantized_models.perceptron, quantized_models.network, quantized_models.attention)
    shapes = ((40, 33), (3, 3, 12, 12), (4, 11, 16))
    for make, shape in zip(makers, shapes, strict=True):
        model, feed = make(Scheme()), {"x": sample(*shape)}
        ingot.compile(model, targets=[target]).save(tmp_path / "m.ingot")
        found = Foreign.export(tmp_path / "m.ingot", architecture, cpu).run(feed)
        for name, expected in reference(model, feed).items():
            assert_within_a_step(np.asarray(found[name]), expected)


@pytest.mark.parametrize("target", FEATURES)
def test_a_processor_without_the_features_is_refused(target: str, tmp_path: Path) -> None:
    """The auxiliary vector is read: what lacks is named, and a bundle with both levels runs."""
    architecture, *features = target.split("+")
    (with_all, without) = FEATURES[target]
    model = quantized_models.perceptron(Scheme())
    ingot.compile(model, targets=[target]).save(tmp_path / "one.ingot")
    refused = Foreign.export(tmp_path / "one.ingot", architecture, without)
    done = refused.start(["--shape", "x=2x33"])
    assert done.returncode == 5
    assert f"{target} lacks {', '.join(features)}\n" in done.stderr
    ingot.compile(model, targets=[architecture, target]).save(tmp_path / "both.ingot")
    for cpu, chosen in ((with_all, target), (without, architecture)):
        both = Foreign.export(tmp_path / "both.ingot", architecture, cpu)
        assert f"target {chosen}, " in both.start(["--describe"]).stdout


@pytest.mark.parametrize("target", TARGETS)
def test_a_program_is_small_and_proves_itself(target: str, tmp_path: Path) -> None:
    """The loader has at most 100 kB; the calls in the bundle give what the interpreter said where it
    was compiled."""
    model = ROOT / "tests" / "models" / "lstm" / "static.onnx"
    line = ["compile", str(model), "-o", str(tmp_path / "m.ingot"), "--selftest", "2", "-q"]
    assert main([*line, "--target", target]) == 0
    program = Foreign.export(tmp_path / "m.ingot", target)
    assert len(loader_of(tmp_path / "m")) <= SIZE_BYTES_MAX
    done = program.start(["--selftest"])
    assert (done.returncode, f"passed, 2 of {target}, error " in done.stdout) == (0, True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("place", ["*", "half"])
def test_a_dynamic_program_opens_devices(target: str, place: str, tmp_path: Path) -> None:
    """The whole model on a device of kind cpu, or the second half of it: on one thread of it and on
    two the bits are those of the static program."""
    model, x = quantized_models.network(Scheme()), {"x": sample(3, 3, 12, 12)}
    ingot.compile(model, targets=[target]).save(tmp_path / "s.ingot")
    expected = Foreign.export(tmp_path / "s.ingot", target).run(x)
    names = [node.name or node.output[0] for node in model.graph.node]
    chosen = names[len(names) // 2 :] if place == "half" else ["*"]
    rules, devices = dict.fromkeys(chosen, "acc"), {"acc": "cpu:1"}
    bundle = ingot.compile(model, targets=[target], devices=devices, place=rules)
    bundle.save(tmp_path / "m.ingot")
    program = Foreign.export(tmp_path / "m.ingot", target, is_dynamic=True)
    assert len(loader_of(tmp_path / "m")) <= DYNAMIC_SIZE_BYTES_MAX
    assert "device acc: cpu:1" in program.start(["--describe"]).stdout
    for device in ("cpu:1", "cpu:2"):
        found = program.run(x, "--device", f"acc={device}")
        assert {name: array.tobytes() for name, array in found.items()} == {
            name: array.tobytes() for name, array in expected.items()
        }


@pytest.mark.parametrize("target", TARGETS)
def test_a_damaged_program_is_refused(target: str, tmp_path: Path) -> None:
    """By a digest, with exit code 4, as on the machine that compiled it."""
    model = quantized_models.perceptron(Scheme())
    ingot.compile(model, targets=[target]).save(tmp_path / "m.ingot")
    program = Foreign.export(tmp_path / "m.ingot", target)
    data = bytearray((tmp_path / "m").read_bytes())
    data[-100] ^= 1
    (tmp_path / "m").write_bytes(data)
    done = program.start(["--shape", "x=3x33"])
    assert (done.returncode, "are damaged in MiB" in done.stderr) == (4, True)

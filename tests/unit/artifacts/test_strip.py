"""``--strip``: a bundle without the names of nodes and the loops of kernels. What tells of them says
numbers, and results are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.reproduce.recorded_options import recorded_options

Output = pytest.CaptureFixture[str]
MODEL = make_model(
    [
        node("MatMul", "x w", "a", name="secret_product"),
        node("Reshape", "a shape", "y", name="secret_view"),
    ],
    [tensor("x", ["n", 6]), tensor("shape", [2], 7)],
    [tensor("y", None)],
    {"w": normal(0, 6, 10)},
)
FEED = {"x": normal(1, 4, 6), "shape": np.array([10, 4])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model twice: whole, and stripped by the command."""
    made = tmp_path_factory.mktemp("strip")
    (made / "m.onnx").write_bytes(MODEL.SerializeToString())
    ingot.compile(MODEL).save(made / "whole.ingot")
    assert main(["compile", f"{made}/m.onnx", "-o", f"{made}/stripped.ingot", "--strip", "-q"]) == 0
    return made


def test_names_and_loops_are_gone_and_results_are_the_same(folder: Path) -> None:
    """No byte of the names is left; code and weights are those of the whole bundle."""
    whole, stripped = (folder / f"{name}.ingot" for name in ("whole", "stripped"))
    assert b"secret" in whole.read_bytes()
    assert b"secret" not in stripped.read_bytes()
    assert describe_bundle(whole)["debug"]["programs"]
    assert not describe_bundle(stripped)["debug"]["programs"]
    assert describe_bundle(stripped)["kernels"] == describe_bundle(whole)["kernels"]
    first, second = (ingot_runtime.load(path).run(FEED)["y"] for path in (whole, stripped))
    assert first.tobytes() == second.tobytes()


def test_python_and_the_command_give_the_same(folder: Path) -> None:
    """``strip=True`` is ``--strip``."""
    assert ingot.compile(MODEL, strip=True).to_bytes() == (folder / "stripped.ingot").read_bytes()


def test_inspect_says_so(folder: Path, capsys: Output) -> None:
    """Launches have their nodes' numbers; only a stripped bundle says that it is one."""
    assert main(["inspect", f"{folder}/stripped.ingot"]) == 0
    told = capsys.readouterr().out
    assert "stripped: nodes have numbers instead of names" in told
    assert "#0 (MatMul)" in told
    assert main(["inspect", f"{folder}/whole.ingot"]) == 0
    assert "stripped" not in capsys.readouterr().out


def test_assembly_is_refused(folder: Path, capsys: Output) -> None:
    """The error says why there is none."""
    bundle = folder / "stripped.ingot"
    ((kernel, *_),) = describe_bundle(bundle)["kernels"].values()
    assert main(["inspect", str(bundle), "--asm", kernel]) == 1
    told = capsys.readouterr().err
    assert "compiled with --strip" in told
    assert "without it: `ingot compile MODEL`" in told


def test_errors_of_a_call_have_numbers(folder: Path) -> None:
    """What a call says of a node names its number."""
    wrong = {**FEED, "shape": np.array([7, 7])}
    with pytest.raises(ingot_runtime.InputError, match="secret_view"):
        ingot_runtime.load(folder / "whole.ingot").run(wrong)
    with pytest.raises(ingot_runtime.InputError, match=r"'#1' \(Reshape\)"):
        ingot_runtime.load(folder / "stripped.ingot").run(wrong)


@pytest.mark.broad
def test_report_trace_and_bench_have_numbers(folder: Path, capsys: Output) -> None:
    """What shows launches of a stripped bundle works, with numbers."""
    bundle, inputs = f"{folder}/stripped.ingot", f"{folder}/x.npz"
    np.savez(inputs, allow_pickle=False, **FEED)
    given = [bundle, "--inputs", inputs]
    assert main(["report", *given, "-o", f"{folder}/r.html"]) == 0
    assert main(["run", *given, "--trace", f"{folder}/t.json"]) == 0
    assert main(["bench", *given, "--seconds", "0.01", "--anyway"]) == 0
    shown = [(folder / name).read_text() for name in ("r.html", "t.json")]
    assert all("#0" in text and "secret" not in text for text in [*shown, capsys.readouterr().out])


def test_a_project_strips() -> None:
    """``strip`` of a bundle; what a bundle records reads back."""
    project = ingot.Project()
    project.model("m", "m.onnx")
    project.bundle("a", model="m", targets=["x86-64-v3"], strip=True)
    project.bundle("b", model="m", targets=["x86-64-v3"])
    asked = compile_requests(project.freeze(), ["a", "b"])
    assert [request.options.choices.strip for request in asked] == [True, False]
    assert recorded_options(asked[0].options.plain()) == asked[0].options

"""``ingot tune`` and ``--tuning``: what is measured, what a file gives, files that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.lowering_harness import normal
from tests.json_schemas import checked

import ingot
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.options.tuning_file import read_tuning, tuning_text
from ingot_build_rules.making.options.tuning_option import TuningOption
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.making.project.parse import parse_project
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.reproduce.recorded_options import recorded_options
from ingot_build_rules.tools.view.tune_methods import TunedLayer
from ingot_compiler.ir.errors import UserError
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.loader import cpu
from ingot_runtime.loader.cpu import processor_model

Output = pytest.CaptureFixture[str]
TARGET = "x86-64-v3"
MODEL = make_model(
    [
        node("Relu", "x", "a"),
        node("Conv", "a w", "b", name="first", pads=[1, 1, 1, 1]),
        node("Conv", "b v", "y", name='se"cond', pads=[1, 1, 1, 1]),
        node("MaxPool", "y", "z", name="pool", kernel_shape=[2, 2]),
    ],
    [tensor("x", [1, 64, 8, 8])],
    [tensor("z", None)],
    {"w": normal(0, 64, 64, 3, 3), "v": normal(1, 16, 64, 3, 3)},
)
FEED = {"x": normal(1, 1, 64, 8, 8)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as a file."""
    made = tmp_path_factory.mktemp("tune")
    (made / "m.onnx").write_bytes(MODEL.SerializeToString())
    return made


def kinds(bundle: Path) -> dict[str, str]:
    """The kind of the kernel of each convolution."""
    (launches,) = describe_bundle(bundle)["debug"]["launches"].values()
    return {
        name: launch["kind"] for launch in launches for name, op in launch["nodes"] if op == "Conv"
    }


def compile_tuned(folder: Path, text: str, *words: str) -> int:
    """Compile with a tuning file of this text."""
    (folder / "m.tune").write_text(text, encoding="utf-8")
    line = ["compile", str(folder / "m.onnx"), "-o", str(folder / "m.ingot"), "-q"]
    return main([*line, "--target", TARGET, "--tuning", str(folder / "m.tune"), *words])


def file_text(methods: Sequence[tuple[str, str]], target: str = TARGET, processor: str = "") -> str:
    """A tuning file."""
    return tuning_text(target, processor, [(*pair, "measured") for pair in methods])


@pytest.mark.broad
def test_what_is_measured_is_used(folder: Path, capsys: Output) -> None:
    """Each layer with a choice has a time by each of its methods; the file names one of them, and a
    bundle that is compiled with it runs by them, the same in all ways to run."""
    words = ["tune", str(folder / "m.onnx"), "-o", str(folder / "own.tune"), "--rounds", "2"]
    assert main([*words, "--target", TARGET, "--json"]) == 0
    report = checked("tune", capsys.readouterr().out)
    layers = {layer["node"]: layer for layer in report["layers"]}
    # Behind a ReLU wide tiles are not precise enough; behind a sum of products they are.
    small, wide = {"conv", "winograd_2x2"}, {"winograd_2x4", "winograd_3x3", "winograd_3x4"}
    assert set(layers["first"]["seconds"]) == small
    assert set(layers['se"cond']["seconds"]) == small | wide
    tuned = ingot.compile(MODEL, targets=TARGET, tuning=folder / "own.tune")
    tuned.save(folder / "own.ingot")
    assert kinds(folder / "own.ingot") == {name: each["method"] for name, each in layers.items()}
    for method, others in (("conv", "winograd_2x2"), ("winograd_2x2", "winograd_2x4")):
        text = file_text([("first", method), ("*", others)])
        assert compile_tuned(folder, text) == 0
        assert kinds(folder / "m.ingot") == {"first": method, 'se"cond': others}
        run_all_ways(folder / "m.ingot", [FEED])


@pytest.mark.broad
def test_a_layer_keeps_its_method_unless_another_is_clearly_faster(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """The file has a line for each, with what was measured beside it; by default it lies beside the
    model."""
    from ingot_build_rules.tools.view import tune_methods

    found = (TunedLayer("first", "conv", "winograd_2x2", {"conv": 2e-6, "winograd_2x2": 1e-6}),)

    def tune(*_: object) -> tuple[TunedLayer, ...]:
        return found

    monkeypatch.setattr(tune_methods, "tune_methods", tune)
    assert main(["tune", str(folder / "m.onnx"), "--target", TARGET]) == 0
    assert "1 layer with a choice of methods on x86-64-v3, 1 by another" in capsys.readouterr().out
    text = (folder / "m.tune").read_text(encoding="utf-8")
    assert '"first" = "winograd_2x2"  # winograd_2x2 1.0 us, conv 2.0 us\n' in text
    assert read_tuning("m.tune", str(folder)) == TuningOption(
        TARGET, (("first", "winograd_2x2"),), processor_model()
    )
    timed = tune_methods.TimedLaunch
    for seconds, method in ((0.98, "conv"), (0.9, "winograd_2x2")):
        layers = {"p": {"first": timed("winograd_2x2", seconds)}}
        layer = tune_methods.tuned_layer("first", timed("conv", 1.0), layers, {"winograd_2x2": "p"})
        assert layer.method == method


PRODUCTS = make_model(
    [
        node("MatMul", "x w", "a", name="first"),
        node("Gemm", "a v", "y", name="second"),
        node("MatMul", "y u", "z", name="small"),
    ],
    [tensor("x", [64, 768])],
    [tensor("z", None)],
    {"w": normal(0, 768, 768), "v": normal(1, 768, 768), "u": normal(2, 768, 8)},
)


V4, TILES = "x86-64-v4", "x86-64-v4+amx-bf16+amx-tile"


@pytest.mark.parametrize(
    ("target", "methods", "expected"),
    [
        (V4, [("first", "matmul"), ("second", "matmul_strassen")], ("matmul", "matmul_strassen")),
        (V4, [("*", "matmul")], ("matmul", "matmul")),
        (V4, [("first", "matmul"), ("*", "matmul_strassen")], ("matmul", "matmul_strassen")),
        (TILES, [("*", "matmul")], ("matmul", "matmul")),
        (TILES, [("*", "matmul_bf16x6")], ("matmul_bf16x6", "matmul_bf16x6")),
        (
            TILES,
            [("first", "matmul_strassen"), ("second", "matmul_bf16x6")],
            ("matmul_strassen", "matmul_bf16x6"),
        ),
    ],
)
def test_products_of_matrices_have_methods(
    tmp_path: Path, target: str, methods: Sequence[tuple[str, str]], expected: tuple[str, str]
) -> None:
    """A file names them as it does those of convolutions; what is for all layers is for those that
    can run by it."""
    (tmp_path / "m.tune").write_text(file_text(methods, target), encoding="utf-8")
    ingot.compile(PRODUCTS, targets=target, tuning=tmp_path / "m.tune").save(tmp_path / "b")
    (launches,) = describe_bundle(tmp_path / "b")["debug"]["launches"].values()
    found = {name: launch["kind"] for launch in launches for name, _ in launch["nodes"]}
    assert (found["first"], found["second"], found["small"]) == (*expected, "matmul")


@pytest.mark.parametrize(
    ("layer", "method"),
    [("small", "matmul_strassen"), ("first", "conv"), ("first", "matmul_bf16x6")],
)
def test_a_product_that_has_no_such_method(tmp_path: Path, layer: str, method: str) -> None:
    """It names the layer, and says which it has."""
    text = file_text([(layer, method)], "x86-64-v4")
    (tmp_path / "m.tune").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=f"method '{method}' is not for this layer") as refused:
        ingot.compile(PRODUCTS, targets="x86-64-v4", tuning=tmp_path / "m.tune")
    assert layer in str(refused.value)
    assert "expected one of matmul" in str(refused.value)


def test_records_have_it() -> None:
    """A bundle can be made again from its lock; without a file nothing is said."""
    tuning = TuningOption(TARGET, (("first", "conv"),), "AuthenticAMD 19 21")
    tuned = make_options([TARGET], tuning=tuning)
    assert recorded_options(tuned.plain()) == tuned
    assert "tuning" not in make_options([TARGET]).plain()


def test_projects_say_it(folder: Path) -> None:
    """Of one bundle, relative to the project's folder; in Python as in the file."""
    (folder / "p.tune").write_text(file_text([("first", "conv")]), encoding="utf-8")
    text = (
        f"[model.m]\nsource = 'm.onnx'\n"
        f"[bundle.a]\nmodel = 'm'\ntargets = ['{TARGET}']\ntuning = 'p.tune'\n"
    )
    path = str(folder / "ingot.toml")
    (asked,) = compile_requests(parse_project(text, path), ["a"], path)
    assert asked.options.tuning == TuningOption(TARGET, (("first", "conv"),))
    project = ingot.Project()
    project.model("m", "m.onnx")
    project.bundle("a", model="m", targets=[TARGET], tuning="p.tune")
    (of_python,) = compile_requests(project.freeze(), ["a"], path)
    assert of_python.options == asked.options


def test_a_project_builds_again_what_was_measured_anew(
    folder: Path, tmp_path: Path, capsys: Output
) -> None:
    """The file is an input: nothing to do without a change, and ``why`` names it with one."""
    (tmp_path / "m.onnx").write_bytes(MODEL.SerializeToString())
    (tmp_path / "m.tune").write_text(file_text([("first", "conv")]), encoding="utf-8")
    (tmp_path / "ingot.toml").write_text(
        f"[model.m]\nsource = 'm.onnx'\n"
        f"[bundle.m]\nmodel = 'm'\ntargets = ['{TARGET}']\ntuning = 'm.tune'\n"
    )
    build = ["build", "-C", str(tmp_path)]
    assert main(build) == 0
    capsys.readouterr()
    assert main(build) == 0
    assert "1 unchanged; 0 actions ran" in capsys.readouterr().out
    (tmp_path / "m.tune").write_text(file_text([("first", "winograd_2x2")]), encoding="utf-8")
    assert main(["why", "-C", str(tmp_path), "m"]) == 0
    assert "m.tune" in capsys.readouterr().out
    assert main(build) == 0
    assert kinds(tmp_path / "dist/m.ingot")["first"] == "winograd_2x2"


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("version = 1\n", (), "expected version 2, got 1"),
        ("no file", (), "a tuning file is not understood"),
        ("version = 2\nmethod = 3\n", (), "did you mean 'methods'?"),
        ("version = 2\ntarget = 3\n", (), "expected texts target and processor"),
        (file_text([("first", "winogrd_2x2")]), (), "did you mean 'winograd_2x2'?"),
        (file_text([("none", "conv")]), (), "a tuning file is stale\n  where: its layer none"),
        (file_text([("first", "winograd_2x4")]), (), "method 'winograd_2x4' is not for this layer"),
        (file_text([], "x86-64-v4"), (), "a tuning file of another target"),
        (file_text([]), ("--optimize", "size"), "size and measurements"),
        (file_text([]), ("--precision", "strict"), "a tuning file of another target"),
    ],
)
def test_what_does_not_fit(
    folder: Path, capsys: Output, text: str, words: tuple[str, ...], said: str
) -> None:
    """A file of another version or target, that is stale, or that nobody measured, is refused."""
    assert compile_tuned(folder, text, *words) == 1
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


ZEN2, INTEL = "AuthenticAMD 19 21", "GenuineIntel 6 9e"


@pytest.mark.parametrize(
    ("target", "processor", "said"),
    [
        ("x86-64-v3:znver3", ZEN2, ""),
        ("x86-64-v3:znver3", "", ""),
        ("x86-64-v3:znver3", INTEL, "is tuned for class zen2, the processor that measures, "),
        ("x86-64-v3:znver3", "GenuineIntel 6 0", "is of no class of x86-64-v3"),
        ("x86-64-v3", INTEL, "measured on a processor of class skylake; on others of x86-64-v3"),
        ("x86-64-v3", "GenuineIntel 6 0", ""),
        ("x86-64-v2", INTEL, ""),
    ],
)
def test_a_file_of_another_processor(
    folder: Path, capsys: Output, target: str, processor: str, said: str
) -> None:
    """For a class of processors, the file of another class is refused; for all of a level, the
    user is told that one was measured. Which machine compiles does not matter."""
    (folder / "m.tune").write_text(file_text([], target, processor), encoding="utf-8")
    line = ["compile", str(folder / "m.onnx"), "-o", str(folder / "m.ingot")]
    code = main([*line, "--target", target, "--tuning", str(folder / "m.tune")])
    told = capsys.readouterr().err
    assert code == (1 if "class" in said and "others" not in said else 0)
    assert said in told
    assert said or "measured" not in told


def test_only_processors_of_the_class_are_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """Before anything is compiled, with what can be measured here."""
    monkeypatch.setattr(cpu, "processor_model", lambda: INTEL)
    line = ["tune", str(folder / "m.onnx"), "-o", str(folder / "o.tune")]
    assert main([*line, "--target", "x86-64-v3:znver3"]) == 1
    told = capsys.readouterr().err
    assert "measured on a processor of another class" in told
    assert "`ingot tune MODEL --target x86-64-v3`" in told
    assert not (folder / "o.tune").exists()


def test_a_method_that_is_not_precise_enough_names_the_node(folder: Path, capsys: Output) -> None:
    """With ``--precision fast`` it is."""
    text = file_text([("first", "winograd_2x4")])
    assert compile_tuned(folder, text) == 1
    assert "where: node 'first' (Conv)" in capsys.readouterr().err
    assert compile_tuned(folder, text, "--precision", "fast") == 0
    assert kinds(folder / "m.ingot")["first"] == "winograd_2x4"


def test_no_file(tmp_path: Path) -> None:
    """It is refused by name."""
    with pytest.raises(UserError, match="no such tuning file"):
        ingot.compile(MODEL, targets=TARGET, tuning=tmp_path / "none.tune")
    with pytest.raises(IngotError, match="no such model file"):
        raise_of_tune(tmp_path)


def raise_of_tune(folder: Path) -> None:
    """Run the verb as Python does."""
    import argparse

    from ingot_build_rules.tools.cli import tune

    names = {"model": str(folder / "none.onnx"), "output": str(folder / "none.tune")}
    common = {"target": TARGET, "precision": "f32", "cache": None, "cache_shared": False}
    tune.run(argparse.Namespace(**names, **common))

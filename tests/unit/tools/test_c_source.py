"""A model as C99: every bit is that of machine code for the processor that its loops are cut for,
and any compiler takes it."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.c_source import CModel, compile_c, export
from tests.cortex_board import CORTEX_M4
from tests.harness.codegen_harness import Array
from tests.harness.ml_harness import classic_trees, ml_model, ml_node, rows
from tests.json_schemas import checked
from tests.unit.end_to_end.test_models import STATIC, Cases

import ingot
import ingot_runtime
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_build_rules.tools.cli.arguments.export import TAKES
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.backends.c.c_forms import C_FORMS, CForm
from ingot_compiler.backends.c.kernel_text import c_kernel
from ingot_compiler.ir.dims import symbol
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load
from ingot_compiler.lowering.loops.program import Buffer, For, LoopProgram, Store

DATA_DEPENDENT = ("detector",)  # how many boxes it finds
QUICK = (("lstm", "c"), ("lstm", "c-wide"), ("distilbert", "c-128"), ("gpt2", "c-256"))
ROOT = Path(__file__).parents[3]
F32, I64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def bundle_run(model: Path, target: str, given: dict[str, Array], folder: Path) -> dict[str, Array]:
    """What the loader computes by machine code for a target."""
    ingot.compile(model, targets=[target]).save(folder / "m.ingot")
    with ingot_runtime.load(folder / "m.ingot") as session:
        return session.run(given)


@pytest.mark.broad
@pytest.mark.parametrize(
    ("model", "form"),
    [
        pytest.param(
            model, form.name, marks=() if (model, form.name) in QUICK else pytest.mark.slow
        )
        for model in STATIC
        for form in C_FORMS
        if model not in DATA_DEPENDENT
    ],
)
def test_architectures(model: str, form: str, tmp_path: Path) -> None:
    """Each small architecture gives the same bits as machine code of the same loops."""
    cases = Cases(model, dynamic=False)
    made = CModel(export(cases.path, tmp_path / "c", "--target", form, "--name", model))
    target = next(each.loops_for for each in C_FORMS if each.name == form)
    for given in cases.feeds:
        expected = bundle_run(cases.path, target, given, tmp_path)
        result = made.run(given)
        assert list(result) == list(expected)
        for name, array in expected.items():
            assert array.tobytes() == result[name].tobytes()


def test_forms() -> None:
    """The command offers each form."""
    (option,) = [option for option in TAKES["export"].options if option.names == "--target"]
    assert option.choices == tuple(form.name for form in C_FORMS)


def save(
    folder: Path,
    nodes: list[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    weights: Mapping[str, Array] = MappingProxyType({}),
) -> Path:
    """A model of some nodes, whose last output is the model's."""
    shapes = {name: helper.make_tensor_value_info(name, F32, s) for name, s in inputs.items()}
    made = helper.make_tensor_value_info(nodes[-1].output[0], F32, None)
    stored = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", list(shapes.values()), [made], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.sweep(60)
@pytest.mark.parametrize("form", C_FORMS, ids=lambda form: form.name)
def test_bf16(form: CForm, tmp_path: Path) -> None:
    """Numbers of bf16 are widened by operators of C, in vectors of eight too."""
    kind = onnx.TensorProto.BFLOAT16
    nodes = [helper.make_node("Cast", ["x"], ["halves"], to=kind)]
    nodes += [helper.make_node("Add", ["halves", "halves"], ["sum"])]
    nodes += [helper.make_node("Cast", ["sum"], ["y"], to=F32)]
    path = save(tmp_path, nodes, {"x": [2, 19]})
    made = CModel(export(path, tmp_path / "c", "--target", form.name, "--name", "m"))
    x = np.random.default_rng(1).standard_normal((2, 19)).astype(np.float32)
    expected = bundle_run(path, form.loops_for, {"x": x}, tmp_path)
    assert made.run({"x": x})["y"].tobytes() == expected["y"].tobytes()


@pytest.mark.broad
@pytest.mark.parametrize("form", C_FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_narrow_weights(form: CForm, dtype: type[np.generic], tmp_path: Path) -> None:
    """Of f32 weights, those of bf16 are stored in 16 bits; f16 stays f32, for C has no instruction
    that widens it."""
    matrix = np.random.default_rng(1).standard_normal((1024, 512)).astype(dtype).astype(np.float32)
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    path = save(tmp_path, [product], {"x": [1, 1024]}, {"w": matrix})
    header = export(path, tmp_path / "c", "--target", form.name, "--name", "m")
    facts = json.loads(header.with_suffix(".json").read_text())
    assert facts["weights_bytes"] == matrix.size * (4 if dtype is np.float16 else 2)


@pytest.mark.broad
@pytest.mark.parametrize("form", C_FORMS, ids=lambda form: form.name)
def test_trees(form: CForm, tmp_path: Path) -> None:
    """Every branch goes the way that it goes by machine code."""
    x = rows()
    attributes = classic_trees(5, 5, "target", 1, 3)
    tree = ml_node("TreeEnsembleRegressor", "x", "y", n_targets=1, **attributes)
    (tmp_path / "m.onnx").write_bytes(ml_model([tree], {"x": x}, "y").SerializeToString())
    made = CModel(export(tmp_path / "m.onnx", tmp_path / "c", "--target", form.name, "--name", "m"))
    expected = bundle_run(tmp_path / "m.onnx", form.loops_for, {"x": x}, tmp_path)
    assert made.run({"x": x})["y"].tobytes() == expected["y"].tobytes()


@pytest.mark.broad
@pytest.mark.parametrize("form", C_FORMS, ids=lambda form: form.name)
def test_numbers_of_64_bits_are_no_indices(form: CForm) -> None:
    """Where a kernel computes with numbers of 64 bits, nothing that it computes has the width of an
    address; elsewhere indices have."""
    j, buffers = symbol("j"), (Buffer("f32", written=False), Buffer("f32", written=True))
    halved = Apply("mul", (Load(0, j), Constant(0.5, "f32")), "f32")
    rounded = Apply("cast", (Apply("cast", (halved,), "i64"),), "f32")
    for value, has_indices in ((halved, True), (rounded, False)):
        body = (For("j", 64, "vector", (Store(1, j, value),)),)
        text = c_kernel(LoopProgram(buffers, (), "i", 1, 1, body), form).text
        assert ("intptr_t" in text) == has_indices


def test_memory_is_that_of_the_plan(tmp_path: Path) -> None:
    """What is printed before anything is flashed is what the plan has, and what the file takes."""
    path = Cases("lstm", dynamic=False).path
    made = CModel(export(path, tmp_path / "c", "--name", "m"))
    plan = compile_model(path, make_options(["x86-64-v2"])).target_builds[0].plan
    assert made.facts["workspace_bytes"] == plan.pools[0].size_bytes
    header = (tmp_path / "c" / "m.h").read_text()
    assert f"#define m_RAM_BYTES {made.facts['ram_bytes']}\n" in header
    words = made.facts["ram_bytes"] // 8
    assert f"workspace[{words}];" in (tmp_path / "c" / "m.c").read_text()


def test_kernels_share_no_frame(tmp_path: Path) -> None:
    """Compilers keep each kernel a function of its own: the stack that is told holds one of them."""
    nodes = [helper.make_node("Sin", ["x"], ["y"])]
    nodes += [helper.make_node("CumSum", ["y", "axis"], ["z"])]
    path = save(tmp_path, nodes, {"x": [2, 5]}, {"axis": np.array(1)})
    export(path, tmp_path / "c", "--target", "c-small", "--name", "m")
    kernels = re.findall(r" int (k_\w+)\(", (tmp_path / "c" / "m.c").read_text())
    assert len(kernels) == 2
    compile_c(tmp_path / "c", *CORTEX_M4, "-O2", "-S", "m.c", "-o", "m.s")
    assembly = (tmp_path / "c" / "m.s").read_text()
    assert all(f"\n{kernel}:" in assembly for kernel in kernels)


def test_same_bytes(tmp_path: Path) -> None:
    """Two exports write the same files."""
    path = save(tmp_path, [helper.make_node("Erf", ["x"], ["y"])], {"x": [2, 5]})
    for name in ("a", "b"):
        export(path, tmp_path / name)
    files = [{path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in "ab"]
    assert files[0] == files[1]
    assert sorted(files[0]) == ["m.c", "m.h", "m.json", "m_support.h"]


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--json`` prints what its page says, of both kinds."""
    path = save(tmp_path, [helper.make_node("Exp", ["x"], ["y"])], {"x": [2, 5]})
    for kind, files in (("c-source", 4), ("wasm", 3)):
        assert main(["export", str(path), f"--{kind}", "-o", str(tmp_path), "--json"]) == 0
        report = checked("export", capsys.readouterr().out)
        assert len(report["files"]) == files
        assert (report["kernel_count"], report["weights_bytes"]) == (1, 0)


@pytest.mark.broad
def test_weights_apart(tmp_path: Path) -> None:
    """The program says where weights lie."""
    path = Cases("lstm", dynamic=False).path
    made = CModel(export(path, tmp_path / "c", "--weights-apart", "--name", "m"))
    given = Cases("lstm", dynamic=False).feeds[0]
    content = np.fromfile(tmp_path / "c" / "m.weights", np.uint64)
    ctypes.c_void_p.in_dll(made.library, "m_weights").value = content.ctypes.data
    expected = bundle_run(path, "x86-64-v2", given, tmp_path)
    assert made.run(given).keys() == expected.keys()
    assert all(made.run(given)[name].tobytes() == expected[name].tobytes() for name in expected)


@pytest.mark.broad
@pytest.mark.parametrize("model", ["lstm", pytest.param("bert", marks=pytest.mark.slow)])
def test_tensors_in_workspace(model: str, tmp_path: Path) -> None:
    """Inputs and outputs share memory with what a call computes; every call gives the same bits."""
    cases = Cases(model, dynamic=False)
    inside = ("--tensors-in", "workspace")
    made = CModel(export(cases.path, tmp_path / "c", *inside, "--target", "c-small", "--name", "m"))
    for given in [*cases.feeds, *cases.feeds]:
        expected = bundle_run(cases.path, "x86-64-v2:scalar", given, tmp_path)
        result = made.run_inside(given)
        assert {n: a.tobytes() for n, a in result.items()} == {
            n: a.tobytes() for n, a in expected.items()
        }
    apart = CModel(export(cases.path, tmp_path / "d", "--target", "c-small", "--name", "m"))
    sizes = [made.facts["ram_bytes"], apart.facts["ram_bytes"]]
    assert sizes[0] >= sizes[1]


def test_unused_input_in_workspace(tmp_path: Path) -> None:
    """It has a place where nothing is overwritten that is needed."""
    nodes = [helper.make_node("Neg", ["b"], ["y"])]
    path = save(tmp_path, nodes, {"a": [3000], "b": [7]})
    made = CModel(export(path, tmp_path / "c", "--tensors-in", "workspace", "--name", "m"))
    given = {"a": np.ones(3000, np.float32), "b": np.arange(7, dtype=np.float32)}
    assert made.run_inside(given)["y"].tolist() == (-given["b"]).tolist()
    assert made.facts["ram_bytes"] >= 4 * 3007


def test_other_pools_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C source has one pool."""
    path = save(tmp_path, [helper.make_node("Neg", ["x"], ["y"])], {"x": [3]})
    said = refused(capsys, path, "-o", tmp_path, "--tensors-in", "fast")
    assert "no pool 'fast'" in said
    assert "C source has workspace alone" in said


HOSTILE = ('x"*/ #error', "int", "1 ??/", "größe }", "")


def test_hostile_names(tmp_path: Path) -> None:
    """Names become identifiers, and nothing of them is code; the header is C++ as well."""
    nodes = [helper.make_node("Sum", list(HOSTILE[:4]), ["class"], name='*/ #error "')]
    path = save(tmp_path, nodes, {name: [3] for name in HOSTILE[:4]})
    made = CModel(export(path, tmp_path / "c", "--name", "register"))
    assert made.name == "register_"
    given = {name: np.full(3, number, np.float32) for number, name in enumerate(HOSTILE[:4])}
    assert made.run(given)["class"].tolist() == [6.0] * 3
    (tmp_path / "c" / "main.cpp").write_text('#include "register_.h"\n')
    flags = ("-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-nostdinc++", "-c")
    line = ("-target", "x86_64-freestanding-none", *flags, "main.cpp", "-o", "main.o")
    assert compile_c(tmp_path / "c", *line) == ""


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the command says when it refuses."""
    assert main(["export", *map(str, arguments), "--c-source"]) in (1, 3)
    return capsys.readouterr().err


def test_names_that_clash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two names that become one are refused, both by name."""
    path = save(
        tmp_path, [helper.make_node("Add", ["a.b", "a b"], ["y"])], {"a.b": [3], "a b": [3]}
    )
    said = refused(capsys, path, "-o", tmp_path)
    assert "two names become one" in said
    assert "input 'a.b', input 'a b'" in said


def test_open_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An open size is refused by name, and given by ``--shape``; a value that the model checks is
    checked in C, too."""
    path = save(tmp_path, [helper.make_node("Tanh", ["x"], ["y"])], {"x": ["batch", 3]})
    said = refused(capsys, path, "-o", tmp_path)
    assert "expected numbers, got [batch, 3]" in said
    assert "--shape x=4x3" in said
    made = CModel(export(path, tmp_path / "c", "--shape", "x=2x3"))
    x = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(made.run({"x": x})["y"], np.tanh(x), rtol=1e-6)


def test_a_requirement_of_values(tmp_path: Path) -> None:
    """An index outside of what it counts is a code, whose text names the node."""
    x = helper.make_tensor_value_info("x", F32, [3])
    at = helper.make_tensor_value_info("at", I64, [2])
    y = helper.make_tensor_value_info("y", F32, [2])
    nodes = [helper.make_node("Gather", ["x", "at"], ["y"], name="pick")]
    graph = helper.make_graph(nodes, "g", [x, at], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    made = CModel(export(tmp_path / "m.onnx", tmp_path / "c"))
    values = {"x": np.arange(3, dtype=np.float32)}
    assert made.run({**values, "at": np.array([2, -3])})["y"].tolist() == [2.0, 0.0]
    code = made.call({**values, "at": np.array([0, 3])}, {"y": np.zeros(2, np.float32)})
    assert code > 0
    assert "pick" in made.message(code)


def test_sizes_of_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What only the data decide is refused."""
    x, y = (
        helper.make_tensor_value_info(name, F32, shape) for name, shape in (("x", [3]), ("y", None))
    )
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("Cast", ["n"], ["y"], to=F32),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert "depend on data" in refused(capsys, tmp_path / "m.onnx", "-o", tmp_path)


def test_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program that declares devices is refused by the name of one."""
    text = (ROOT / "examples" / "program.ingot-text").read_text(encoding="utf-8")
    (tmp_path / "p.ingot-text").write_text(text)
    assert "runs on one processor" in refused(capsys, tmp_path / "p.ingot-text", "-o", tmp_path)


ROUNDING = """\
#include "m_support.h"
#define EACH(name) \\
  void name##_f(float *x, int n) { for (int i = 0; i < n; i++) x[i] = name##_f32(x[i]); } \\
  void name##_d(double *x, int n) { for (int i = 0; i < n; i++) x[i] = name##_f64(x[i]); }
EACH(floor) EACH(ceil) EACH(trunc) EACH(roundeven) EACH(sqrt)
"""


@pytest.mark.filterwarnings("ignore:invalid value")
def test_own_roundings_and_roots(tmp_path: Path) -> None:
    """Where the processor has no instruction, ours give its bits."""
    path = save(tmp_path, [helper.make_node("Floor", ["x"], ["y"])], {"x": [3]})
    export(path, tmp_path / "c")
    (tmp_path / "c" / "rounding.c").write_text(ROUNDING)
    flags = ("-target", "x86_64-linux-gnu", "-mcpu=x86_64", "-U__SSE2__", "-O1", "-fPIC", "-shared")
    line = (*flags, "-nostdlib", "-fno-sanitize=all", "rounding.c", "-o", "rounding.so")
    assert compile_c(tmp_path / "c", *line) == ""
    library = ctypes.CDLL(str(tmp_path / "c" / "rounding.so"))
    functions = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "roundeven": np.rint}
    random = np.random.default_rng(0)
    for letter, dtype, bits in (("f", np.float32, np.uint32), ("d", np.float64, np.uint64)):
        any_bits = random.integers(0, np.iinfo(bits).max, 20000, bits, endpoint=True)
        edges = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, np.inf, -np.inf, 1e-45, -0.4, 4503599627370497.5]
        near = random.standard_normal(20000) * 10
        x = np.concatenate([any_bits.view(dtype), np.array([*edges, *near], dtype)])
        x = x[~np.isnan(x)]
        for name, function in {**functions, "sqrt": np.sqrt}.items():
            result = x.copy()
            library[f"{name}_{letter}"](ctypes.c_void_p(result.ctypes.data), len(x))
            expected = function(x)
            same = (result.view(bits) == expected.view(bits)) | np.isnan(expected)
            assert same.all(), (name, dtype, x[~same][:4], result[~same][:4])
            assert np.isnan(result[np.isnan(expected)]).all()

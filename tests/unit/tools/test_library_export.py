"""``ingot export --library``: the bits of the loader, a header that C and C++ take, memory that its
user gives or the library has, refusals by name."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.c_library import SharedLibrary, export
from tests.harness.end_to_end_harness import assert_same_bits
from tests.hostile.model_builder import INT64, model, relu_chain, value
from tests.hostile.mutant_bundles import dynamic
from tests.unit.end_to_end.test_models import DYNAMIC, STATIC, Cases

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import opened, variant_program
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.view.evaluate_call import LaunchStep, evaluate_call
from ingot_runtime.format.source import read_plan

TARGET = "x86-64-v3"
RNG = np.random.default_rng(0)
PLACES = (
    (),
    ("--pool", "workspace=internal"),
    ("--pool", "constants=caller"),
    ("--pool", "workspace=internal", "--pool", "constants=caller"),
)


def layers(*names: str) -> ModelProto:
    """A product, a relu, a product: input, hidden value and outputs have the names given."""
    given, hidden, made, shares = names
    nodes = [
        helper.make_node("MatMul", [given, "w"], [hidden], "/first"),
        helper.make_node("Relu", [hidden], ["positive"], "/relu"),
        helper.make_node("MatMul", ["positive", "v"], [made], "/second"),
        helper.make_node("Softmax", [made], [shares], "/softmax"),
    ]
    weights = {
        "w": RNG.standard_normal((64, 128), np.float32),
        "v": RNG.standard_normal((128, 32), np.float32),
    }
    outputs = [value(made, [2, 32]), value(shares, [2, 32])]
    return model(nodes, [value(given, [2, 64])], outputs, weights)


def turns() -> ModelProto:
    """A loop as often as an input says, over a value of fixed sizes; inputs of three types, one
    without axes."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Add", ["state", "step"], ["next"], "/loop/add"),
        ],
        "body",
        [value("i", [], INT64), value("go", [], TensorProto.BOOL), value("state", [3, 4])],
        [value("on", [], TensorProto.BOOL), value("next", [3, 4])],
    )
    nodes = [
        helper.make_node("Loop", ["count", "go on", "x"], ["y"], "/loop", body=body),
        helper.make_node("Cast", ["x"], ["half"], "/cast", to=TensorProto.FLOAT16),
    ]
    inputs = [value("x", [3, 4]), value("count", [], INT64), value("go on", [], TensorProto.BOOL)]
    outputs = [value("y", [3, 4]), value("half", [3, 4], TensorProto.FLOAT16)]
    return model(nodes, inputs, outputs, {"step": np.arange(4, dtype=np.float32)})


def one_of_two() -> ModelProto:
    """One of two branches, whose results are of two sizes."""
    short, long = (
        helper.make_graph(
            [helper.make_node("Concat", ["x"] * count, ["taken"], axis=0)],
            "branch",
            [],
            [value("taken", [2 * count])],
        )
        for count in (1, 2)
    )
    node = helper.make_node(
        "If", ["is_first"], ["either"], "/if", then_branch=short, else_branch=long
    )
    inputs = [value("x", [2]), value("is_first", [], TensorProto.BOOL)]
    return model([node], inputs, [value("either", None)])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two products with names that C does not allow."""
    path = tmp_path_factory.mktemp("bundle") / "2 layers.ingot"
    ingot.compile(layers("x:0", "h", "y/1", "struct"), targets=[TARGET]).save(path)
    return path


@pytest.fixture(scope="module")
def header(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(bundle, tmp_path_factory.mktemp("library"), "--shared")


def feed() -> dict[str, np.ndarray]:
    return {"x:0": np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)}


@pytest.mark.broad
@pytest.mark.parametrize("places", PLACES, ids=" ".join)
def test_same_bits_wherever_the_pools_are(
    bundle: Path, places: tuple[str, ...], tmp_path: Path
) -> None:
    """Twice: nothing of a call is left for the next one."""
    library = SharedLibrary(export(bundle, tmp_path, "--shared", *places))
    wanted = ingot_runtime.load(bundle).run(feed())
    for _ in range(2):
        assert_same_bits(dict(wanted), library.run(feed()))


def test_loops_and_types(tmp_path: Path) -> None:
    """Control flow that data decide runs as it does in the loader."""
    ingot.compile(turns(), targets=[TARGET]).save(tmp_path / "m.ingot")
    library = SharedLibrary(export(tmp_path / "m.ingot", tmp_path, "--shared"))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with ingot_runtime.load(tmp_path / "m.ingot") as session:
        for count in (0, 3):
            given = {"x": x, "count": np.array(count), "go on": np.array(True)}
            assert_same_bits(dict(session.run(given)), library.run(given))


@pytest.mark.parametrize(
    "name",
    [
        name if name == "resnet" else pytest.param(name, marks=pytest.mark.slow)
        for name in STATIC
        if name != "detector"
    ],
)
def test_architectures(name: str, tmp_path: Path) -> None:
    """Every small architecture, bit for bit, but the detector: only the data decide what it
    finds."""
    cases = Cases(name, dynamic=False)
    ingot.compile(cases.path, targets=[TARGET]).save(tmp_path / "m.ingot")
    library = SharedLibrary(export(tmp_path / "m.ingot", tmp_path, "--shared"))
    with ingot_runtime.load(tmp_path / "m.ingot") as session:
        for given in cases.feeds:
            assert_same_bits(dict(session.run(given)), library.run(given))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DYNAMIC if name != "detector"])
def test_architectures_of_open_sizes(name: str, tmp_path: Path) -> None:
    """Of each, the sizes of one case."""
    cases = Cases(name, dynamic=True)
    ingot.compile(cases.path, targets=[TARGET]).save(tmp_path / "m.ingot")
    given = cases.feeds[-1]
    shapes = [
        f"{name}={'x'.join(map(str, array.shape)) or 'scalar'}" for name, array in given.items()
    ]
    options = [word for shape in shapes for word in ("--shape", shape)]
    library = SharedLibrary(export(tmp_path / "m.ingot", tmp_path, "--shared", *options))
    with ingot_runtime.load(tmp_path / "m.ingot") as session:
        assert_same_bits(dict(session.run(dict(given))), library.run(given))


class Mapped(ctypes.Structure):
    """The addresses of two outputs."""

    first: int
    second: int
    _fields_ = (("first", ctypes.c_void_p), ("second", ctypes.c_void_p))


class OneMapped(ctypes.Structure):
    """That of one input."""

    first: int
    _fields_ = (("first", ctypes.c_void_p),)


def test_tensors_lie_in_a_pool(bundle: Path, tmp_path: Path) -> None:
    """The functions that tell where they are say what the plan says; a call then takes null for the
    structs."""
    library = SharedLibrary(
        export(
            bundle,
            tmp_path,
            "--shared",
            "--tensors-in",
            "workspace",
            "--pool",
            "workspace=internal",
        )
    )

    places: list[Any] = []
    for kind in ("inputs", "outputs"):
        function = library.library[f"{library.model}_map_{kind}"]
        function.restype = OneMapped if kind == "inputs" else Mapped
        places.append(function(None))
    x, y = feed()["x:0"], np.zeros((2, 32), np.float32)
    ctypes.memmove(places[0].first, x.ctypes.data, x.nbytes)
    assert library.call(None, None) == 0
    ctypes.memmove(y.ctypes.data, places[1].first, y.nbytes)
    assert y.tobytes() == ingot_runtime.load(bundle).run(feed())["y/1"].tobytes()
    assert (places[1].second - places[0].first) % 64 == 0


def test_bad_calls_are_refused(header: Path) -> None:
    """Another header, null, memory that is not aligned: a code each, and nothing runs."""
    library = SharedLibrary(header)
    x, y = feed()["x:0"], np.zeros((2, 2, 32), np.float32)
    good = (
        (ctypes.c_void_p * 1)(x.ctypes.data),
        (ctypes.c_void_p * 2)(y[0].ctypes.data, y[1].ctypes.data),
    )
    other, bad = int(library.number("OTHER_HEADER")), int(library.number("BAD_POINTER"))
    assert library.call(*good, abi=library.abi ^ 1) == other
    assert library.call(*good, shift=8) == bad
    assert library.call(None, good[1]) == bad
    assert library.call((ctypes.c_void_p * 1)(None), good[1]) == bad
    assert library.call((ctypes.c_void_p * 1)(x.ctypes.data + 2), good[1]) == bad
    assert not y.any()
    assert library.call(*good) == 0


def test_model_refuses_inputs_in_words(tmp_path: Path) -> None:
    """The message is the loader's, and ends within its room."""
    node = helper.make_node("Gather", ["w", "at"], ["y"], "/gather")
    made = model(
        [node], [value("at", [1], INT64)], [value("y", [1, 2])], {"w": np.eye(2, dtype=np.float32)}
    )
    ingot.compile(made, targets=[TARGET]).save(tmp_path / "m.ingot")
    library = SharedLibrary(export(tmp_path / "m.ingot", tmp_path, "--shared"))
    at, y = np.array([7]), np.zeros((1, 2), np.float32)
    tensors = (ctypes.c_void_p * 1)(at.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)
    assert library.call(*tensors) == int(library.number("REFUSED"))
    assert library.message.value
    with pytest.raises(ingot_runtime.BundleError, match="refuses"):
        ingot_runtime.load(tmp_path / "m.ingot").run({"at": at})


def test_header_names_and_sizes(header: Path) -> None:
    """Names are sanitised; macros have the bytes; the library depends on nothing."""
    assert header.name == "_2_layers.h"
    text = header.read_text(encoding="utf-8")
    assert re.findall(r"  (?:const )?float \*(\w+); // (.*)", text) == [
        ("x_0", "f32[2, 64]"), ("y_1", "f32[2, 32]"), ("struct_", "f32[2, 32]"),
    ]  # fmt: skip
    library = SharedLibrary(header)
    assert library.number("input_x_0_BYTES") == "512"
    assert library.number("output_struct__BYTES") == "256"
    content = (header.parent / "lib_2_layers.so").read_bytes()
    assert b"libc.so" not in content
    main_function = library.metadata["functions"]["main"]
    assert main_function["tensor_bytes"] == 512 + 2 * 256
    assert str(main_function["workspace_bytes"]) == library.number("workspace_POOL_BYTES")
    assert str(main_function["constants_bytes"]) == library.number("constants_POOL_BYTES")


def test_names_that_c_would_read_as_something_else(tmp_path: Path) -> None:
    """Quotes, backslashes, trigraphs, formats and letters of other alphabets come back as they
    were."""
    given, made = 'in"put\\??/%s*/', "größe"
    node = helper.make_node("Relu", [given], [made], "/relu")
    ingot.compile(model([node], [value(given, [3])], [value(made, [3])]), targets=[TARGET]).save(
        tmp_path / "m.ingot"
    )
    library = SharedLibrary(export(tmp_path / "m.ingot", tmp_path, "--shared"))
    assert [spec["name"] for spec in library.metadata["inputs"]] == [given]
    assert [spec["name"] for spec in library.metadata["outputs"]] == [made]
    x = np.array([-1, 0, 2], np.float32)
    assert library.run({given: x})[made].tolist() == [0, 0, 2]


@pytest.mark.broad
@pytest.mark.parametrize("count", [1, 3])
def test_sizes_that_are_chosen(count: int, tmp_path: Path) -> None:
    """Of a bundle that leaves them open, a library has those that are asked for."""
    ingot.compile(relu_chain(), targets=[TARGET], shapes={"x": (1, 3)}).save(tmp_path / "m.ingot")
    shape = ("--shape", f"x={count}x3")
    library = SharedLibrary(export(tmp_path / "m.ingot", tmp_path, "--shared", *shape))
    given = {"x": np.arange(3 * count, dtype=np.float32).reshape(count, 3)}
    with ingot_runtime.load(tmp_path / "m.ingot") as session:
        assert_same_bits(dict(session.run(given)), library.run(given))
    assert library.number("input_x_BYTES") == str(12 * count)
    assert library.number("output_y_BYTES") == str(2048 * count)


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("node", "sizes"),
    [
        (helper.make_node("Concat", ["x", "c"], ["y"], axis=2), (1, 1, 5)),
        (helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[2]), (1, 1, 8)),
    ],
    ids=lambda value: getattr(value, "op_type", ""),
)
@pytest.mark.parametrize("kind", ["--library", "--module-archive"])
def test_sizes_that_follow_from_those_of_inputs(
    kind: str, node: NodeProto, sizes: tuple[int, ...], tmp_path: Path
) -> None:
    """An output may have a size that no input has: the shapes give it, not the data."""
    constants = {"c": np.ones((1, 1, 1), np.float32)} if "c" in node.input else {}
    made = model([node], [value("x", [1, 1, "n"])], [value("y", None)], constants)
    ingot.compile(made, targets=[TARGET]).save(tmp_path / "m.ingot")
    shape = ("--shape", f"x={'x'.join(map(str, sizes))}")
    if kind == "--module-archive":
        words = ["export", str(tmp_path / "m.ingot"), kind, "-o", str(tmp_path / "m.tar"), *shape]
        assert main(words) == 0
        return
    library = SharedLibrary(export(tmp_path / "m.ingot", tmp_path, "--shared", *shape))
    given = {"x": RNG.standard_normal(sizes, np.float32)}
    with ingot_runtime.load(tmp_path / "m.ingot") as session:
        assert_same_bits(dict(session.run(given)), library.run(given))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("z=3x3", "the model's inputs are x"),
        ("x=3", "expected a number for each of [n, 3]"),
        ("x=?x3", "expected a number for each of [n, 3]"),
        ("x=2x4", "expected 3 in [n, 3], got 4"),
    ],
)
def test_shapes_that_do_not_fit(
    shape: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The input and what it has are named."""
    ingot.compile(relu_chain(), targets=[TARGET]).save(tmp_path / "m.ingot")
    arguments = ["export", str(tmp_path / "m.ingot"), "--library", "-o", str(tmp_path)]
    assert main([*arguments, "--shape", shape]) == 1
    assert said in capsys.readouterr().err


def test_one_variant_of_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It must be named; the library has its code alone."""
    bundle = tmp_path / "m.ingot"
    ingot.compile(layers("x", "h", "y", "p"), targets=["x86-64-v2", TARGET]).save(bundle)
    assert main(["export", str(bundle), "--library", "-o", str(tmp_path)]) == 1
    assert "which variant?" in capsys.readouterr().err
    wanted: list[bytes] = []
    for target in ("x86-64-v2", TARGET):
        folder = tmp_path / target
        library = SharedLibrary(export(bundle, folder, "--shared", "--variant", target))
        assert library.metadata["target"] == target
        with ingot_runtime.load(bundle, variant=target) as session:
            given = {"x": feed()["x:0"]}
            assert_same_bits(dict(session.run(given)), library.run(given))
        wanted.append((folder / "libm.so").read_bytes())
    assert wanted[0] != wanted[1]


def test_constants_that_are_too_large_are_the_callers(
    bundle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Code reaches so far and no further: the error says what to do."""
    monkeypatch.setattr("ingot_build_rules.tools.export.library_facts.INSIDE_BYTES_MAX", 1000)
    assert main(["export", str(bundle), "--library", "-o", str(tmp_path)]) == 3
    told = capsys.readouterr().err
    assert "pool 'constants' is too large to lie in the library" in told
    assert "--pool constants=caller" in told
    export(bundle, tmp_path, "--pool", "constants=caller")


@pytest.mark.broad
def test_same_bytes_from_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    """No path, time or user is in a library: another folder and an empty cache give the same."""
    made: list[list[bytes]] = []
    for name in ("one", "two"):
        folder = tmp_path / name
        copy = tmp_path / f"{name}.ingot"
        shutil.copy(bundle, copy)
        for shared in ((), ("--shared",)):
            export(
                copy, folder, "--name", "net", "--cache", str(tmp_path / f"cache-{name}"), *shared
            )
        made.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert made[0] == made[1]
    assert len(made[0]) == 3


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ("x", "h", "y.1", "y:1"),
            ("two names become one in C", "output 'y.1', output 'y:1'", "y_1"),
        ),
    ],
)
def test_clashes_name_both(
    names: tuple[str, ...],
    said: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two names that become one are an error."""
    ingot.compile(layers(*names), targets=[TARGET]).save(tmp_path / "m.ingot")
    assert main(["export", str(tmp_path / "m.ingot"), "--library", "-o", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert all(part in told for part in said), told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.ingot"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--pool", "fast=caller"), 1, "no pool 'fast'"),
        (("--pool", "workspace=heap"), 1, "no such place of pool 'workspace'"),
        (("--pool", "workspace=caller", "--pool", "workspace=internal"), 1, "is given twice"),
        (("--tensors-in", "constants"), 1, "no pool 'constants'"),
        (("--name", "two layers"), 1, "--name two_layers"),
        (("--variant", "x86-64-v4"), 1, "no variant 'x86-64-v4'"),
        (("--executable",), 1, "expected one of"),
    ],
)  # fmt: skip
def test_wrong_wishes(
    bundle: Path,
    options: tuple[str, ...],
    code: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each is told what there is instead."""
    assert main(["export", str(bundle), "--library", "-o", str(tmp_path), *options]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--executable", "--shared"), "--shared does not fit"),
        (("--executable", "--pool", "workspace=caller"), "--pool does not fit"),
        (("--module-archive", "--shared"), "--shared does not fit"),
        (("--library", "--also", "x.ingot"), "--also does not fit"),
        ((), "expected one of --executable, --library, --module-archive"),
    ],
)
def test_options_of_another_kind(
    bundle: Path,
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both are named: what is exported, and the option that says nothing of it."""
    assert main(["export", str(bundle), "-o", str(tmp_path / "made"), *arguments]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert not arguments or arguments[0] in told


def test_constants_lie_apart(bundle: Path, tmp_path: Path) -> None:
    """The file that a caller gives has each constant where the plan has it, once, aligned, and
    zeros between."""
    header = export(bundle, tmp_path, "--shared", "--pool", "constants=caller")
    with opened(bundle) as source:
        plan = read_plan(source)
        program = variant_program(source, plan, 0)
    call = evaluate_call(program, [tensor.dims for tensor in plan.inputs], 1)
    spans = {
        (span.offset, span.offset + span.size_bytes)
        for step in call.steps
        if isinstance(step, LaunchStep)
        for span in step.buffers
        if span.origin == "weights"
    }
    assert len(spans) == 2
    (first, second) = sorted(spans)
    assert first[1] <= second[0]
    assert not {start % 64 for start, _ in spans} - {0}
    content = header.with_suffix(".constants").read_bytes()
    assert not any(content[second[1] :])


@pytest.mark.broad
def test_what_a_library_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Open sizes, sizes that data decide, devices: each is refused by its name."""
    dynamic(tmp_path / "open.ingot")
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"], "/places"),
        helper.make_node("ReduceSum", ["places"], ["y"], "/sum", keepdims=0),
    ]
    for name, rows, output in (
        ("grown", 4000, value("y", [], INT64)),
        ("measured", 2, value("places", [2, None], INT64)),
    ):
        found = model(nodes, [value("x", [rows, 4])], [output])
        ingot.compile(found, targets=[TARGET]).save(tmp_path / f"{name}.ingot")
    places = helper.make_node("NonZero", ["x"], ["places"], "/places")
    beside = helper.make_node("Concat", ["places", "one"], ["y"], axis=1)
    ingot.compile(
        model(
            [places, beside],
            [value("x", [2, 4])],
            [value("y", None, INT64)],
            {"one": np.ones((2, 1), np.int64)},
        ),
        targets=[TARGET],
    ).save(tmp_path / "one_more.ingot")
    ingot.compile(one_of_two(), targets=[TARGET]).save(tmp_path / "chosen.ingot")
    placed = ingot.compile(
        layers("x", "h", "y", "p"),
        targets=[TARGET],
        devices={"acc": "null:0"},
        place={"/first": "acc"},
    )
    placed.save(tmp_path / "device.ingot")
    ingot.compile(Cases("detector", dynamic=False).path, targets=[TARGET]).save(
        tmp_path / "found.ingot"
    )
    for name, said in (
        ("open", "such as --shape x=4x4"),
        ("found", "'chosen'"),
        ("grown", "a library needs all sizes in advance"),
        ("measured", "'places'"),
        ("one_more", "'y'"),
        ("chosen", "'either'"),
        ("device", "the device 'acc' of kind null"),
    ):
        arguments = ["export", str(tmp_path / f"{name}.ingot"), "--library", "-o", str(tmp_path)]
        assert main(arguments) == 3
        assert said in capsys.readouterr().err


@pytest.mark.broad
@pytest.mark.gcc
def test_compiled_by_another_compiler(bundle: Path, tmp_path: Path) -> None:
    """The header alone is C99 and C++11 without a warning; a program that has it and the archive
    gives the bits; one that was compiled with the header of another interface is refused."""
    header = export(bundle, tmp_path, "--name", "net")
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    for compiler, flags in (("gcc", ["-std=c99"]), ("g++", ["-std=c++11", "-x", "c++"])):
        subprocess.run([compiler, *strict, *flags, "-fsyntax-only", header], check=True)
    source = Path(__file__).parents[1] / "c_programs" / "library.c"
    program = tmp_path / "program"
    command: list[str | Path] = [
        "gcc",
        "-std=c99",
        *strict,
        "-I",
        tmp_path,
        source,
        "-L",
        tmp_path,
        "-lnet",
        "-o",
        program,
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([program], input=feed()["x:0"].tobytes(), capture_output=True, check=True)
    assert done.stdout == ingot_runtime.load(bundle).run(feed())["y/1"].tobytes()
    library = (tmp_path / "libnet.a").read_bytes()
    export(
        bundle,
        tmp_path,
        "--name",
        "net",
        "--pool",
        "workspace=internal",
        "--tensors-in",
        "workspace",
    )
    (tmp_path / "libnet.a").write_bytes(library)
    text = header.read_text(encoding="utf-8")
    assert "_map_inputs" in text
    header.write_text(
        text.replace("struct net_workspace {", "struct net_workspace {\n  void *workspace;")
    )
    subprocess.run(command, check=True)
    assert subprocess.run([program], input=feed()["x:0"].tobytes(), check=False).returncode == 2

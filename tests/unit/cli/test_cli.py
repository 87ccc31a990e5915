"""The command: every mistake of the user gives four parts and its exit code, and nothing
half-written stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ingot_build_rules.tools.cli.main import main
from ingot_runtime_devices.registry import OPEN


def small_model(path: Path, columns: int = 5) -> Path:
    """Write x[batch?, 4] @ w[4, columns] -> relu; the batch is 2."""
    weights = np.arange(4 * columns, dtype=np.float32).reshape(4, columns) / 8 - 1
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
            helper.make_node("Relu", ["h"], ["y"], name="second"),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, columns])],
        [numpy_helper.from_array(weights, "w")],
    )
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    return path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled small model."""
    folder = tmp_path_factory.mktemp("bundle")
    path = folder / "small.ingot"
    assert main(["compile", str(small_model(folder / "small.onnx")), "-o", str(path), "-q"]) == 0
    return path


def assert_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, *words: str
) -> None:
    """The command ends with ``code`` and an error in parts that has all of ``words``; no
    traceback."""
    assert main(arguments) == code
    text = capsys.readouterr().err
    assert text.startswith("error: "), text
    assert "Traceback" not in text
    assert all(
        line.startswith(("error: ", "  where: ", "  why: ", "  do: "))
        for line in text.strip().splitlines()
    ), text
    for word in words:
        assert word in text, f"{word!r} not in {text}"


def test_compile_run_and_report(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model becomes a bundle, the bundle gives the right numbers in a file."""
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    np.savez(tmp_path / "in.npz", x=x)
    for executor in ("aot", "vm"):
        out = tmp_path / f"{executor}.npz"
        arguments = [
            "run",
            str(bundle),
            "--inputs",
            str(tmp_path / "in.npz"),
            "--outputs",
            str(out),
            "--json",
        ]
        assert main([*arguments, "--executor", executor]) == 0
        assert json.loads(capsys.readouterr().out)["outputs"]["y"]["shape"] == [2, 5]
        weights = np.arange(20, dtype=np.float32).reshape(4, 5) / 8 - 1
        np.testing.assert_allclose(
            np.load(out)["y"], np.maximum(x @ weights, 0), rtol=1e-6, atol=1e-6
        )


def test_inspect_names_kernels_by_their_nodes(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person reads the user's node names; a script reads JSON."""
    assert main(["inspect", str(bundle)]) == 0
    assert "first (MatMul), second (Relu)" in capsys.readouterr().out
    assert main(["inspect", str(bundle), "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    (launch,) = next(iter(described["debug"]["launches"].values()))
    assert launch["nodes"] == [["first", "MatMul"], ["second", "Relu"]]


def test_inspect_has_the_users_names_of_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Types of launches have them, as inputs do; lists are no lists of Python."""
    model = ModelProto.FromString(small_model(tmp_path / "m.onnx").read_bytes())
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "rows"
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    names = ["-q", "--target", "x86-64-v2", "-o", str(tmp_path / "m.ingot")]
    assert main(["compile", str(tmp_path / "m.onnx"), *names]) == 0
    assert main(["inspect", str(tmp_path / "m.ingot")]) == 0
    text = capsys.readouterr().out
    assert "x: f32[rows, 4]" in text
    assert "matmul  f32[rows, 5]  first (MatMul), second (Relu)" in text
    assert "1 kernel, workspace as calls need, needs cx16, lahf, popcnt, sse3, " in text
    assert "s0" not in text


def test_inspect_shows_assembly(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel's assembly is made again from what the bundle carries."""
    assert main(["inspect", str(bundle), "--asm", "k_"]) == 0
    assert ".globl  k_" in capsys.readouterr().out
    assert_refused(
        capsys, ["inspect", str(bundle), "--asm", "k_nothing"], 1, "no kernel 'k_nothing'"
    )


def test_diff(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same bundle is equal; another model's differs and the command says where."""
    assert main(["diff", str(bundle), str(bundle)]) == 0
    assert capsys.readouterr().out == "equal\n"
    other = tmp_path / "other.ingot"
    assert (
        main(["compile", str(small_model(tmp_path / "m.onnx", columns=6)), "-o", str(other), "-q"])
        == 0
    )
    assert main(["diff", str(bundle), str(other), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert not report["equal"]
    (output,) = report["differences"]["outputs"]
    assert (output["name"], output["before"]["shape"], output["after"]["shape"]) == (
        "y",
        [2, 5],
        [2, 6],
    )


def test_bench_and_identify(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both report numbers as JSON."""
    assert main(["bench", str(bundle), "--seconds", "0.05", "--anyway", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    seconds = report["call_seconds_percentiles"]
    assert seconds["p10"] <= seconds["p50"] <= seconds["p90"]
    assert len(report["launches"]) == 1
    assert main(["identify", "--json"]) == 0
    machine = json.loads(capsys.readouterr().out)
    assert machine["level"]
    assert machine["devices"] == ["host", *OPEN]


def test_identify_without_devices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the package of devices is not installed there is the host."""
    monkeypatch.setitem(sys.modules, "ingot_runtime_devices.registry", None)
    assert main(["identify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"] == ["host"]


def test_a_note_on_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A device that needs more than a variant of the host is told of, by compile and by build."""
    small_model(tmp_path / "m.onnx")
    device = "acc=cpu,target=x86-64-v3"
    arguments = ["--target", "x86-64-v2", "--device", device, "-o", str(tmp_path / "o.ingot")]
    assert main(["compile", str(tmp_path / "m.onnx"), *arguments]) == 0
    expected = "device 'acc' needs avx avx2"
    assert expected in capsys.readouterr().err
    (tmp_path / "ingot.toml").write_text(
        '[model.m]\nsource = "m.onnx"\n[target.edge]\nlevel = "x86-64-v3"\n'
        '[bundle.m]\nmodel = "m"\ntargets = ["x86-64-v2"]\n'
        'devices = { acc = "cpu:2,target=edge" }\n'
    )
    assert main(["build", "-C", str(tmp_path)]) == 0
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    "stage",
    ["imported", "graph", "optimized", "placed", "fused", "loops", "memory", "program", "library"],
)
def test_each_stage_prints(stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--to`` prints text, the same each time."""
    model = str(small_model(tmp_path / "m.onnx"))
    texts: list[str] = []
    for _ in range(2):
        assert main(["compile", model, "--to", stage, "--target", "x86-64-v3", "-q"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0].strip()
    assert texts[0] == texts[1]


def test_unknown_words_get_suggestions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Verb, option, target, feature, stage and planner: a near miss is named."""
    model = str(small_model(tmp_path / "m.onnx"))
    out = ["-o", str(tmp_path / "o.ingot")]
    assert_refused(capsys, ["comple"], 1, "unknown verb", "did you mean 'ingot compile'?")
    assert_refused(
        capsys,
        ["compile", model, *out, "--taget", "native"],
        1,
        "unknown option",
        "did you mean '--target'?",
    )
    assert_refused(
        capsys,
        ["compile", model, *out, "--target", "x86-64-v5"],
        1,
        "unknown target",
        "expected one of native, x86-64-v2",
        "did you mean",
    )
    assert_refused(
        capsys,
        ["compile", model, *out, "--target", "x86-64-v3+avx512ff"],
        1,
        "unknown feature",
        "avx512f",
    )
    assert_refused(capsys, ["compile", model, "--to", "graf"], 1, "--to", "graph")
    assert_refused(
        capsys, ["compile", model, *out, "--planner", "hillclimb"], 1, "did you mean 'hill_climb'?"
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "m.onnx"]


def test_wrong_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shapes, devices and places that cannot be are refused, by name."""
    model = str(small_model(tmp_path / "m.onnx"))
    out = ["-o", str(tmp_path / "o.ingot")]
    assert_refused(capsys, ["compile", model, *out, "--shape", "x=2xfour"], 1, "--shape", "2xfour")
    assert_refused(capsys, ["compile", model, *out, "--shape", "xx=2x4"], 1, "xx")
    assert_refused(capsys, ["compile", model, *out, "--shape", "x=3x4"], 1, "x=3x4")
    assert_refused(
        capsys, ["compile", model, *out, "--shape", "x=2x4", "--shape", "x=2x4"], 1, "given twice"
    )
    assert_refused(capsys, ["compile", model, *out, "--device", "acc=cuda,target=sm_7"], 1, "sm_7")
    assert_refused(
        capsys, ["compile", model, *out, "--device", "acc=opncl"], 1, "did you mean 'opencl'?"
    )
    assert_refused(
        capsys, ["compile", model, *out, "--place", "first=acc"], 1, "unknown device 'acc'"
    )
    assert_refused(capsys, ["compile", model, *out, "--workers", "0"], 1, "above 0")
    assert list(tmp_path.iterdir()) == [tmp_path / "m.onnx"]


def test_bad_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file, a folder, another kind of file and a truncated one are the user's
    mistakes."""
    out = ["-o", str(tmp_path / "o.ingot")]
    assert_refused(capsys, ["compile", str(tmp_path / "none.onnx"), *out], 1, "no such model file")
    assert_refused(capsys, ["compile", str(tmp_path), *out], 1, "folder")
    (tmp_path / "text.onnx").write_text("this is not a model, it is a sentence\n" * 10)
    assert_refused(capsys, ["compile", str(tmp_path / "text.onnx"), *out], 1, "not an ONNX model")
    whole = small_model(tmp_path / "m.onnx").read_bytes()
    (tmp_path / "half.onnx").write_bytes(whole[: len(whole) // 2])
    assert_refused(capsys, ["compile", str(tmp_path / "half.onnx"), *out], 1, "'half.onnx', byte")
    assert not (tmp_path / "o.ingot").exists()


def test_unsupported_nodes_are_all_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 3, every node by name."""
    graph = helper.make_graph(
        [
            helper.make_node("Strange", ["x"], ["h"], name="one", domain="com.example"),
            helper.make_node("Stranger", ["h"], ["y"], name="two", domain="com.example"),
        ],
        "odd",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    (tmp_path / "odd.onnx").write_bytes(
        helper.make_model(graph, opset_imports=opsets).SerializeToString()
    )
    assert main(["compile", str(tmp_path / "odd.onnx"), "-o", str(tmp_path / "o.ingot"), "-q"]) == 3
    text = capsys.readouterr().err
    assert "Strange" in text
    assert "Stranger" in text


def test_bad_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No folder, a folder in the file's place: refused before any work."""
    model = str(small_model(tmp_path / "m.onnx"))
    assert_refused(
        capsys,
        ["compile", model, "-o", str(tmp_path / "no" / "o.ingot")],
        1,
        "no such output folder",
    )
    assert_refused(capsys, ["compile", model, "-o", str(tmp_path)], 1, "folder")


def test_no_space_leaves_nothing(tmp_path: Path) -> None:
    """When the disk is full (here: a limit on file sizes) the exit code is 1 or 2 and no part of a
    bundle stays."""
    model = small_model(tmp_path / "m.onnx")
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000));"
        "from ingot_build_rules.tools.cli.main import main;"
        f"sys.exit(main(['compile', {str(model)!r}, '-o', {str(tmp_path / 'o.ingot')!r}, '-q']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (1, 2), done.stderr
    assert done.stderr.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_bad_runs(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not a bundle, a truncated one, wrong inputs: each with its code and name."""
    (tmp_path / "text.ingot").write_text("not a bundle" * 1000)
    assert_refused(capsys, ["run", str(tmp_path / "text.ingot")], 1)
    (tmp_path / "half.ingot").write_bytes(bundle.read_bytes()[:70000])
    assert_refused(capsys, ["run", str(tmp_path / "half.ingot")], 4)
    assert_refused(capsys, ["run", str(tmp_path / "none.ingot")], 1)
    np.savez(tmp_path / "wrong.npz", xx=np.zeros((2, 4), np.float32))
    assert_refused(capsys, ["run", str(bundle), "--inputs", str(tmp_path / "wrong.npz")], 1, "xx")
    np.savez(tmp_path / "shape.npz", x=np.zeros((3, 4), np.float32))
    assert_refused(
        capsys,
        ["run", str(bundle), "--inputs", str(tmp_path / "shape.npz")],
        1,
        "'x'",
        "[2, 4]",
        "[3, 4]",
    )
    assert_refused(
        capsys, ["run", str(bundle), "--inputs", str(bundle)], 1, "cannot read inputs from"
    )
    assert_refused(capsys, ["run", str(bundle), "--variant", "x86-64-v9"], 1, "x86-64-v9")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("avx2", "write --target x86-64-v3"),
        ("AVX512", "write --target x86-64-v4"),
        ("v3,v4", "repeat the option: --target x86-64-v3 --target x86-64-v4"),
        ("arm64", "write --target aarch64"),
        ("nonsense", "write ARCH"),
    ],
)
def test_targets_by_other_names(
    target: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The names of sets of instructions, and several targets in one option, are understood."""
    model = str(small_model(tmp_path / "m.onnx"))
    assert_refused(capsys, ["compile", model, "--target", target], 1, "unknown target", said)


def test_files_of_another_kind(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle where a model is expected, a model where a bundle is, and a model of another tool
    are told by their kind and path, with what to do."""
    model, torch = small_model(tmp_path / "m.onnx"), tmp_path / "m.pt"
    torch.write_bytes(b"PK\x03\x04" + bytes(100))
    with zipfile.ZipFile(tmp_path / "zip.onnx", "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    told = (str(bundle), "it is a bundle", f"ingot run {bundle}")
    assert_refused(capsys, ["compile", str(bundle), "-o", str(bundle)], 1, *told)
    for path, words in (
        (torch, ("a file of PyTorch", "torch.onnx.export")),
        (tmp_path / "zip.onnx", ("a file of PyTorch", "torch.onnx.export")),
    ):
        assert_refused(capsys, ["compile", str(path)], 1, "not an ONNX model", str(path), *words)
    for verb in (["run"], ["inspect"], ["report"], ["diff", str(bundle)]):
        advice = f"ingot compile {model}"
        assert_refused(capsys, [*verb, str(model)], 1, "it is an ONNX model", advice)
        assert_refused(capsys, [*verb, str(torch)], 1, "not a bundle", "a file of PyTorch")
    assert_refused(capsys, ["bench", str(torch)], 1, "not a bundle", "a file of PyTorch")


@pytest.mark.parametrize(
    ("content", "kind", "advice"),
    [
        (b"", "empty", "`ingot compile`"),
        (b"<html>\n", "text", "`ingot compile`"),
        (b"\x7fELF\x02\x01", "a program or library of Linux", "`ingot compile`"),
        (b"\x1f\x8b\x08\x00", "compressed with gzip", "unpack it first"),
        (b"\x80\x02}", "a pickle, as PyTorch writes", "torch.onnx.export, and compile that"),
        (b"PK\x03\x04damaged", "a zip file", "unpack it first, if what you need is in it"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "a pointer of git-lfs to a file that is not downloaded",
            "git lfs pull",
        ),
    ],
)
def test_files_that_are_no_bundles(
    content: bytes, kind: str, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a file is stands in the error, not its first bytes."""
    path = tmp_path / "file"
    path.write_bytes(content)
    for verb in (["verify"], ["reproduce", "--source", str(tmp_path)], ["inspect"]):
        assert_refused(capsys, [*verb, str(path)], 1, "not a bundle", f"it is {kind}\n", advice)


def test_arrays_in_the_place_of_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were meant for another option; bytes that say nothing are shown."""
    np.savez(tmp_path / "x.npz", x=np.ones(3))
    assert_refused(capsys, ["run", str(tmp_path / "x.npz")], 1, "it is arrays", "as its inputs")
    (tmp_path / "x").write_bytes(b"\x8aING\0")
    assert_refused(capsys, ["run", str(tmp_path / "x")], 1, "not a bundle", "8a 49 4e 47 00")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Help names every verb; without a verb the exit code is 1."""
    assert main(["--help"]) == 0
    assert "compile a model into one bundle" in capsys.readouterr().out
    assert main([]) == 1
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.endswith("\n")


def test_a_bug_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected exception becomes a message that asks for a report; ``--debug`` shows where it
    was."""
    from ingot_build_rules.making.stages import start_compilation

    def broken(*_: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(start_compilation, "start_compilation", broken)
    arguments = ["compile", "m.onnx", "-o", str(tmp_path / "o.ingot"), "-q"]
    assert_refused(capsys, arguments, 2, "ZeroDivisionError: by nothing", "--debug")
    assert main([*arguments, "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def child_environment() -> dict[str, str]:
    """The environment of a child that imports the same packages."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.broad
def test_interrupt_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C ends with 130, one line, and no file, whenever it comes."""
    model = small_model(tmp_path / "m.onnx")
    command = [
        sys.executable,
        "-m",
        "ingot",
        "compile",
        str(model),
        "-o",
        str(tmp_path / "o.ingot"),
    ]
    for delay_seconds in (0.6, 0.8):
        process = subprocess.Popen(
            command,
            env=child_environment(),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        time.sleep(delay_seconds)
        process.send_signal(signal.SIGINT)
        _, text = process.communicate(timeout=300)
        if process.returncode:  # it may have been done already
            assert process.returncode in (130, -signal.SIGINT), text
        left = {path.name for path in tmp_path.iterdir()} - {"m.onnx"}
        assert left <= {"o.ingot"}
        assert left or process.returncode  # Ctrl-C right behind the renaming finds the file, whole
        for name in left:
            (tmp_path / name).unlink()

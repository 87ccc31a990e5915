"""Bad models and options, by the command and from Python: four parts, the exit code, no traceback,
nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.hostile.model_builder import FLOAT, INT64, model, relu_chain, value

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main


def node(op: str, operands: list[str], name: str = "n", **attributes: Any) -> NodeProto:
    """A node that makes y."""
    return helper.make_node(op, operands, ["y"], name, **attributes)


def over_x(*nodes: NodeProto, opset: int = 20) -> ModelProto:
    """Nodes over x[2, 3] that make y."""
    return model(nodes, [value("x", [2, 3])], [value("y", None)], opset=opset)


def with_tensor(tensor: TensorProto) -> ModelProto:
    """x + w, w given."""
    built = model([node("Add", ["x", "w"])], [value("x", [4])], [value("y", None)])
    built.graph.initializer.append(tensor)
    return built


def with_external(location: str, offset: str = "0") -> ModelProto:
    """x + w, the 16 bytes of w beside the model."""
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="offset", value=offset)
    return with_tensor(tensor)


def own_domain() -> ModelProto:
    """An op of a domain that Ingot does not know, and another that ONNX does not."""
    built = over_x(
        helper.make_node("Fancy", ["x"], ["h"], "own", domain="com.example"),
        node("Relux", ["h"], "wrong"),
    )
    built.opset_import.append(helper.make_opsetid("com.example", 1))
    return built


def constant_of(sizes: list[int]) -> ModelProto:
    """A constant of a size that a few bytes ask for."""
    return model(
        [node("ConstantOfShape", ["s"])], [], [value("y", None)], {"s": np.array(sizes, np.int64)}
    )


def typed(shape: list[int], dtype: int) -> ModelProto:
    """An output declared as something."""
    return model([node("Neg", ["x"])], [value("x", [2])], [value("y", shape, dtype)])


LINE = [
    helper.make_node("Add", ["x", "b"], ["a"], "first"),
    helper.make_node("Neg", ["a"], ["b"], "second"),
]
TWICE = [helper.make_node("Neg", ["x"], ["y"], "one"), helper.make_node("Abs", ["x"], ["y"], "two")]
MODELS: dict[str, tuple[bytes | ModelProto, int, list[str]]] = {
    "not ONNX": (b"this is a sentence\n" * 9, 1, ["not an ONNX model", "bad.onnx"]),
    "empty": (b"", 1, ["not an ONNX model", "it is empty"]),
    "truncated": (relu_chain().SerializeToString()[:3000], 1, ["truncated"]),
    "cycle": (
        model(LINE, [value("x", [2])], [value("b", None)]),
        1,
        ["cycle", "'first'", "'second'"],
    ),
    "duplicate name": (over_x(*TWICE), 1, ["defined twice", "'two'", "'one'"]),
    "undefined input": (
        over_x(node("Neg", ["xx"])),
        1,
        ["no node computes", "'n'", "did you mean 'x'?"],
    ),
    "lost output": (
        over_x(helper.make_node("Neg", ["x"], ["z"], "n")),
        1,
        ["no node computes an output", "'y'"],
    ),
    "few bytes": (
        with_tensor(TensorProto(name="w", data_type=FLOAT, dims=[4], raw_data=bytes(12))),
        1,
        ["'w'", "expected 16 bytes", "got 12"],
    ),
    "petabyte tensor": (
        with_tensor(
            TensorProto(name="w", data_type=FLOAT, dims=[1 << 25, 1 << 25], raw_data=bytes(16))
        ),
        1,
        ["'w'", "got 16"],
    ),
    "petabyte constant": (constant_of([1 << 25, 1 << 25]), 1, ["too large", "'n'"]),
    "more than 64 bits": (constant_of([1 << 62, 1 << 62]), 1, ["too large", "'n'"]),
    "petabyte input": (
        model([node("Neg", ["x"])], [value("x", [1 << 25, 1 << 25])], [value("y", None)]),
        1,
        ["too large", "'n'"],
    ),
    "op and domain": (own_domain(), 3, ["'own'", "'wrong'", "com.example", "did you mean Relu?"]),
    "dtype": (over_x(node("Cast", ["x"], to=TensorProto.COMPLEX64)), 3, ["'n'", "complex64"]),
    "opset": (over_x(node("Neg", ["x"]), opset=999), 3, ["'n'", "opset 999", "reads opsets 1 to"]),
    "no external data": (with_external("none.bin"), 1, ["missing", "none.bin"]),
    "short external data": (
        with_external("short.bin"),
        1,
        ["too short", "expected 16 bytes", "15 bytes"],
    ),
    "external data above": (with_external("../secret.bin"), 1, ["outside", "../secret.bin"]),
    "external data elsewhere": (with_external("/etc/hostname"), 1, ["outside", "/etc/hostname"]),
    "linked external data": (with_external("link.bin"), 1, ["outside", "symbolic link"]),
    "bad offset": (with_external("short.bin", "many"), 1, ["'w'", "many"]),
    "shapes": (
        over_x(node("MatMul", ["x", "x"], "/head/product")),
        1,
        ["'/head/product' (MatMul)", "got 3 and 2"],
    ),
    "dtypes": (
        model(
            [node("Add", ["x", "i"])], [value("x", [2]), value("i", [2], INT64)], [value("y", None)]
        ),
        1,
        ["'n' (Add)", "f32[2] i64[2]"],
    ),
    "declared dtype": (typed([2], INT64), 1, ["'y'", "'n'", "i64", "f32[2]"]),
}


def folder_with(path: Path, content: bytes | ModelProto) -> list[str]:
    """Write bad.onnx and what lies beside it; return the names."""
    (path.parent / "secret.bin").write_bytes(bytes(16))
    (path / "short.bin").write_bytes(bytes(15))
    (path / "link.bin").symlink_to(path.parent / "secret.bin")
    (path / "bad.onnx").write_bytes(
        content if isinstance(content, bytes) else content.SerializeToString()
    )
    return sorted(os.listdir(path))


def parts_of(text: str) -> list[str]:
    """The labels of a message's four parts."""
    return [
        label
        for label in ("error: ", "  where: ", "  why: ", "  do: ")
        if f"\n{label}" in f"\n{text}"
    ]


def refused(
    arguments: list[str], code: int, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with ``code`` and all four parts, which have all of ``words``."""
    assert main(arguments) == code
    text = capsys.readouterr().err
    assert len(parts_of(text)) == 4, text
    assert "Traceback" not in text
    assert all(word in text for word in words), text


@pytest.mark.parametrize("case", MODELS)
def test_bad_model(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of wrong model, by the command and from Python, is told in the same words with the
    same exit code."""
    content, code, words = MODELS[case]
    folder = tmp_path / "in"
    folder.mkdir()
    before = folder_with(folder, content)
    path = str(folder / "bad.onnx")
    refused(["compile", path, "-o", str(folder / "o.ingot"), "-q"], code, words, capsys)
    with pytest.raises(ingot.IngotError) as caught:
        ingot.compile(path)
    assert caught.value.exit_code == code
    assert len(parts_of(f"error: {caught.value}")) == 4
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("as_bytes", [True, False])
def test_external_data_of_a_model_without_a_folder(
    as_bytes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes have no folder: nothing is read from the current one, whatever lies there."""
    (tmp_path / "weights.bin").write_bytes(bytes(16))
    monkeypatch.chdir(tmp_path)
    built = with_external("weights.bin")
    with pytest.raises(ingot.ModelError, match="has no folder") as caught:
        ingot.compile(built.SerializeToString() if as_bytes else built)
    assert "weights.bin" in caught.value.where


OPTIONS: dict[str, tuple[list[str], int, list[str]]] = {
    "no model": (["none.onnx"], 1, ["no such model file", "none.onnx"]),
    "folder": (["empty"], 1, ["no ONNX graph in the folder", "model.onnx"]),
    "shape of an unknown input": (["--shape", "X=2x3"], 1, ["no input 'X'", "did you mean 'x'?"]),
    "shape against the model": (["--shape", "x=2x4"], 1, ["x=2x4", "expected 3", "got 4"]),
    "shape of another rank": (["--shape", "x=2"], 1, ["expected 2 sizes, got 1"]),
    "shape that overflows": (["--shape", f"x={10**22}x3"], 1, ["expected a size from 0 to"]),
    "shape that is none": (["--shape", "x=2xthree"], 1, ["2xthree"]),
    "shape twice": (["--shape", "x=2x3", "--shape", "x=2x3"], 1, ["given twice", "x=2x3"]),
    "target": (["--target", "x86-64-v5"], 1, ["unknown target", "did you mean 'x86-64-v4'?"]),
    "feature": (
        ["--target", "x86-64-v3+avx512ff"],
        1,
        ["unknown feature", "did you mean 'avx512f'?"],
    ),
    "option": (["--taget", "native"], 1, ["unknown option", "did you mean '--target'?"]),
    "stage": (["--to", "graf"], 1, ["wrong value of --to", "did you mean 'graph'?"]),
    "argument": (["one.onnx", "two.onnx"], 1, ["unexpected argument"]),
    "device": (["--device", "acc=opncl"], 1, ["unknown device kind", "did you mean 'opencl'?"]),
    "place": (["--place", "*=acc"], 1, ["unknown device 'acc'"]),
    "no output folder": (["-o", "none/o.ingot"], 1, ["no such output folder"]),
    "output is a folder": (["-o", "."], 1, ["the output is a folder"]),
    "output is a pipe": (["-o", "pipe"], 1, ["a device or a pipe"]),
    "output is a device": (["-o", "/dev/null"], 1, ["a device or a pipe"]),
    "output is the model": (["-o", "good.onnx"], 1, ["an input of the command"]),
    "text over a device": (["--to", "graph", "-o", "/dev/null"], 1, ["a device or a pipe"]),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_option(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of wrong argument is refused by name, with what was expected and what to do."""
    given, code, words = OPTIONS[case]
    monkeypatch.chdir(tmp_path)
    Path("good.onnx").write_bytes(relu_chain().SerializeToString())
    os.mkfifo("pipe")
    os.mkdir("empty")
    before = sorted(os.listdir())
    arguments = [
        "compile",
        *([] if given[0].endswith("onnx") or given == ["empty"] else ["good.onnx"]),
        *given,
        "-q",
    ]
    refused([*arguments, *([] if "-o" in given else ["-o", "o.ingot"])], code, words, capsys)
    assert sorted(os.listdir()) == before
    assert not os.path.isfile("/dev/null")


def test_no_permission(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that may not be written to is refused before any work, whoever runs the test."""
    (tmp_path / "good.onnx").write_bytes(relu_chain().SerializeToString())

    def readable_only(_: str, mode: int) -> bool:
        return not mode & os.W_OK

    monkeypatch.setattr(os, "access", readable_only)
    arguments = ["compile", str(tmp_path / "good.onnx"), "-o", str(tmp_path / "o.ingot"), "-q"]
    refused(arguments, 1, ["no permission", "not writable"], capsys)


RUNS: dict[str, tuple[list[str], int, list[str]]] = {
    "no bundle": (["none.ingot"], 1, ["none.ingot"]),
    "no archive": (["m.ingot", "--inputs", "m.ingot"], 1, ["cannot read inputs from"]),
    "half an archive": (["m.ingot", "--inputs", "half.npz"], 1, ["cannot read inputs from"]),
    "one array": (["m.ingot", "--inputs", "x.npy"], 1, ["cannot read inputs from", "one array"]),
    "no inputs": (
        ["m.ingot", "--inputs", "none.npz"],
        1,
        ["cannot read inputs from", "No such file"],
    ),
    "open size": (["m.ingot"], 1, ["'x' has no fixed shape", "--inputs"]),
    "executor": (["m.ingot", "--executor", "vmm"], 1, ["did you mean 'vm'?"]),
    "verify": (["m.ingot", "--verify", "ful"], 1, ["did you mean 'full'?"]),
    "outputs over the inputs": (
        ["m.ingot", "--inputs", "x.npz", "--outputs", "x.npz"],
        1,
        ["an input of the command"],
    ),
    "outputs over a device": (
        ["m.ingot", "--inputs", "x.npz", "--outputs", "/dev/null"],
        1,
        ["a device or a pipe"],
    ),
    "misspelled": (
        ["m.ingot", "--inputs", "misspelled.npz"],
        1,
        ["no input 'X'", "did you mean 'x'?"],
    ),
    "misshaped": (
        ["m.ingot", "--inputs", "misshaped.npz"],
        1,
        ["'x'", "float32[n, 3]", "float32[2, 4]"],
    ),
    "mistyped": (
        ["m.ingot", "--inputs", "mistyped.npz"],
        1,
        ["'x'", "float32[n, 3]", "int64[2, 3]"],
    ),
    "missing": (["m.ingot", "--inputs", "empty.npz"], 1, ["missing input 'x'"]),
    "extra": (["m.ingot", "--inputs", "extra.npz"], 1, ["no input 'other'"]),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle and archives, right and wrong."""
    folder = tmp_path_factory.mktemp("runs")
    ingot.compile(relu_chain()).save(folder / "m.ingot")
    x = np.ones((2, 3), np.float32)
    np.save(folder / "x.npy", x)
    np.savez(folder / "x.npz", x=x)
    np.savez(folder / "misspelled.npz", X=x)
    np.savez(folder / "misshaped.npz", x=np.ones((2, 4), np.float32))
    np.savez(folder / "mistyped.npz", x=np.ones((2, 3), np.int64))
    np.savez(folder / "empty.npz")
    np.savez(folder / "extra.npz", x=x, other=x)
    (folder / "half.npz").write_bytes((folder / "x.npz").read_bytes()[:120])
    return folder


@pytest.mark.parametrize("case", RUNS)
def test_bad_run(
    case: str, runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of wrong call of a bundle is refused by name."""
    given, code, words = RUNS[case]
    monkeypatch.chdir(runs)
    before = sorted(os.listdir())
    refused(["run", *given], code, words, capsys)
    assert sorted(os.listdir()) == before
    assert not os.path.isfile("/dev/null")


def test_devices_are_not_replaced_by_the_loader(runs: Path) -> None:
    """The device's own command leaves devices alone, too."""
    command = [
        sys.executable,
        "-m",
        "ingot_runtime",
        "run",
        "m.ingot",
        "--inputs",
        "x.npz",
        "--outputs",
        "/dev/null",
    ]
    done = subprocess.run(
        command, cwd=runs, env=_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert len(parts_of(done.stderr)) == 4
    assert not os.path.isfile("/dev/null")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.mark.broad
def test_interrupt_at_any_time(tmp_path: Path) -> None:
    """Ctrl-C from the first import to the end: no traceback, no part of a file, and a file that is
    there is whole."""
    (tmp_path / "m.onnx").write_bytes(relu_chain().SerializeToString())
    # What pip writes for [project.scripts], taken apart: the print says that the first line of ours
    # has run.
    script = (
        "import sys; from ingot_build_rules.tools.cli import entry;"
        "entry.quiet_interrupts(); print(flush=True); sys.exit(entry.main())"
    )
    command = [
        sys.executable,
        "-c",
        script,
        "compile",
        str(tmp_path / "m.onnx"),
        "-o",
        str(tmp_path / "o.ingot"),
        "-q",
    ]
    for step in range(10):
        process = subprocess.Popen(
            command, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.06 * step)
        process.send_signal(signal.SIGINT)
        _, text = process.communicate(timeout=300)
        assert process.returncode in (0, 130, -signal.SIGINT)
        assert text in ("", "interrupted\n")
        left = set(os.listdir(tmp_path)) - {"m.onnx"}
        assert left <= {"o.ingot"}
        if left:
            ingot_runtime_loads(tmp_path / "o.ingot")
            (tmp_path / "o.ingot").unlink()
    assert (tmp_path / "m.onnx").exists()


def ingot_runtime_loads(path: Path) -> None:
    """The file is a whole bundle."""
    ingot_runtime.load(path).close()


@pytest.mark.sweep(60)
@pytest.mark.parametrize("arguments", ["--help", "identify", "build", "build --json"])
def test_standard_output_that_takes_nothing(tmp_path: Path, arguments: str) -> None:
    """A full disk behind standard output is no bug of ours; one that is closed is none to write
    to."""
    (tmp_path / "ingot.toml").write_text("")
    line = [sys.executable, "-m", "ingot", *arguments.split()]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            line, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert "Traceback" not in done.stderr
    assert "a bug in Ingot" not in done.stderr
    assert done.returncode in (1, 2)
    closed = ["/bin/sh", "-c", 'exec "$@" >&- 2>&-', "sh", *line]
    assert subprocess.run(closed, cwd=tmp_path, check=False).returncode in (0, 1)

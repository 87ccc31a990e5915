"""``ingot compile FILE.ingot-text``: a program is a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingot_runtime
import ingot_runtime.npz as runtime_npz
from ingot_build_rules.tools.cli.main import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "program.ingot-text"
TARGET = ("--target", "x86-64-v3", "-q")


def refused(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    """The error of a command that ends with ``code``, without a traceback."""
    assert main(["compile", *arguments, *TARGET]) == code
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert "Traceback" not in text
    return text


def write_npz(path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """A file of weights by number."""
    with path.open("wb") as file:
        runtime_npz.write_npz(file, arrays)


def test_a_program_becomes_a_bundle(tmp_path: Path) -> None:
    """The example runs on the host and on its device, under the names of its text, and gives what
    numpy gives."""
    random = np.random.default_rng(0)
    weights = random.standard_normal((8, 8)).astype(np.float32)
    write_npz(tmp_path / "w.npz", {"0": weights})
    output = str(tmp_path / "p.ingot")
    arguments = [str(EXAMPLE), "--weights", str(tmp_path / "w.npz"), "-o", output]
    assert main(["compile", *arguments, *TARGET]) == 0
    x = random.standard_normal((3, 8)).astype(np.float32)
    with ingot_runtime.load(output) as session:
        assert [spec.name for spec in session.inputs] == ["x"]
        assert set(session.devices) == {"host", "acc"}
        results = session.run({"x": x})
    hidden = np.maximum(x @ weights, 0)
    np.testing.assert_allclose(results["output0"], x + hidden, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results["output1"], -hidden, rtol=1e-5, atol=1e-6)


def test_stages_of_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    """The graph of a program's plan is printed, with its marks, and every later stage."""
    assert main(["compile", str(EXAMPLE), "--to", "graph", *TARGET]) == 0
    text = capsys.readouterr().out
    assert text.count('on "acc"') == 5
    assert text.count('on "host"') == 1
    assert main(["compile", str(EXAMPLE), "--to", "placed", *TARGET]) == 0
    assert "copy(" in capsys.readouterr().out


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options that the text says already, a stage before it, and what is no program or no graph."""
    path = str(EXAMPLE)
    text = refused(capsys, 1, path, "--device", "a=cpu:1")
    assert "--device with an .ingot-text file" in text
    text = refused(capsys, 1, path, "--to", "imported")
    assert "--to imported with an .ingot-text file" in text
    other = tmp_path / "other.ingot-text"
    other.write_text('device "host" id 0 type "host"\ndef @main(%x: f32[3]) -> f32[3] { %y }\n')
    text = refused(capsys, 1, str(other))
    assert "line 2, column 35" in text
    assert "expected a variable that is bound here, got '%y'" in text
    other.write_text(
        'device "host" id 0 type "host"\ndef @main(%x: f32[3]) -> f32[3] { @main(%x) }\n'
    )
    text = refused(capsys, 3, str(other))
    assert "recursion in a compiled program" in text
    assert "@main(%x) at line 2, column 35" in text
    assert "no such model file" in refused(capsys, 1, str(tmp_path / "none.ingot-text"))


def test_a_constant_of_another_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The constant is named by its number."""
    arguments = [str(EXAMPLE), "-o", str(tmp_path / "p.ingot")]
    write_npz(tmp_path / "w.npz", {"0": np.zeros(3, np.float32)})
    arguments += ["--weights", str(tmp_path / "w.npz")]
    text = refused(capsys, 1, *arguments)
    assert "a constant without its weight" in text
    assert "constant 0" in text


def test_the_reasons_of_the_planner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``why-device`` tells the chain from what the text says to the value, by the program's names;
    a stripped bundle does not tell it."""
    write_npz(tmp_path / "w.npz", {"0": np.eye(8, dtype=np.float32)})
    output = str(tmp_path / "p.ingot")
    command = ["compile", str(EXAMPLE), "--weights", str(tmp_path / "w.npz"), "-o", output, *TARGET]
    assert main(command) == 0
    assert main(["why-device", output, "line 12, column 4"]) == 0
    told = capsys.readouterr().out
    assert (
        "put on acc by the program: acc is asked for by on_device(%hidden) at line 12, column 36; is annotated by "
        "on_device(%hidden) at line 12, column 36; is operand 1 of add(%x, %hidden) at line 12, column 4"
    ) in told
    assert main(["why-device", output, "weight0"]) == 0
    assert "acc is the default device, for constant() at line 6" in capsys.readouterr().out
    assert main([*command, "--strip"]) == 0
    assert main(["why-device", output, "*"]) == 0
    assert "asked for by" not in capsys.readouterr().out


BRANCH = 'if (%c) { on_device(neg(%x), "acc") } else { add(%x, %x) }'
INNER = 'if (%c) { if (%c) { on_device(neg(%x), "acc") } else { %x } } else { add(%x, %x) }'
ON_HOST = ' {device="host"}'
BODIES = {
    "a branch": BRANCH,
    "a branch of a branch": INNER,
    "the other branch": 'if (logical_not(%c)) { add(%x, %x) } else { on_device(neg(%x), "acc") }',
    "a branch whose result is on the device": f'add(on_device({BRANCH}, "acc"), sub(%x, %x))',
    "a function in a branch": (
        'let %f = fn(%y: f32[n, 4]) -> f32[n, 4] { on_device(neg(%y), "acc") };'
        " if (%c) { %f(%x) } else { add(%x, %x) }"
    ),
}
OPEN_DEVICES = {
    "all is given": 'device "acc" id 1 type "cpu" target "cpu:x86-64-v3"',
    "no target": 'device "acc" id 1 type "cpu"',
    "no id": 'device "acc" type "cpu" target "cpu:x86-64-v3"',
    "the kind alone": 'device "acc" type "cpu"',
    "others that nothing uses": (
        'device "acc" id 1 type "cpu"\ndevice "n" type "null"\ndevice "g" type "cuda"'
    ),
    "the kind of a default device": 'device "acc" type "cpu" default',
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("declared", [ON_HOST, ""])
def test_a_device_in_a_branch(tmp_path: Path, body: str, declared: str) -> None:
    """A device that is used inside of control flow alone is in the bundle, and runs there."""
    check_branch(tmp_path, OPEN_DEVICES["all is given"], BODIES[body], declared)


@pytest.mark.parametrize("device", OPEN_DEVICES)
def test_a_device_that_is_not_decided(tmp_path: Path, device: str) -> None:
    """What a device leaves open is completed as ``--device`` completes it; the bundle has it."""
    check_branch(tmp_path, OPEN_DEVICES[device], BODIES["a branch"], ON_HOST)


def check_branch(folder: Path, device: str, body: str, declared: str) -> None:
    """A program that negates ``x`` on the device or doubles it on the host, by ``c``."""
    path = folder / "p.ingot-text"
    path.write_text(
        f"""device "host" id 0 type "host"
        {device}
        def @main(%c{declared}: bool[], %x{declared}: f32[n, 4]){declared} -> f32[n, 4] {{
          {body}
        }}"""
    )
    output = str(folder / "p.ingot")
    assert main(["compile", str(path), "-o", output, *TARGET]) == 0
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with ingot_runtime.load(output) as session:
        assert set(session.devices) == {"host", "acc"}
        for c, expected in ((True, -x), (False, x + x)):
            (result,) = session.run({"c": np.array(c), "x": x}).values()
            np.testing.assert_array_equal(result, expected)


@pytest.mark.sweep(10)
@pytest.mark.parametrize("size", ["8", "n"])
@pytest.mark.parametrize(
    ("name", "dtype"), [("f32", "float32"), ("f64", "float64"), ("i32", "int32")]
)
def test_an_annotated_call_of_a_declared_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: str, name: str, dtype: str
) -> None:
    """The call is on its device in the bundle, its operand is copied there, and so is its result to
    its reader."""
    path, output = tmp_path / "p.ingot-text", str(tmp_path / "p.ingot")
    tensor = f"{name}[{size}, {size}]"
    path.write_text(
        f"""device "host" id 0 type "host"
        device "acc" id 1 type "cpu"
        def @main(%x {{device="host"}}: {tensor}) -> {tensor} {{
          neg(on_device(matmul(%x, %x), "acc"))
        }}"""
    )
    assert main(["compile", str(path), "--to", "placed", *TARGET]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert ['on "acc"' in line for line in lines if "matmul(" in line] == [True]
    assert ['on "host"' in line for line in lines if "neg(" in line] == [True]
    assert main(["compile", str(path), "-o", output, *TARGET]) == 0
    x: np.ndarray[Any, Any] = np.arange(64).reshape(8, 8).astype(np.dtype(dtype)) % 5
    with ingot_runtime.load(output) as session:
        assert set(session.devices) == {"host", "acc"}
        np.testing.assert_array_equal(session.run({"x": x})["output0"], -(x @ x))

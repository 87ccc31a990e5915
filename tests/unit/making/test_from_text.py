"""``ingot compile --from STAGE``: the text of a stage goes in, and gives what the model gives."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot_runtime
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.from_text import placed_options, read_stage
from ingot_build_rules.making.stages.stage_names import names_of
from ingot_build_rules.making.stages.stage_weights import StageWeights
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.text.loops_file import read_groups
from ingot_compiler.ir.graph import Graph
from ingot_runtime.ingot_error import IngotError

MODELS = Path(__file__).parents[2] / "models"
TARGET = ("--target", "x86-64-v3", "-q")
DEVICE = ("--device", "acc=null", "--place", "*1*=acc")


def write(model: Path, to: str, output: Path, *options: str) -> str:
    """Write the text of a stage, and return it."""
    assert main(["compile", str(model), "--to", to, "-o", str(output), *TARGET, *options]) == 0
    return output.read_text()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The error of a command that ends with 1, without a traceback."""
    assert main(["compile", *arguments]) == 1
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert "Traceback" not in text
    return text


@pytest.mark.sweep(60)
@pytest.mark.parametrize(
    ("model", "options"), [("lstm", ()), ("gpt2", ()), ("gpt2", DEVICE), ("detector", ())]
)
def test_a_graph_gives_the_bytes_of_its_model(
    model: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    """With weights and names beside it, nothing is lost: the bundle is the model's, byte for
    byte."""
    source = MODELS / model / "static.onnx"
    text, weights, device = tmp_path / "g.txt", str(tmp_path / "w.npz"), options[:2]
    write(source, "graph", text, *options, "--weights", weights)
    for stage in ("optimized", "fused", "loops", "memory", "program"):
        expected = write(source, stage, tmp_path / "a.txt", *options)
        assert write(text, stage, tmp_path / "b.txt", "--from", "graph", *device) == expected
    direct, again = str(tmp_path / "a.ingot"), str(tmp_path / "b.ingot")
    assert main(["compile", str(source), "-o", direct, *TARGET, *options]) == 0
    arguments = ["--from", "graph", "--weights", weights, *TARGET, *device]
    assert main(["compile", str(text), "-o", again, *arguments]) == 0
    if not options:  # which nodes were marked stands in the record of the options
        assert Path(again).read_bytes() == Path(direct).read_bytes()
    assert run(again) == run(direct)


def run(path: str) -> list[bytes]:
    """The outputs of a bundle for ones."""
    with ingot_runtime.load(path) as session:
        feed = {
            spec.name: np.ones([int(size) for size in spec.shape], spec.dtype)
            for spec in session.inputs
        }
        return [array.tobytes() for array in session.run(feed).values()]


@pytest.mark.broad
@pytest.mark.parametrize(("model", "options"), [("gpt2", ()), ("gpt2", DEVICE)])
def test_a_placed_graph_gives_the_program_of_its_model(
    model: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    """The device table is in the text; with the weights beside it, a bundle that gives the model's
    bits."""
    source = MODELS / model / "static.onnx"
    text, weights = tmp_path / "p.txt", str(tmp_path / "w.npz")
    write(source, "placed", text, *options, "--weights", weights)
    for stage in ("placed", "fused", "loops", "memory", "program"):
        expected = write(source, stage, tmp_path / "a.txt", *options)
        assert write(text, stage, tmp_path / "b.txt", "--from", "placed") == expected
    direct, again = str(tmp_path / "a.ingot"), str(tmp_path / "b.ingot")
    assert main(["compile", str(source), "-o", direct, *TARGET, *options]) == 0
    assert (
        main(["compile", str(text), "-o", again, "--from", "placed", "--weights", weights, *TARGET])
        == 0
    )
    assert run(again) == run(direct)


def test_a_graph_without_a_file_of_weights_has_plain_names(tmp_path: Path) -> None:
    """A graph of no constants becomes a bundle as it is."""
    text = tmp_path / "sum.txt"
    text.write_text(
        "graph(%0: f32[2], %1: f32[2]) {\n  %2 = add(%0, %1) : f32[2] @[3]\n  return %2\n}\n"
    )
    assert (
        main(["compile", str(text), "--from", "graph", "-o", str(tmp_path / "sum.ingot"), "-q"])
        == 0
    )
    with ingot_runtime.load(str(tmp_path / "sum.ingot")) as session:
        result = session.run({"input0": np.ones(2, np.float32), "input1": np.ones(2, np.float32)})
        assert result["output0"].tolist() == [2, 2]


@pytest.mark.broad
def test_loops_give_the_kernels_of_their_model(tmp_path: Path) -> None:
    """Text, symbols, assembly and object of kernels are those of the model."""
    source, text = MODELS / "lstm" / "static.onnx", tmp_path / "l.txt"
    whole = write(source, "loops", text)
    kernels = [line for line in whole.splitlines(keepends=True) if not line.startswith("#")]
    assert write_loops(text, "loops") == "".join(kernels)
    sizes = {
        line.split(": ")[0]: line.split(", ")[-1]
        for line in write(source, "library", tmp_path / "a").splitlines()[1:]
    }
    found = {
        line.split(": ")[0]: line.split(": ")[-1]
        for line in write_loops(text, "library").splitlines()[1:]
    }
    assert found == sizes
    assembly = [
        line
        for line in write(source, "assembly", tmp_path / "a").splitlines()
        if not line.startswith("# nodes")
    ]
    assert write_loops(text, "assembly").splitlines() == assembly
    one = tmp_path / "one.txt"
    one.write_text("".join(kernels[: kernels.index("}\n") + 1]))
    assert main(["compile", str(one), "--from", "loops", "-o", str(tmp_path / "k.o"), "-q"]) == 0
    content = (tmp_path / "k.o").read_bytes()
    assert content[:4] == b"\x7fELF"
    assert f"{len(content)} bytes" in write_loops(one, "library")


def write_loops(text: Path, stage: str) -> str:
    """A text of kernels; their targets are in the text."""
    output = text.with_suffix(".out")
    assert (
        main(["compile", str(text), "--from", "loops", "--to", stage, "-o", str(output), "-q"]) == 0
    )
    return output.read_text()


@pytest.mark.parametrize(
    ("stage", "text", "words"),
    [
        (
            "graph",
            "graph(%0: f32[2]) {\n  %1 = ad(%0) : f32[2]\n  return %1\n}\n",
            ("line 2, column 8", "a core op"),
        ),
        ("graph", "graph() {\n  return\n", ("line 2, column 9", "got the end of the text")),
        ("placed", "graph() {\n  return\n}\n", ("line 1, column 1", "the first device")),
        ("loops", "# nothing\n", ("line 1, column 1", 'expected "kernel" or "group"')),
        (
            "loops",
            'target "x86-65"\nkernel() scratch 0 { parallel i in 1 grain 1 { } }\n',
            ("line 1, column 8", "x86-65"),
        ),
        (
            "loops",
            "kernel() scratch 0 {\n  parallel i in n grain 1 { }\n}\n",
            ("line 1, column 1", "symbols are bound before"),
        ),
        ("graph", "\xff", ("not a text", "UTF-8")),
        (
            "graph",
            'graph() {\n  %0 = constant() {dtype="f32", shape=[1], weight="w"} : f32[1]\n  return %0\n}\n',
            ("a constant without a number", "got 'w'"),
        ),
        (
            "graph",
            "graph(%0: f32[2]) {\n  %1 = abs(%0) : f32[2] @[99999999]\n  return %1\n}\n",
            ("at most 1048576 nodes",),
        ),
        (
            "placed",
            'device 0: "host" type "host"\ndevice 1: "g" type "gpu"\ngraph() {\n  return\n}\n',
            ("unknown device kind 'gpu'",),
        ),
    ],
)
def test_wrong_texts_end_with_1(
    stage: str,
    text: str,
    words: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A text that does not parse or is not valid: line, column, rule; never a traceback."""
    path = tmp_path / "t.txt"
    path.write_bytes(text.encode("latin-1"))
    told = refused(capsys, str(path), "--from", stage, "--to", "loops", "-q")
    for word in words:
        assert word in told


def test_options_that_do_not_go_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a text says already, earlier stages, and files of weights that belong to nothing are
    refused."""
    model, text = str(MODELS / "lstm" / "static.onnx"), str(tmp_path / "t.txt")
    for stage in ("graph", "placed", "loops"):
        for option in (("--shape", "x=1"), ("--place", "a=host")):
            assert f"{option[0]} with --from {stage}" in refused(
                capsys, text, "--from", stage, "--to", "loops", *option
            )
    for option in (("--device", "a=null"), ("--weights", "w.npz")):
        assert f"{option[0]} with --from loops" in refused(
            capsys, text, "--from", "loops", "--to", "loops", *option
        )
    assert "--device with --from placed" in refused(
        capsys, text, "--from", "placed", "--to", "loops", "--device", "a=null"
    )
    assert "--to graph with --from placed" in refused(
        capsys, text, "--from", "placed", "--to", "graph"
    )
    assert "--to fused with --from loops" in refused(
        capsys, text, "--from", "loops", "--to", "fused"
    )
    assert "weights without a text" in refused(capsys, model, "--to", "fused", "--weights", "w.npz")
    assert "expected one of graph, placed, loops" in refused(
        capsys, text, "--from", "fused", "--to", "loops"
    )


def test_weights_of_another_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Constants that are missing or of another size, names that do not fit, arrays without a
    number: refused by name."""
    text, weights, out = tmp_path / "g.txt", tmp_path / "w.npz", str(tmp_path / "o.ingot")
    write(MODELS / "lstm" / "static.onnx", "graph", text, "--weights", str(weights))
    with np.load(weights) as file:
        arrays = {name: file[name] for name in file.files}
    command = (str(text), "--from", "graph", "-o", out, "-q")
    assert "a constant without its weight" in refused(capsys, *command)
    first = next(
        name for name in arrays if name != "names" and f'weight="{name}"' in text.read_text()
    )
    wrong: list[tuple[dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]], str]] = [
        ({**arrays, first: np.zeros(3, np.int8)}, f"constant {first}"),
        ({name: array for name, array in arrays.items() if name != first}, "got 0"),
        ({**arrays, "x": np.zeros(1)}, "not a file of weights"),
        ({**arrays, "9999999999": np.zeros(1)}, "not a file of weights"),
        ({**arrays, "names": np.frombuffer(b"[1", np.uint8)}, "expected JSON"),
        ({**arrays, "names": np.frombuffer(arrays["names"].tobytes().replace(b'"inputs": [', b'"inputs": ["more", '), np.uint8)}, "names of another graph"),
        ({**arrays, "names": np.frombuffer(arrays["names"].tobytes().replace(b'"nodes": [', b'"nodes": [1, '), np.uint8)}, "names of another graph"),
    ]  # fmt: skip
    for changed, words in wrong:
        path = tmp_path / "wrong.npz"
        np.savez(path, **changed)  # type: ignore[arg-type]  # names of arrays are no options of savez
        assert words in refused(capsys, *command, "--weights", str(path))
    assert not Path(out).exists()


@functools.cache
def _texts(folder: str) -> dict[str, str]:
    model = MODELS / "lstm" / "static.onnx"
    return {
        stage: write(model, stage, Path(folder) / stage, *DEVICE)
        for stage in ("graph", "placed", "loops")
    }


@pytest.mark.sweep(4)
@pytest.mark.parametrize("stage", ["graph", "placed", "loops"])
@given(data=st.data())
@settings(max_examples=40)
def test_mutants_of_a_real_text_are_refused_cleanly(
    stage: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A changed text is a stage, or an IngotError; nothing else."""
    folder = tmp_path_factory.getbasetemp()
    text = _texts(str(folder))[stage]
    for _ in range(data.draw(st.integers(1, 3))):
        first = data.draw(st.integers(0, len(text)))
        last = data.draw(st.integers(first, min(len(text), first + 20)))
        pieces = ["{", ")", "-1", "%0", "0", "s0", '"', "4294967296", text[first:last] * 2]
        text = text[:first] + data.draw(st.sampled_from(pieces)) + text[last:]
    path = folder / "mutant.txt"
    path.write_text(text)
    told: list[str] = []
    try:
        if stage == "loops":
            assert read_groups(text, ("x86-64-v3",))
        else:
            found = read_stage(stage, str(path))
            graph = found if isinstance(found, Graph) else found.graph
            assert names_of(graph, StageWeights(), "t").model == "t"
            if not isinstance(found, Graph):
                assert placed_options(found, make_options(("x86-64-v3",))).targets
    except IngotError as error:
        told.append(str(error))
    assert all(told)

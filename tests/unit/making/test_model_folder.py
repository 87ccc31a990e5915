"""Folders of ONNX graphs, as ``optimum`` leaves them: one graph, all graphs, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx.external_data_helper import (
    convert_model_to_external_data,
    write_external_data_tensors,
)
from tests.hostile.model_builder import relu_chain

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main

X = np.ones((2, 3), np.float32)
Y = X @ np.arange(3 * 512, dtype=np.float32).reshape(3, 512)
DECODERS = ("decoder_model", "decoder_with_past_model")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12345\n"


def export(folder: Path, *names: str, encoder_decoder: bool = False) -> Path:
    """Write the graphs with their weights in files beside them, and a config.json."""
    folder.mkdir(exist_ok=True)
    for name in names:
        path = folder / f"{name}.onnx"
        path.parent.mkdir(exist_ok=True)
        model = relu_chain()
        convert_model_to_external_data(model, location=f"{path.name}_data", size_threshold=0)
        write_external_data_tensors(model, str(path.parent))
        path.write_bytes(model.SerializeToString())
    config = {"model_type": "t5", "is_encoder_decoder": encoder_decoder}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def refused(folder: Path, graph: str | None = None) -> ingot.UserError:
    """Compile a folder, which must be refused."""
    with pytest.raises(ingot.UserError) as caught:
        ingot.compile(folder, graph=graph, targets="x86-64-v2")
    return caught.value


def refused_all(folder: Path) -> ingot.UserError:
    """Compile all of a folder, which must be refused."""
    with pytest.raises(ingot.UserError) as caught:
        ingot.compile_folder(folder, targets="x86-64-v2")
    return caught.value


def answer(bundle: ingot.Bundle) -> object:
    """What a graph gives for ``X``."""
    with ingot_runtime.load(bundle.to_bytes()) as session:
        return session.run({"x": X})["y"]


def test_a_folder_of_one_graph_is_that_graph(tmp_path: Path) -> None:
    """With the weights beside it."""
    bundle = ingot.compile(export(tmp_path / "bert", "model"), targets="x86-64-v2")
    np.testing.assert_array_equal(answer(bundle), Y)


def test_several_graphs(tmp_path: Path) -> None:
    """One by name, or all of them; in folders below, too."""
    folder = export(tmp_path / "t5", "encoder_model", *DECODERS, encoder_decoder=True)
    one = ingot.compile(folder, graph="decoder_model", targets="x86-64-v2")
    bundles = ingot.compile_folder(folder, targets="x86-64-v2")
    assert list(bundles) == ["decoder_model", "decoder_with_past_model", "encoder_model"]
    assert {bundle.digest for bundle in bundles.values()} == {one.digest}
    np.testing.assert_array_equal(answer(one), Y)
    parts = export(tmp_path / "diffusion", "unet/model", "vae_decoder/model")
    assert list(ingot.compile_folder(parts, targets="x86-64-v2")) == [
        "unet/model",
        "vae_decoder/model",
    ]


def test_which_graph_must_be_said(tmp_path: Path) -> None:
    """Where there are several, they are listed; a wrong name is suggested."""
    folder = export(tmp_path / "t5", "encoder_model", *DECODERS)
    error = refused(folder)
    assert error.what == "a folder of several graphs"
    assert error.why == "it has 3: decoder_model, decoder_with_past_model, encoder_model"
    assert error.do == "name one of them, or compile all"
    error = refused(folder, "decodr_model")
    assert error.what == "no graph 'decodr_model' in the folder"
    assert error.do == "did you mean 'decoder_model'?"


def test_a_folder_without_a_graph(tmp_path: Path) -> None:
    """What is there is listed, and how to export."""
    error = refused(export(tmp_path / "bert"))
    assert error.what == "no ONNX graph in the folder"
    assert error.why.endswith("got config.json")
    assert "optimum-cli export onnx" in error.do


@pytest.mark.parametrize(
    ("there", "missing"), [(("encoder_model",), "decoder"), (DECODERS, "encoder")]
)
def test_a_folder_that_lacks_a_graph(tmp_path: Path, there: tuple[str, ...], missing: str) -> None:
    """By the folder's own word: its model has an encoder and a decoder. What is there can be
    compiled by name."""
    folder = export(tmp_path / "t5", *there, encoder_decoder=True)
    error = refused_all(folder)
    assert error.what == f"the folder lacks {missing}_model.onnx"
    assert error.why == f"config.json tells of an encoder and a decoder, got {', '.join(there)}"
    assert "optimum-cli export onnx" in error.do
    assert ingot.compile(folder, graph=there[0], targets="x86-64-v2").digest


def test_a_folder_that_lacks_weights(tmp_path: Path) -> None:
    """The graph and the file are named."""
    folder = export(tmp_path / "t5", "encoder_model", *DECODERS, encoder_decoder=True)
    (folder / "decoder_with_past_model.onnx_data").unlink()
    error = refused_all(folder)
    assert error.what == "external data is missing"
    assert error.where == (
        "graph decoder_with_past_model, location 'decoder_with_past_model.onnx_data'"
    )


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx_data"])
def test_a_file_that_was_not_downloaded(tmp_path: Path, name: str) -> None:
    """What git-lfs leaves in the place of a large file is told as that."""
    folder = export(tmp_path / "bert", "model")
    (folder / name).write_text(POINTER)
    for error in (refused(folder), refused_all(folder)):
        assert error.what == "a file is not downloaded"
        assert error.where == str(folder / name)
        assert error.do == "run git lfs pull"


def test_a_damaged_config(tmp_path: Path) -> None:
    """It decides what is missing, so it must be readable; without one, the graphs are all there
    is."""
    folder = export(tmp_path / "bert", "model")
    (folder / "config.json").write_text('{"is_encoder_')
    error = refused_all(folder)
    assert error.what == "config.json is damaged"
    assert error.where == str(folder / "config.json")
    (folder / "config.json").unlink()
    assert list(ingot.compile_folder(folder, targets="x86-64-v2")) == ["model"]


def test_no_folder(tmp_path: Path) -> None:
    """A file is no folder, and a graph is one of a folder."""
    error = refused_all(tmp_path / "none")
    assert error.what == "the model's folder cannot be read"
    with pytest.raises(ingot.UserError, match="graph with another model"):
        ingot.compile(relu_chain(), graph="model")


def command(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """Run ``ingot compile``; return its exit code and what it wrote."""
    code = main(["compile", *map(str, words), "--target", "x86-64-v2", "-q"])
    written = capsys.readouterr()
    return code, written.out, written.err


def test_the_command_makes_a_bundle_of_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder that it makes; with ``--json`` a line for each; the bytes are those of Python."""
    folder = export(tmp_path / "t5", "encoder_model", "unet/model")
    code, out, _ = command(capsys, folder, "-o", tmp_path / "made", "--json")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["output"] for line in lines] == [
        str(tmp_path / "made" / name) for name in ("encoder_model.ingot", "unet/model.ingot")
    ]
    expected = ingot.compile(folder, graph="unet/model", targets="x86-64-v2")
    assert (tmp_path / "made/unet/model.ingot").read_bytes() == expected.to_bytes()
    assert command(capsys, folder, "-o", tmp_path / "one.ingot", "--graph", "unet/model")[0] == 0
    assert (tmp_path / "one.ingot").read_bytes() == expected.to_bytes()


def test_the_command_names_the_bundle_of_the_only_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its folder."""
    monkeypatch.chdir(tmp_path)
    export(tmp_path / "bert", "model")
    assert command(capsys, "bert")[0] == 0
    assert (tmp_path / "bert.ingot").is_file()


@pytest.mark.parametrize(
    "words",
    [(), ("-o", "all.ingot"), ("-o", "-"), ("-o", "d", "--depfile", "d.d"), ("--to", "graph")],
    ids=" ".join,
)
def test_the_command_asks_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """What is about one graph needs the name of one; nothing is written."""
    folder = export(tmp_path / "t5", "encoder_model", "decoder_model")
    code, out, error = command(capsys, folder, *words)
    assert (code, out) == (1, "")
    assert "a folder of several graphs" in error
    assert "--graph decoder_model" in error
    assert "-o DIR" in error


def test_the_command_names_the_graph_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the place in it; and ``--graph`` belongs to folders."""
    folder = export(tmp_path / "t5", "encoder_model", "decoder_model")
    (folder / "decoder_model.onnx_data").unlink()
    code, _, error = command(capsys, folder, "-o", tmp_path / "made")
    assert code == 1
    assert "where: graph decoder_model, location 'decoder_model.onnx_data'" in error
    code, _, error = command(capsys, folder / "encoder_model.onnx", "--graph", "encoder_model")
    assert code == 1
    assert "leave --graph out" in error

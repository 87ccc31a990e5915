"""Folders of ONNX graphs, as ``optimum`` leaves them: one graph, all graphs, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.hostile.model_builder import relu_chain

import ingot
import ingot_runtime

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
        onnx.save(
            relu_chain(),
            path,
            save_as_external_data=True,
            location=f"{path.name}_data",
            size_threshold=0,
        )
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

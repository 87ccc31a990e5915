"""The example of a decoder: numbers and text, the most probable tokens and those of chance."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.models.genai_decoder import GenaiSizes, genai_decoder
from tests.tidy.source import ROOT
from tokenizers import Tokenizer
from tokenizers.models import BPE

import ingot
import ingot_runtime

EXAMPLE = ROOT / "examples" / "llm"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llm")
    _run("make_decoder.py", folder / "tiny.onnx", len(LETTERS))
    ingot.compile(folder / "tiny.onnx", targets=["x86-64-v3"]).save(folder / "tiny.ingot")
    return folder / "tiny.ingot"


def _run(script: str, *arguments: object) -> str:
    command = [sys.executable, str(EXAMPLE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _greedy(bundle: Path, tokens: list[int], count: int) -> list[int]:
    """The most probable tokens by calls that are given everything from the beginning."""
    session = ingot_runtime.load(bundle)
    tokens = list(tokens)
    for _ in range(count):
        caches = {name: np.zeros((1, 2, 0, 16), np.float32) for name in session.states}
        positions = np.arange(len(tokens))[None]
        inputs = {"input_ids": np.array([tokens]), "attention_mask": np.ones_like(positions)}
        result = session.run({**inputs, "position_ids": positions, **caches})
        tokens.append(int(result["logits"][0, -1].argmax()))
    return tokens[-count:]


def _refused(*arguments: object) -> str:
    command = [sys.executable, str(EXAMPLE / "generate.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.broad
def test_bad_input(bundle: Path) -> None:
    """No bundle, no prompt and no numbers are told without a traceback."""
    assert "cannot open 'none.ingot'" in _refused("none.ingot", "--ids", "1,2")
    assert "give the prompt: --ids" in _refused(bundle, "a text without a tokenizer")
    assert "invalid numbers value" in _refused(bundle, "--ids", "one")


@pytest.mark.broad
def test_numbers_are_those_of_calls_without_caches(bundle: Path) -> None:
    """The loop that keeps caches chooses what one without them chooses."""
    printed = _run("generate.py", bundle, "--ids", "5,6,7", "--count", 12)
    assert [int(item) for item in printed.split()] == _greedy(bundle, [5, 6, 7], 12)


@pytest.mark.broad
def test_chance_is_that_of_its_seed(bundle: Path) -> None:
    """One seed gives the same tokens each time, another one others."""
    first, again, other = (
        _run("generate.py", bundle, "--ids", "1", "--temperature", 5, "--seed", seed)
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first.split()) == 32


@pytest.mark.broad
def test_text_by_a_real_tokenizer(bundle: Path, tmp_path: Path) -> None:
    """The prompt is shown, and behind it the text of the tokens."""
    tokenizer = Tokenizer(BPE({letter: at for at, letter in enumerate(LETTERS)}, []))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    printed = _run(
        "generate.py", bundle, "cab", "--tokenizer", tmp_path / "tokenizer.json", "--count", 5
    )
    expected = tokenizer.decode([2, 0, 1, *_greedy(bundle, [2, 0, 1], 5)])
    assert printed == f"{expected}\n"


def _of_window(model: ModelProto, *, is_own_size: bool) -> ModelProto:
    """A decoder whose first layer has a cache of the size of its window, or of all keys."""
    node = next(node for node in model.graph.node if node.op_type == "GroupQueryAttention")
    node.attribute.append(helper.make_attribute("sliding_window_cache", int(is_own_size)))
    own = {*node.input[3:5], *node.output[1:3]} if is_own_size else set[str]()
    for value in (*model.graph.input, *model.graph.output):
        if value.name in own:
            value.type.tensor_type.shape.dim[2].dim_param = "window"
    return model


@pytest.mark.broad
def test_a_cache_of_the_size_of_the_window(tmp_path: Path) -> None:
    """A decoder with such a cache chooses what one with whole caches chooses."""
    printed: list[str] = []
    for is_own_size in (False, True):
        model = _of_window(genai_decoder(GenaiSizes(window=4)), is_own_size=is_own_size)
        bundle = tmp_path / f"{is_own_size}.ingot"
        ingot.compile(model, targets=["x86-64-v3"]).save(bundle)
        assert len(ingot_runtime.load(bundle).states) == 4
        size = ("--size", "window=6") if is_own_size else ()
        printed.append(_run("generate.py", bundle, "--ids", "5,6,7,8,9,1", *size))
    assert printed[0] == printed[1]
    assert len(set(printed[0].split())) > 1

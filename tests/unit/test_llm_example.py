"""The example of a decoder: numbers and text, the most probable tokens and those of chance."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
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


def test_chance_is_that_of_its_seed(bundle: Path) -> None:
    """One seed gives the same tokens each time, another one others."""
    first, again, other = (
        _run("generate.py", bundle, "--ids", "1", "--temperature", 5, "--seed", seed)
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first.split()) == 32


def test_text_by_a_real_tokenizer(bundle: Path, tmp_path: Path) -> None:
    """The prompt is shown, and behind it the text of the tokens."""
    tokenizer = Tokenizer(BPE({letter: at for at, letter in enumerate(LETTERS)}, []))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    printed = _run(
        "generate.py", bundle, "cab", "--tokenizer", tmp_path / "tokenizer.json", "--count", 5
    )
    expected = tokenizer.decode([2, 0, 1, *_greedy(bundle, [2, 0, 1], 5)])
    assert printed == f"{expected}\n"

"""Exports of decoders with caches: right at ten lengths, and as sequences the bits of calls that
are given all caches.

The expected outputs are PyTorch's (``tests/models/make_decoders.py``), those of models in the form
of the GenAI builder ONNX Runtime's (``make_genai_decoders.py``). One of each exporter and of that
form are kept; the others are made by the interpreter that INGOT_PEER_PYTHON names.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.c_loader import CBundle, options
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import assert_close

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_runtime.executor.session import Session

MODELS = Path(__file__).parents[2] / "models"
KEPT = ("llama.torchscript", "qwen3.dynamo", "qwen3.genai")
ARCHITECTURES = (
    "llama",
    "llama3",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3",
    "phi",
    "phi3",
    "gpt2",
    "mistral",
    "mixtral",
    "qwen2_moe",
    "whisper",
    "t5",
)
GENAI = ("llama", "qwen2", "qwen3", "mistral", "phi3", "gemma2", "smollm3")
MADE = [
    *(f"{name}.{how}" for name in ARCHITECTURES for how in ("torchscript", "dynamo")),
    *(f"{name}.genai" for name in GENAI),
]
RELATIVE_ERROR_MAX = 1e-4
CASE_COUNT, STATE_COUNT, LAYERS = 10, 4, 2
STEPS = (5, 1, 1, 3, 60, 1, 1)


def load(folder: Path, name: str, into: Path) -> Session:
    """Compile an export, and load it."""
    ingot.compile(folder / f"{name}.onnx").save(into / "m.ingot")
    return ingot_runtime.load(into / "m.ingot")


def check_cases(session: Session, cases: Path) -> None:
    """Every call gives PyTorch's outputs, caches too."""
    with np.load(cases) as file:
        arrays = {name: file[name] for name in file.files}
    for number in range(CASE_COUNT):
        feed, expected = (
            {
                key.split("/", 2)[2]: array
                for key, array in arrays.items()
                if key.startswith(f"{number}/{side}/")
            }
            for side in ("in", "out")
        )
        result = session.run(feed)
        assert sorted(result) == sorted(expected)
        for name, array in expected.items():
            assert_close(array, result[name], RELATIVE_ERROR_MAX)


def check_sequence(session: Session, path: Path) -> None:
    """Prompts and tokens of a sequence give what calls with all caches give, bit by bit; the loader
    in C, too."""
    with CBundle(path, options(states=0)) as in_c:
        check_steps(session, in_c)


def check_steps(session: Session, in_c: CBundle) -> None:
    """Make each call in all ways."""
    rng = np.random.default_rng(0)
    assert len(session.states) == STATE_COUNT
    fixed: dict[str, Array] = {
        spec.name: rng.standard_normal((1, 4, 6, 16)).astype(np.float32)
        for spec in session.inputs
        if ".encoder." in spec.name
    }
    caches: dict[str, Array] = {
        spec.name: np.zeros((1, int(spec.shape[1]), 0, int(spec.shape[3])), np.float32)
        for spec in session.inputs
        if spec.name in session.states
    }
    names = {spec.name for spec in session.inputs}
    sequence, past = session.sequence(), 0
    for new in STEPS:
        whole = past + new
        ids: dict[str, Array] = {
            "input_ids": rng.integers(3, 48, (1, new)),
            "attention_mask": np.ones((1, whole), np.int64),
            "position_ids": np.arange(past, whole)[None],
        }
        feed = {name: array for name, array in ids.items() if name in names} | fixed
        expected, result = session.run(feed | caches), sequence.run(feed)
        assert (result["logits"] == expected["logits"]).all()
        found = in_c.run(feed)
        assert all(found[key].tobytes() == array.tobytes() for key, array in expected.items())
        caches = {given: expected[made] for given, made in session.states.items()}
        past = whole
    for name, cache in caches.items():
        assert (sequence.state(name) == cache).all()


@pytest.mark.broad
@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", KEPT)
def test_kept_exports(name: str, tmp_path: Path) -> None:
    """Grouped queries, rotary positions, both exporters' ways of writing attention and masks."""
    session = load(MODELS / "decoders", name, tmp_path)
    (launches,) = describe_bundle(tmp_path / "m.ingot")["debug"]["launches"].values()
    kinds = [launch["kind"] for launch in launches]
    assert kinds.count("attention") == 2 * LAYERS  # for one query, and for several
    check_cases(session, MODELS / "decoders" / f"{name}.npz")
    check_sequence(session, tmp_path / "m.ingot")


@pytest.mark.contrib
@pytest.mark.parametrize("name", MADE)
def test_exports_made_now(name: str, tmp_path: Path) -> None:
    """Windows, experts, caps, biases, cross attention: all architectures by both exporters; those
    that the GenAI builder tells apart by its form."""
    script = "make_genai_decoders.py" if name.endswith(".genai") else "make_decoders.py"
    command = [os.environ["INGOT_PEER_PYTHON"], str(MODELS / script), str(tmp_path), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    session = load(tmp_path, name, tmp_path)
    check_cases(session, tmp_path / f"{name}.npz")
    check_sequence(session, tmp_path / "m.ingot")

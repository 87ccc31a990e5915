"""Decoders that the builder of ONNX Runtime GenAI wrote: ONNX Runtime's answers in ten calls, and as
sequences the bits of calls that are given all states.

The files are those of ``tests/models/make_builder_decoders.py``; with INGOT_PEER_PYTHON, they are
made anew.
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
from ingot_runtime.executor.session import Session

MODELS = Path(__file__).parents[2] / "models"
STATES = {
    "gpt_oss": {f"past_key_values.{layer}.{kind}" for layer in (0, 1) for kind in ("key", "value")},
    "qwen3_5_moe": {
        "past.0.conv",
        "past.0.recurrent",
        *(f"past_key_values.1.{kind}" for kind in ("key", "value")),
    },
}
WINDOW, CALLS = 8, 10
STEPS = (5, 1, 1, 9, 1)
RELATIVE_ERROR_MAX = 1e-5


def _session(folder: Path, name: str, into: Path) -> Session:
    ingot.compile(folder / f"{name}.builder.onnx").save(into / "m.ingot")
    return ingot_runtime.load(into / "m.ingot")


def _check_calls(session: Session, name: str, cases: Path) -> None:
    """Rows of a window behind the last position are nobody's promise."""
    with np.load(cases) as file:
        arrays = {key: file[key] for key in file.files}
    for number in range(CALLS):
        feed, expected = (
            {
                key.split("/", 2)[2]: array
                for key, array in arrays.items()
                if key.startswith(f"{number}/{side}/")
            }
            for side in ("in", "out")
        )
        result, total = session.run(feed), feed["attention_mask"].shape[1]
        assert sorted(result) == sorted(expected)
        for key, array in expected.items():
            is_window = name == "gpt_oss" and key.startswith("present.0.")
            rows = slice(min(total, WINDOW)) if is_window else slice(None)
            assert_close(array[:, :, rows], result[key][:, :, rows], RELATIVE_ERROR_MAX)


def _inputs(name: str, past: int, new: int, batch: int) -> dict[str, Array]:
    rng, whole = np.random.default_rng([past, new]), past + new
    ids: dict[str, Array] = {
        "input_ids": rng.integers(3, 90, (batch, new)),
        "attention_mask": np.ones((batch, whole), np.int64),
    }
    if name == "qwen3_5_moe":
        ids["position_ids"] = np.broadcast_to(np.arange(past, whole), (3, batch, new)).copy()
    return ids


def _check_sequence(session: Session, name: str, path: Path) -> None:
    assert set(session.states) == STATES[name]
    rows = {"past_sliding_length": WINDOW} if name == "gpt_oss" else {}
    sequence, past = session.sequence(sizes=rows), 0
    first = sequence.run(_inputs(name, 0, STEPS[0], 1))
    states = {given: sequence.state(given) for given in session.states}
    past = STEPS[0]
    with CBundle(path, options(states=0)) as unsized:
        symbols = unsized.info.symbols[: unsized.info.symbol_count]
    sizes = [rows.get(symbol.decode(), -1) for symbol in symbols]
    with CBundle(path, options(states=0, sizes=sizes)) as in_c:
        found = in_c.run(_inputs(name, 0, STEPS[0], 1))
        assert found["logits"].tobytes() == first["logits"].tobytes()
        for new in STEPS[1:]:
            feed = _inputs(name, past, new, 1)
            expected, result = session.run({**feed, **states}), sequence.run(feed)
            found, past = in_c.run(feed), past + new
            assert result["logits"].tobytes() == expected["logits"].tobytes()
            for key, array in expected.items():
                assert found[key].tobytes() == array.tobytes(), key
            states = {given: expected[made] for given, made in session.states.items()}
            assert len(sequence) == past
    for given, array in states.items():
        assert sequence.state(given).tobytes() == array.tobytes()


@pytest.mark.broad
@pytest.mark.parametrize("name", STATES)
def test_kept_files(name: str, tmp_path: Path) -> None:
    """Experts, sinks, windows, linear attention, rotary positions of three streams."""
    session = _session(MODELS / "decoders", name, tmp_path)
    _check_calls(session, name, MODELS / "decoders" / f"{name}.builder.npz")
    _check_sequence(session, name, tmp_path / "m.ingot")


@pytest.mark.contrib
@pytest.mark.parametrize("name", STATES)
def test_files_made_now(name: str, tmp_path: Path) -> None:
    """What the installed builder writes."""
    script = MODELS / "make_builder_decoders.py"
    command = [os.environ["INGOT_PEER_PYTHON"], str(script), str(tmp_path), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    session = _session(tmp_path, name, tmp_path)
    _check_calls(session, name, tmp_path / f"{name}.builder.npz")
    _check_sequence(session, name, tmp_path / "m.ingot")

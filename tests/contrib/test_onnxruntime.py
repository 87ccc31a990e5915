"""What ONNX Runtime itself gives for the cases, where an interpreter has it
(``INGOT_PEER_PYTHON=PYTHON pytest -m contrib``)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.contrib_case import Array, ContribCase
from tests.contrib.test_contrib_ops import CASES

import ingot
import ingot_runtime

PEER = Path(__file__).parent / "peer.py"
COMPARED = {name: case for name, case in CASES.items() if not case.is_numpy_only}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models, inputs, and what ONNX Runtime gives for them."""
    folder = tmp_path_factory.mktemp("contrib")
    for number, case in enumerate(COMPARED.values()):
        (folder / f"{number}.onnx").write_bytes(case.model().SerializeToString())
        np.savez(folder / f"{number}.npz", allow_pickle=False, **_named(case))
    peer = os.environ["INGOT_PEER_PYTHON"]
    subprocess.run([peer, str(PEER), str(folder)], check=True, stdout=sys.stderr)
    return folder


def _named(case: ContribCase) -> dict[str, Array]:
    names = [value.name for value in case.model().graph.input]
    return dict(zip(names, case.inputs(), strict=True))


@pytest.mark.contrib
@pytest.mark.parametrize("name", COMPARED)
def test_a_bundle_gives_what_onnxruntime_gives(name: str, answers: Path, tmp_path: Path) -> None:
    """Machine code, numpy and ONNX Runtime agree."""
    case, number = COMPARED[name], list(COMPARED).index(name)
    error = answers / f"{number}.error"
    assert not error.exists(), error.read_text()
    found = np.load(answers / f"{number}.out.npz")
    bundle = tmp_path / "case.ingot"
    ingot.compile(str(answers / f"{number}.onnx"), targets=["native"]).save(str(bundle))
    given = ingot_runtime.load(str(bundle)).run(_named(case))
    for result, wanted in given.items():
        np.testing.assert_allclose(wanted, found[result], case.tolerance, case.tolerance)

"""``examples/microcontroller``: the commands of its page, on a board that qemu plays.

Needs ``qemu-system-arm`` (`pytest -m qemu`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.unit.tools.test_c_source import bundle_run

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "microcontroller"


def make_person(folder: Path) -> Path:
    """Write the model of the example."""
    subprocess.run([sys.executable, EXAMPLE / "make_model.py"], cwd=folder, check=True)
    return folder / "dist" / "person.onnx"


def person_bits(model: Path, folder: Path, target: str = "x86-64-v2:scalar") -> list[str]:
    """The bits of the scores of the example's picture, by machine code."""
    count = 3 * 96 * 96
    picture = ((np.arange(count) * 37 % 256) / 256 - 0.5).astype(np.float32)
    given = {"image": picture.reshape(1, 3, 96, 96)}
    scores = bundle_run(model, target, given, folder)["scores"]
    return [f"{bits:x}" for bits in scores.view(np.uint32).ravel()]


@pytest.mark.qemu
def test_board(tmp_path: Path) -> None:
    """The commands of the page print the bits of the scores."""
    assert shutil.which("qemu-system-arm"), "this test needs it: apt-get install qemu-system-arm"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    folder = Path(sys.executable).parent
    script = f'set -e\nPATH="{folder}:$PATH"\n{commands}'
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    bits = [
        line for line in (done.stdout + done.stderr).split() if re.fullmatch("[0-9a-f]{8}", line)
    ]
    assert bits == person_bits(tmp_path / "dist" / "person.onnx", tmp_path)

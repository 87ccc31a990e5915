"""C source on a Cortex-M4 with 2 MiB of RAM, which qemu plays: every small architecture that has
fixed sizes, and the networks of MLPerf Tiny in int8; the bits, and the stack that was told.

Needs ``qemu-system-arm`` (`pytest -m qemu`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.c_source import Array, export
from tests.cortex_board import BoardModel
from tests.tiny_int8 import to_int8
from tests.tiny_models import TINY
from tests.unit.end_to_end.test_microcontroller import make_person
from tests.unit.end_to_end.test_models import STATIC, Cases
from tests.unit.tools.test_c_source import DATA_DEPENDENT, bundle_run

from ingot_compiler.backends.c.c_forms import read_form

pytestmark = pytest.mark.qemu
FORM = "c-small"
LEVELS = ("-Os", "-O2")


def check(path: Path, feeds: list[dict[str, Array]], folder: Path, level: str) -> None:
    """The bits are those of machine code for the same loops; no more stack than was told."""
    board = BoardModel(export(path, folder / "c", "--target", FORM, "--name", "m"), level)
    for given in feeds:
        expected = bundle_run(path, read_form(FORM).loops_for, given, folder)
        result = board.run(given)
        assert {n: a.tobytes() for n, a in result.items()} == {
            n: a.tobytes() for n, a in expected.items()
        }
        assert 0 < board.stack_bytes <= board.facts["stack_bytes"]


@pytest.mark.parametrize("model", [model for model in STATIC if model not in DATA_DEPENDENT])
def test_architectures(model: str, tmp_path: Path) -> None:
    """All of them fit."""
    cases = Cases(model, dynamic=False)
    check(cases.path, cases.feeds, tmp_path, LEVELS[len(model) % 2])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("model", [*TINY, "person"])
def test_int8_networks(model: str, level: str, tmp_path: Path) -> None:
    """The networks of MLPerf Tiny, int8 from the input to the output."""
    made = (
        onnx.ModelProto.FromString(make_person(tmp_path).read_bytes())
        if model == "person"
        else TINY[model]()
    )
    made, path = to_int8(made), tmp_path / "int8.onnx"
    path.write_bytes(made.SerializeToString())
    (given,), random = made.graph.input, np.random.default_rng(0)
    shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    x: Array = random.integers(-128, 128, shape, np.int8)
    check(path, [{given.name: x}], tmp_path, level)

"""Mixtures of experts and layers that keep a state, on OpenCL and on a GPU that a program of Python
stands for: what numpy gives."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.c_loader import find_opencl
from tests.contrib import cases_experts, cases_states
from tests.harness.lowering_harness import assert_close
from tests.ptx.fake_driver import installed

import ingot
import ingot_runtime

_CASES = {case.name: case for case in (*cases_experts.CASES, *cases_states.CASES)}
_NAMES = (
    "MoE silu, 1 of 5, as they are, weights at run time",
    "MoE swiglu, fusion 1",
    "QMoE 4 bits, blocks of 16",
    "QMoE 8 bits, columns, with zero points",
    "LinearAttention gated_delta, heads 2, 2 and 4",
    "CausalConvWithState of a prompt",
)
_DEVICES = {"opencl": "opencl", "cuda": "cuda,target=sm_75"}


@pytest.mark.sweep(60)
@pytest.mark.parametrize("kind", [pytest.param("opencl", marks=pytest.mark.opencl), "cuda"])
@pytest.mark.parametrize("name", _NAMES)
def test_the_device_gives_what_numpy_gives(kind: str, name: str, tmp_path: Path) -> None:
    """Every node is on the device, the order of the rows of groups too."""
    case, path = _CASES[name], tmp_path / "m.ingot"
    model = case.model()
    made = ingot.compile(
        model, targets=["x86-64-v3"], devices={"acc": _DEVICES[kind]}, place={"*": "acc"}
    )
    made.save(path)
    if kind == "opencl":
        find_opencl()
    with installed() if kind == "cuda" else nullcontext(), ingot_runtime.load(path) as session:
        names = [value.name for value in model.graph.input]
        results = session.run(dict(zip(names, case.inputs(), strict=True)))
        for result, expected in zip(results.values(), case.expected, strict=True):
            assert expected is not None
            assert_close(expected, result, 1e-5)
        assert session.device_counts().launches["acc"] > 0

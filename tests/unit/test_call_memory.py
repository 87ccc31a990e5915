"""The memory of a call as ``ingot inspect`` tells it: a formula over open sizes, and numbers at given
ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.end_to_end_harness import make_model, node, tensor
from tests.unit.lowering_harness import normal

import ingot
from ingot_build_rules.cli.main import main
from ingot_build_rules.view.call_memory import call_memory
from ingot_build_rules.view.workspace_formula import workspace_formulas
from ingot_compiler.ir.dims import evaluate
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.read_terms import read_dim
from ingot_compiler.ir.text_reader import Reader
from ingot_runtime.format.program import OPCODES, Program

Output = pytest.CaptureFixture[str]
MODEL = make_model(
    [
        node("MatMul", "x w", "a"), node("Softmax", "a", "b"),
        node("MatMul", "b v", "c", name="second"), node("Add", "c z", "y"),
    ],
    [tensor("x", ["batch", 7]), tensor("z", ["batch", 9])],
    [tensor("y", None)],
    {"w": normal(0, 7, 33), "v": normal(1, 33, 9)},
)  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Open sizes, two variants, a second device."""
    path = tmp_path_factory.mktemp("memory") / "m.ingot"
    devices = {"acc": "null"}
    ingot.compile(
        MODEL, targets=["x86-64-v2", "x86-64-v3"], devices=devices, place={"second": "acc"}
    ).save(path)
    return path


def evaluated(formulas: Sequence[str | None], batch: int) -> tuple[int, ...]:
    """The bytes that formulas give."""
    dims = [read_dim(Reader("formula", text or "")) for text in formulas]
    return tuple(evaluate(dim, {"batch": batch}) for dim in dims)


@pytest.mark.parametrize("batch", [1, 2, 31, 1000])
def test_the_formula_gives_the_bytes_of_each_call(bundle: Path, batch: int) -> None:
    """The formula of each device, over the model's own name, is what the program asks for."""
    for memory in call_memory(bundle, {"x": (batch, 7)}).values():
        assert memory.call
        assert evaluated(memory.formulas, batch) == memory.call.workspace_bytes
        assert max(memory.call.workspace_bytes) > 0


def test_inspect_tells_both(bundle: Path, capsys: Output) -> None:
    """Without sizes the formula, with them bytes, as text and as JSON."""
    assert main(["inspect", str(bundle)]) == 0
    assert "*batch" in capsys.readouterr().out
    assert main(["inspect", str(bundle), "--shape", "x=4x7"]) == 0
    assert "  with x=4x7: workspace " in capsys.readouterr().out
    assert main(["inspect", str(bundle), "--shape", "x=4x7", "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)["call_memory"]["x86-64-v3"]
    (memory, *_) = call_memory(bundle, {"x": (4, 7)}).values()
    assert memory.call
    assert told["workspace_bytes"] == list(memory.call.workspace_bytes)


def test_fixed_sizes_need_no_formula(tmp_path: Path) -> None:
    """The formula is a number where all sizes are fixed."""
    fixed = make_model(
        [node("MatMul", "x w", "a"), node("Softmax", "a", "y")],
        [tensor("x", [5, 7])], [tensor("y", None)], {"w": normal(0, 7, 33)},
    )  # fmt: skip
    ingot.compile(fixed).save(tmp_path / "m.ingot")
    (memory,) = call_memory(tmp_path / "m.ingot", {}).values()
    assert [formula and formula.isdecimal() for formula in memory.formulas] == [True]
    assert memory.call is None


def test_a_specialisation_shares_the_formula(tmp_path: Path) -> None:
    """One workspace serves the special sizes and all others."""
    path = tmp_path / "m.ingot"
    ingot.compile(MODEL, targets="x86-64-v3", shapes={"x": (4, 7)}).save(path)
    for batch in (1, 4, 100):
        (memory,) = call_memory(path, {"x": (batch, 7)}).values()
        assert memory.call
        assert evaluated(memory.formulas, batch) == memory.call.workspace_bytes


def test_ways_that_need_other_workspaces_have_no_formula() -> None:
    """What a branch decides that sizes alone do not is left open; a decided one is followed."""
    codes = {name: code for code, (name, *_) in enumerate(OPCODES)}
    end = (codes["return"], ())
    for condition, expected in ((0, None), (1, "8")):
        decide = [(codes["read"], (0, 0, 1, 0)), (codes["const"], (0, 1))][condition]
        program = Program(
            (
                (codes["const"], (1, 8)),
                decide,
                (codes["branch"], (0, 3, 5)),
                (codes["workspace_bytes"], (0, 1)),
                end,
                end,
            ),
            2,
            0,
            (),
        )
        assert workspace_formulas(program, (), (), 1) == (expected,)


@pytest.mark.parametrize(
    ("shapes", "what", "why"),
    [
        ({"w": (1,)}, "no input 'w'", "the inputs are x, z"),
        ({"x": (1, 2, 3)}, "sizes contradict the model", "expected [batch, 7], got [1, 2, 3]"),
        ({"x": (4, 8)}, "sizes contradict the model", "expected [batch, 7] with batch = 4, got [4, 8]"),
        ({"x": (4, 7), "z": (5, 9)}, "sizes contradict the model", "expected [batch, 9] with batch = 4, got [5, 9]"),
    ],
)  # fmt: skip
def test_wrong_sizes(bundle: Path, shapes: dict[str, tuple[int, ...]], what: str, why: str) -> None:
    """What is wrong with sizes is told with what was expected."""
    with pytest.raises(UserError) as caught:
        call_memory(bundle, shapes)
    assert (caught.value.what, caught.value.why) == (what, why)


def test_missing_sizes(tmp_path: Path) -> None:
    """Sizes that follow from no other are asked for."""
    two = make_model(
        [node("Relu", "x", "a"), node("Relu", "z", "b")],
        [tensor("x", ["n"]), tensor("z", ["k", 2])], [tensor("a", None), tensor("b", None)],
    )  # fmt: skip
    ingot.compile(two).save(tmp_path / "m.ingot")
    with pytest.raises(UserError, match="sizes are missing") as caught:
        call_memory(tmp_path / "m.ingot", {"x": (3,)})
    assert caught.value.do == "add --shape z=kx2"

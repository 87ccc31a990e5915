"""The memory of a call as ``ingot inspect`` tells it: a formula over open sizes, and numbers at given
ones."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal

import ingot
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.view.call_memory import call_memory
from ingot_build_rules.tools.view.largest_parts import largest_parts
from ingot_build_rules.tools.view.workspace_formula import workspace_formulas
from ingot_compiler.ir.dims import (
    Dim,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mul,
    dim_product,
    evaluate,
    symbol,
)
from ingot_compiler.ir.errors import UserError
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
    meant: dict[str, Any] = {"max": max, "min": min, "floordiv": int.__floordiv__, "batch": batch}
    return tuple(eval(text or "", meant) for text in formulas)


def sizes(rng: random.Random, depth: int) -> Dim:
    """A size as plans of memory have them: sums and rounded sums, the larger of two."""
    if depth == 0:
        name, factor, power = rng.choice("ab"), rng.choice([1, 4, 3072]), rng.randrange(2)
        return dim_product((symbol(name), factor, *[symbol("b")] * power))
    left, right = sizes(rng, depth - 1), sizes(rng, depth - 1)
    match rng.randrange(4):
        case 0:
            return left + right
        case 1:
            return dim_max(left, right)
        case 2:
            return dim_mul(dim_floordiv(left + 63, 64), 64)
        case _:
            return left + dim_min(right, 512)


def test_the_largest_part_is_the_size() -> None:
    """Nested ones become one list of parts, and none that may be the largest is left out."""
    rng, numbers = random.Random(3), list[int]()
    for _ in range(100):
        size = sizes(rng, 3)
        parts = largest_parts(size)
        numbers.append(len(parts))
        for a in (0, 1, 7, 1000):
            for b in (0, 1, 300):
                bound = {"a": a, "b": b}
                largest = max(evaluate(part, bound) for part in parts)
                assert largest == evaluate(size, bound), str(size)
    assert max(numbers) > 1


def test_parts_that_another_one_covers_are_left_out() -> None:
    """Rounding does not hide that a size is at most another one, and no ``max`` stays inside."""
    a, b = symbol("a"), symbol("b")
    rounded = dim_mul(dim_floordiv(dim_max(12288 * a, 3072 * a + 3072 * b) + 63, 64), 64)
    nested = dim_max(dim_max(rounded, 64 * dim_floordiv(16 * a + 63, 64)), 100 * dim_min(a, 5))
    assert set(map(str, largest_parts(nested))) == {"12288*a", "3072*a + 3072*b"}


@pytest.mark.parametrize("batch", [1, 2, 31, 1000])
def test_the_formula_gives_the_bytes_of_each_call(bundle: Path, batch: int) -> None:
    """The formula of each device, over the model's own name, is what the program asks for."""
    for memory in call_memory(bundle, {"x": (batch, 7), "z": (batch, 9)}).values():
        assert memory.call
        assert evaluated(memory.formulas, batch) == memory.call.workspace_bytes
        assert max(memory.call.workspace_bytes) > 0


def test_inspect_tells_both(bundle: Path, capsys: Output) -> None:
    """Without sizes the formula, with them bytes, as text and as JSON."""
    assert main(["inspect", str(bundle)]) == 0
    shown = capsys.readouterr().out
    assert "*batch" in shown
    assert "max(0, " not in shown
    assert "max(max(" not in shown
    assert main(["inspect", str(bundle), "--shape", "x=4x7"]) == 0
    shown = capsys.readouterr().out
    assert main(["inspect", str(bundle), "--shape", "x=4x7", "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)["call_memory"]["x86-64-v3"]
    (memory, *_) = call_memory(bundle, {"x": (4, 7), "z": (4, 9)}).values()
    assert memory.call
    assert told["workspace_bytes"] == list(memory.call.workspace_bytes)
    sizes = ", ".join(map(str, told["workspace_bytes"]))
    assert f"  with x=4x7, z=4x9: workspace {sizes} bytes, scratch " in shown


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


def test_versions_that_need_other_workspaces_have_no_formula(tmp_path: Path) -> None:
    """A version for special sizes has a workspace of its own; at given sizes there are bytes."""
    path = tmp_path / "m.ingot"
    ingot.compile(MODEL, targets="x86-64-v3", shapes={"x": (4, 7)}).save(path)
    for batch in (4, 100):
        (memory,) = call_memory(path, {"x": (batch, 7), "z": (batch, 9)}).values()
        assert memory.formulas == (None,)
        assert memory.call
        assert memory.call.workspace_bytes > (0,)


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


def test_sizes_that_the_program_refuses(bundle: Path) -> None:
    """A call whose inputs contradict one another is refused in the words of the call."""
    with pytest.raises(UserError, match="a call of these sizes is refused"):
        call_memory(bundle, {"x": (4, 7), "z": (5, 9)})

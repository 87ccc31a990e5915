"""Sizes that would make a kernel run for ever: loops over nothing, and values that no memory bounds
because they are never stored.

What is launched is read off the program, before anything of such a size is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import run_all_ways
from tests.harness.lowering_harness import BEST, HOST_ALONE, compile_fused
from tests.hostile.model_builder import INT64, graph_of, model, value

import ingot
import ingot_runtime
from ingot_compiler.backends.host.hooks import device_rules
from ingot_compiler.host_program.main_program import build_program
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.lowering.fuse import fuse
from ingot_compiler.lowering.loops.nested import used_symbols
from ingot_compiler.lowering.loops.program import Reduce
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.placement.place import place
from ingot_runtime.format.limits import ELEMENT_COUNT_MAX
from ingot_runtime.format.program import OPCODES, Program

MANY = 1 << 40
ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "min": min, "max": max,
    "floordiv": lambda a, b: a // b if b else 0, "mod": lambda a, b: a % b if b else 0,
    "eq": lambda a, b: int(a == b), "lt": lambda a, b: int(a < b), "le": lambda a, b: int(a <= b),
}  # fmt: skip


def _program(source: ModelProto) -> Program:
    fused = fuse(place(optimize(graph_of(source)), HOST_ALONE), (device_rules(str(BEST)),))
    compiled = compile_fused(fused, BEST)
    offsets = [0] * len(fused.constants)
    programs = compiled.programs
    return build_program(compiled.fused, programs, range(len(programs)), compiled.plan, offsets)[0]


def _extents(program: Program, shapes: Sequence[Sequence[int]]) -> list[int]:
    """The units of each launch, for inputs of these shapes; programs without branches."""
    registers: dict[int, int] = {}
    found: list[int] = []
    for code, operands in program.instructions:
        name = OPCODES[code][0]
        plain = [item for item in operands if isinstance(item, int)]
        if name in ARITHMETIC:
            registers[plain[0]] = ARITHMETIC[name](registers[plain[1]], registers[plain[2]])
        elif name == "const":
            registers[plain[0]] = plain[1]
        elif name == "input_dim":
            registers[plain[0]] = shapes[plain[1]][plain[2]]
        elif name.startswith("launch"):
            found.append(registers[plain[3]])
    return found


def _one(
    op: str, constants: Mapping[str, Array] | None = None, **attributes: int | list[int]
) -> ModelProto:
    """One node over x[a, b]."""
    node = helper.make_node(op, ["x", *(constants or {})], ["y"], "/it", **attributes)  # type: ignore[arg-type]
    return model([node], [value("x", ["a", "b"])], [value("y", None)], constants)


EMPTY = {
    "concat": _one("Concat", axis=0),
    "cumsum": _one("CumSum", {"axis": np.array(0)}),
    "layer_norm": _one("LpNormalization", axis=1),
    "log_softmax": _one("LogSoftmax", axis=1),
    "relu": _one("Relu"),
    "softmax": _one("Softmax", axis=1),
    "softmax_columns": _one("Softmax", axis=0),
    "transpose": _one("Transpose", perm=[1, 0]),
}


@pytest.mark.parametrize("shape", [(7, 0), (0, 7), (MANY, 0)])
@pytest.mark.parametrize("name", EMPTY)
def test_what_writes_nothing_is_not_launched(name: str, shape: tuple[int, int]) -> None:
    """However many rows there are of nothing; a kernel whose result has elements still runs."""
    program = _program(EMPTY[name])
    extents = _extents(program, [shape])
    expected = [extent for extent in extents if extent > 0]
    assert extents
    if name == "layer_norm":  # the norm of every row is a result, the rows are not
        assert len(expected) < len(extents)
    else:
        assert expected == []
    assert all(extent > 0 for extent in _extents(program, [(7, 3)]))


def test_a_reduction_over_nothing_does_not_count_rows() -> None:
    """In one launch the sum of x[a, b] for b = 0 is one unit, whose outer loop is as long as its
    inner one allows."""
    source = model(
        [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)],
        [value("x", ["a", "b"])],
        [value("y", [])],
    )
    fused = fuse(place(optimize(graph_of(source)), HOST_ALONE), (device_rules(str(BEST)),))
    *_, program = compile_fused(fused, BEST).programs  # behind those of a sum of very many elements
    (outer,) = (statement for statement in program.body if isinstance(statement, Reduce))
    assert set(used_symbols((outer.extent,))) == {"s0", "s1"}


@pytest.mark.broad
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "relu", "transpose", "cumsum"])
def test_rows_of_nothing_are_run(tmp_path: Path, name: str) -> None:
    """2^40 rows without elements, natively and stepped, at once."""
    path = tmp_path / "m.ingot"
    ingot.compile(EMPTY[name]).save(path)
    (outputs,) = run_all_ways(path, [{"x": np.zeros((MANY, 0), np.float32)}])
    assert outputs["y"].shape == ((0, MANY) if name == "transpose" else (MANY, 0))


def test_the_sum_of_rows_of_nothing(tmp_path: Path) -> None:
    """Zero, at once."""
    path = tmp_path / "m.ingot"
    source = model(
        [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)],
        [value("x", ["a", "b"])],
        [value("y", [])],
    )
    ingot.compile(source).save(path)
    (outputs,) = run_all_ways(path, [{"x": np.zeros((MANY, 0), np.float32)}])
    assert outputs["y"] == 0


# ---- values that are never stored ----------------------------------------------------------------

SUMMED = helper.make_node("ReduceSum", ["e"], ["y"], keepdims=0)
ENDLESS = {
    "expand": (
        model([helper.make_node("Expand", ["x", "s"], ["e"], "/big"), SUMMED], [value("x", [1]), value("s", [2], INT64)], [value("y", [])]),
        {"x": np.ones(1, np.float32), "s": np.array([1 << 25, 1 << 25])},
    ),
    "broadcast": (
        model([helper.make_node("Add", ["x", "s"], ["e"], "/big"), SUMMED], [value("x", ["a", 1]), value("s", [1, "b"])], [value("y", [])]),
        {"x": np.ones((1 << 21, 1), np.float32), "s": np.ones((1, 1 << 21), np.float32)},
    ),
    "range": (
        model(
            [helper.make_node("Range", ["zero", "x", "one"], ["e"], "/big"), SUMMED],
            [value("x", [], INT64)], [value("y", [], INT64)], {"zero": np.array(0), "one": np.array(1)},
        ),
        {"x": np.array(ELEMENT_COUNT_MAX + 1)},
    ),
    "tile": (
        model([helper.make_node("Tile", ["x", "s"], ["e"], "/big"), SUMMED], [value("x", [3]), value("s", [1], INT64)], [value("y", [])]),
        {"x": np.ones(3, np.float32), "s": np.array([1 << 45])},
    ),
}  # fmt: skip


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", ENDLESS)
def test_a_value_that_is_never_stored_has_a_largest_size(tmp_path: Path, name: str) -> None:
    """The call is refused, and the node is named; a small one runs."""
    source, feed = ENDLESS[name]
    path = tmp_path / "m.ingot"
    ingot.compile(source).save(path)
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(path, executor=executor)
        with pytest.raises(ingot_runtime.InputError, match=r"elements|too large") as caught:
            session.run(feed)
        assert "node '/big'" in str(caught.value)
        assert np.isfinite(
            session.run({**feed, "x": np.zeros_like(feed["x"]), **_small(feed)})["y"]
        )


def _small(feed: Mapping[str, Array]) -> dict[str, Array]:
    if "s" not in feed:
        return {}
    wanted = feed["s"]
    return {"s": np.ones_like(wanted) if wanted.dtype == np.int64 else wanted[:, :2]}


@pytest.mark.parametrize("count", [ELEMENT_COUNT_MAX, ELEMENT_COUNT_MAX + 1])
def test_a_known_size_is_refused_when_it_is_compiled(count: int) -> None:
    """One element more than a tensor may have."""
    nodes = [helper.make_node("Expand", ["x", "s"], ["e"], "/big"), SUMMED]
    source = model(
        nodes,
        [value("x", [1], TensorProto.UINT8)],
        [value("y", None, TensorProto.UINT8)],
        {"s": np.array([count])},
    )
    source.graph.node[1].op_type = "ReduceMax"
    if count <= ELEMENT_COUNT_MAX:
        graph_of(source)
        return
    with pytest.raises(ModelError) as caught:
        graph_of(source)
    assert "'/big'" in caught.value.where
    assert str(ELEMENT_COUNT_MAX) in caught.value.why

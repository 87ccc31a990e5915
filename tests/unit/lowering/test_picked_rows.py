"""Rows that indices pick: what is the same along an axis is looked up once, whoever made the
indices, and reductions of picked rows have their columns in lanes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, f32, normal

from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.lowering.loops.nested import nested
from ingot_compiler.lowering.loops.program import For, LoopProgram, Reduce

_INDICES = np.random.default_rng(1).integers(-9, 9, (5, 7))


def _kinds_of_loops(program: LoopProgram) -> list[str]:
    loops = (item for item in nested(program.body) if isinstance(item, For | Reduce))
    return [each.kind if isinstance(each, For) else f"lanes {each.lanes}" for each in loops]


@pytest.mark.parametrize("columns", [1, 2, 3, 16, 17, 33, 130])
@pytest.mark.parametrize("function", ["sum", "mean", "max"])
def test_reduced_rows_have_columns_in_lanes(function: str, columns: int) -> None:
    """Sums of rows of a table, each lane its own column; of one column the rows are in lanes."""
    builder = Builder([f32(9, columns), TensorType("i64", (5, 7))])
    rows = builder.op("gather", 0, 1, axis=0)
    total = builder.op("reduce", rows, function=function, axes=(1,), keepdims=False)
    (program,) = compile_graph(builder.finish([total])).programs
    expected = ["lanes True"] if columns == 1 else ["vector", "lanes False"]
    assert _kinds_of_loops(program) == expected
    check_graph(builder, [total], [normal(0, 9, columns), _INDICES])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reduced", [0, 1, 2, 3])
def test_reductions_of_rows_of_any_axis(axis: int, reduced: int) -> None:
    """Indices along each axis, and a reduction over each: those of the indices, too."""
    builder = Builder([f32(9, 9, 9), TensorType("i64", (2, 7))])
    rows = builder.op("gather", 0, 1, axis=axis)
    total = builder.op("reduce", rows, function="sum", axes=(reduced,), keepdims=True)
    check_graph(builder, [total], [normal(0, 9, 9, 9), _INDICES[:2]])


def _mirrored(columns: int, *, is_constant: bool) -> tuple[Builder, int, list[Array]]:
    """Rows of a tensor by an index for each row, repeated along the columns."""
    index = _INDICES[:, :, np.newaxis]
    builder = Builder(
        [f32(9, 7, columns), *([] if is_constant else [TensorType("i64", (5, 7, 1))])]
    )
    own = builder.constant(index) if is_constant else 1
    everywhere = builder.op("broadcast_to", own, shape=(5, 7, columns))
    picked = builder.op("gather_elements", 0, everywhere, axis=0)
    inputs = [normal(0, 9, 7, columns), *([] if is_constant else [index])]
    return builder, picked, inputs


@pytest.mark.parametrize("columns", [1, 3, 64, 65])
def test_constant_indices_are_looked_up_once(columns: int) -> None:
    """A constant that repeats another one is read where that one lies, as one of a run is."""
    builder, picked, inputs = _mirrored(columns, is_constant=True)
    compiled = compile_graph(builder.finish([picked]))
    counts = [spec.element_count for spec in compiled.fused.buffers if spec.kind == "constant"]
    assert counts == [35]
    check_graph(builder, [picked], inputs)
    other, others_picked, _ = _mirrored(columns, is_constant=False)
    loops = [_kinds_of_loops(program) for program in compiled.programs]
    (of_a_run,) = compile_graph(other.finish([others_picked])).programs
    assert loops == [_kinds_of_loops(of_a_run)]


def test_a_repeated_constant_that_is_read_dense_is_folded_whole() -> None:
    """No launch copies what the build knows, whoever reads it first."""
    builder = Builder([f32(4, 8)])
    row = builder.op("broadcast_to", builder.constant(normal(1, 1, 8)), shape=(4, 8))
    summed = builder.op("add", 0, row)
    scan = builder.op("cumsum", row, axis=1, exclusive=False, reverse=False)
    outputs = [summed, builder.op("add", scan, summed)]
    compiled = compile_graph(builder.finish(outputs))
    copies = [launch for launch in launches_of(compiled.fused) if not launch.group.nodes]
    assert not copies
    check_graph(builder, outputs, [normal(0, 4, 8)])

"""Products whose second factor lies in columns, or is one: what they compute, and by which
loops."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, normal, run_compiled

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import launches_of

RELATIVE = 2e-5


def factors(builder: Builder, output: int) -> set[str]:
    """How the second factors of the products of a graph lie."""
    launches = launches_of(compile_graph(builder.finish([output])).fused)
    return {each.group.method.factor for each in launches if each.group.kind == "matmul"}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize(("columns", "depth"), [(5, 3), (40, 64), (33, 250)])
@pytest.mark.parametrize("rows", [1, 3, 16, 17, 70])
def test_rows_by_columns(batch: tuple[int, ...], rows: int, columns: int, depth: int) -> None:
    """A transposed operand of a call stays as it is, with what is computed behind: blocks of it are
    turned for one tile of rows, all that a unit reads of it for several."""
    shapes = (*batch, rows, depth), (*batch, columns, depth)
    builder = Builder([TensorType("f32", shape) for shape in shapes])
    axes = (*range(len(batch)), len(batch) + 1, len(batch))
    turned = builder.op("transpose", 1, permutation=axes)
    result = builder.op("relu", builder.op("matmul", 0, turned))
    assert factors(builder, result) == {"turned"}
    check_graph(
        builder, [result], [normal(0, *shapes[0]), normal(1, *shapes[1])], RELATIVE, RUNNABLE
    )


@pytest.mark.parametrize("rows", [1, 5, 20, 90])
def test_an_open_number_of_rows_by_columns(rows: int) -> None:
    """One row by blocks that are turned, more by what a unit turns at once."""
    sizes: tuple[Dim, Dim, Dim] = (symbol("s0"), symbol("s1"), symbol("s2"))
    builder = Builder([TensorType("f32", (sizes[0], sizes[2])), TensorType("f32", sizes[1:])])
    result = builder.op("matmul", 0, builder.op("transpose", 1, permutation=(1, 0)))
    assert factors(builder, result) == {"turned"}
    check_graph(builder, [result], [normal(0, rows, 70), normal(1, 37, 70)], RELATIVE, RUNNABLE)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("shape", [(40, 5), (33, 250), (3, 20, 17), (20, 1, 64), (2, 3, 9, 30)])
def test_rows_by_one_column(shape: tuple[int, ...], *, is_constant: bool) -> None:
    """Of a call and of the compiler, rows that lie evenly apart and rows that are cut out."""
    depth = shape[-1]
    column = normal(1, depth, 1)
    operands = [TensorType("f32", shape)]
    builder = Builder(operands if is_constant else [*operands, TensorType("f32", (depth, 1))])
    other = builder.constant(column) if is_constant else 1
    cut = builder.op(
        "slice", 0, starts=(1, *(0 for _ in shape[1:])), sizes=(shape[0] - 1, *shape[1:]),
        steps=(1,) * len(shape),
    )  # fmt: skip
    result = builder.op("neg", builder.op("matmul", cut, other))
    assert factors(builder, result) == {"one_column"}
    x = [normal(0, *shape)]
    check_graph(builder, [result], x if is_constant else [*x, column], RELATIVE, RUNNABLE)


def test_columns_of_a_batch() -> None:
    """Each product has a column of its own."""
    builder = Builder([TensorType("f32", (4, 30, 21)), TensorType("f32", (4, 21, 1))])
    result = builder.op("matmul", 0, 1)
    assert factors(builder, result) == {"one_column"}
    check_graph(builder, [result], [normal(0, 4, 30, 21), normal(1, 4, 21, 1)], RELATIVE, RUNNABLE)


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        ((18, 16), (3, 16, 1)), ((30, 21), (2, 3, 21, 1)), ((5, 30, 21), (4, 1, 21, 1)),
        ((1, 30, 21), (4, 21, 1)), ((4, 30, 21), (1, 21, 1)), ((3, 1, 30, 21), (5, 21, 1)),
    ],
)  # fmt: skip
def test_columns_of_a_batch_by_rows_of_fewer_axes(
    rows: tuple[int, ...], column: tuple[int, ...]
) -> None:
    """Rows are those of all batches that they lack; found by fuzzing, where the depth of rows was
    taken for how far they lie apart."""
    builder = Builder([TensorType("f32", rows), TensorType("f32", column)])
    result = builder.op("matmul", 0, 1)
    assert factors(builder, result) == {"one_column"}
    check_graph(builder, [result], [normal(0, *rows), normal(1, *column)], RELATIVE, RUNNABLE)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("columns", [1, 15, 16, 17, 31, 32, 33, 40, 47, 48, 49, 80, 95, 97])
def test_an_open_number_of_columns(columns: int) -> None:
    """The last panel, whole or not, has the bits that it has of a known number."""
    x, z = normal(0, 19, 33), normal(1, 33, columns)
    for target in RUNNABLE:
        found = list[Array]()
        for count in (columns, symbol("n")):
            builder = Builder([TensorType("f32", (19, 33)), TensorType("f32", (33, count))])
            graph = builder.finish([builder.op("relu", builder.op("matmul", 0, 1))])
            compiled = compile_graph(graph, target)
            found.append(run_compiled(compiled, graph, [x, z], builder.read)[0])
        known, opened = found
        np.testing.assert_array_equal(known, opened)
        np.testing.assert_allclose(known, np.maximum(x @ z, 0), RELATIVE, 1e-4)

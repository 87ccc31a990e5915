"""What is in lanes of reductions and running sums, and what a concat computes in place: compiled
code gives what the interpreter gives, of known sizes and of open ones."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import (
    Builder,
    check_graph,
    compile_graph,
    f32,
    normal,
    run_compiled,
)

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.kinds import reduce_by_rows
from ingot_compiler.oracles.interpret import interpret


@pytest.mark.sweep(2)
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 9, 40])
def test_the_greatest_of_short_rows(width: int) -> None:
    """Rows of a known length and of an open one, in lanes or each alone: the same element and the
    same place, among equal ones and NaN."""
    x = np.round(normal(0, 3, 45, width))
    x[0, 7, width // 2] = x[2, 40, 0] = np.nan
    for kind in (f32(*x.shape), TensorType("f32", (3, symbol("n"), symbol("m")))):
        builder = Builder([kind])
        found = [
            builder.op("argmax", 0, axis=2, select_last=False, keepdims=False),
            builder.op("argmin", 0, axis=2, select_last=True, keepdims=True),
            builder.op("reduce", 0, function="max", axes=(2,), keepdims=False),
            builder.op("reduce", builder.op("neg", 0), function="min", axes=(2,), keepdims=True),
            builder.op("reduce", 0, function="max", axes=(1, 2), keepdims=True),
        ]
        check_graph(builder, found, [x], 0, RUNNABLE)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("function", ["sum", "mean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_short_rows(function: str, dtype: type[np.floating]) -> None:
    """A row that a run finds to be short has the bits that the compiler gives a known one: of zeros
    of both signs, infinities and NaN, too, and of products that are rounded once."""
    for width in (0, 1, 3, 4, 5):
        x = (10 * normal(width, 3, 45, width)).astype(dtype)
        if width:
            x[0, 7], x[1, 8, -1], x[2, 40, 0] = -0.0, np.inf, np.nan
        found: list[list[Array]] = []
        name: DType = "f32" if dtype is np.float32 else "f64"
        for shape in (x.shape, (3, symbol("n"), symbol("m"))):
            builder = Builder([TensorType(name, shape)])
            squares = builder.op("mul", 0, 0)
            results = [
                builder.op("reduce", 0, function=function, axes=(2,), keepdims=False),
                builder.op(
                    "neg",
                    builder.op("reduce", squares, function=function, axes=(2,), keepdims=True),
                ),
            ]
            graph = builder.finish(results)
            for target in RUNNABLE:
                compiled = compile_graph(graph, target)
                found.append(run_compiled(compiled, graph, [x], builder.read))
            right = interpret(graph, [x], builder.read)
            np.testing.assert_allclose(found[-1][0], right[0], 1e-5)
        for own in found:
            for one, other in zip(own, found[0], strict=True):
                np.testing.assert_array_equal(one, other)
                is_number = ~np.isnan(one)
                np.testing.assert_array_equal(
                    np.signbit(one[is_number]), np.signbit(other[is_number])
                )


@pytest.mark.parametrize("width", [3, 40])
def test_running_sums_of_transposed(width: int) -> None:
    """Along each axis, of a known shape and of an open one."""
    x = np.round(normal(0, 2, width, 30))
    for axis in (0, 1, 2):
        for kind in (f32(*x.shape), TensorType("f32", (2, symbol("n"), symbol("m")))):
            builder = Builder([kind])
            turned = builder.op("transpose", 0, permutation=(0, 2, 1))
            y = builder.op("cumsum", turned, axis=axis, exclusive=False, reverse=False)
            check_graph(builder, [y], [x], 0, RUNNABLE)


def test_parts_with_an_axis_of_their_own_are_computed_in_place() -> None:
    """What a reshape gives an axis of one element for the concat along it is not copied; what
    others read too, or what is not computed, is."""
    x, z = normal(0, 5, 37), normal(1, 5, 37)
    wide = (5, 37, 1)

    def built(*, is_shared: bool) -> tuple[Builder, list[int]]:
        builder = Builder([f32(*x.shape), f32(*x.shape)])
        parts = [builder.op("mul", 0, 1), builder.op("add", 0, 1)]
        last = builder.op("reshape", 0, shape=wide)
        apart = [builder.op("reshape", part, shape=wide) for part in parts]
        joined = builder.op("concat", *apart, last, axis=2)
        return builder, [joined, *(parts[:1] if is_shared else [])]

    builder, results = built(is_shared=False)
    assert len(compile_graph(builder.finish(results)).programs) == 3
    for is_shared in (False, True):
        check_graph(*built(is_shared=is_shared), [x, z], 0, RUNNABLE)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 21])
def test_sums_of_rows(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that are added row by row have the bits of columns that are added alone, of known
    sizes and of open ones, with what follows."""
    x, found = normal(0, 2, rows, 37), list[list[Array]]()
    monkeypatch.setattr(reduce_by_rows, "_ROW_BYTES", (16, 16384))
    monkeypatch.setattr(reduce_by_rows, "_ROWS_MIN", 0)
    for kind in (f32(*x.shape), TensorType("f32", (2, symbol("n"), symbol("m")))):
        for least in (1 << 30, 1):
            monkeypatch.setattr(reduce_by_rows, "_LARGE_BYTES", least)
            builder = Builder([kind])
            total = builder.op("reduce", 0, function="sum", axes=(1,), keepdims=False)
            mean = builder.op("reduce", 0, function="mean", axes=(1,), keepdims=True)
            graph = builder.finish([total, builder.op("neg", mean)])
            for target in RUNNABLE:
                compiled = compile_graph(graph, target)
                found.append(run_compiled(compiled, graph, [x], builder.read))
    right = x[:, 0] if rows else np.zeros((2, 37), np.float32)
    for row in range(1, rows):
        right = right + x[:, row]
    for own in found:
        np.testing.assert_array_equal(own[0], right)
        np.testing.assert_array_equal(own[1], found[0][1])


@pytest.mark.sweep(3)
@pytest.mark.parametrize("rows", [1, 15, 16, 18, 23])
@pytest.mark.parametrize("function", ["sum", "mean", "max"])
def test_pairs_of_rows_that_share_elements(rows: int, function: str) -> None:
    """What is reduced is made from each row of one matrix and each of another, in batches or not,
    and something is added that may lie where the result does."""
    columns, depth = 37, 17
    a, b, c = (
        normal(0, 2, rows, 1, depth),
        normal(1, 1, 1, columns, depth),
        normal(2, 2, rows, columns),
    )
    open_rows = TensorType("f32", (2, symbol("n"), 1, symbol("k")))
    open_columns = TensorType("f32", (1, 1, symbol("m"), symbol("k")))
    open_kinds = open_rows, open_columns, TensorType("f32", (2, symbol("n"), symbol("m")))
    for kinds in ((f32(2, rows, 1, depth), f32(1, 1, columns, depth), f32(*c.shape)), open_kinds):
        builder = Builder(list(kinds))
        apart = builder.op("sub", 0, 1)
        squares = builder.op("mul", apart, apart)
        total = builder.op("reduce", squares, function=function, axes=(3,), keepdims=False)
        addend = builder.op("neg", 2)
        results = [builder.op("add", builder.op("sqrt", total), addend)]
        check_graph(builder, results, [a, b, c], 1e-5, RUNNABLE)

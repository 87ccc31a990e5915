"""``argsort`` and ``bit_cast``: compiled code gives what numpy gives, at every level of this
machine."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import NUMPY, RUNNABLE, Array
from tests.harness.lowering_harness import BEST, Builder, check_graph, compile_graph

from ingot_compiler.backends.host.hooks import lower_group
from ingot_compiler.ir.dims import evaluate, symbol
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.lowering.groups.group_steps import Choice

UNSIGNED: tuple[DType, ...] = ("u8", "u16", "u32", "u64")
ROWS: dict[str, tuple[tuple[int, ...], int]] = {
    "one row, a few": ((1000,), 7),
    "one row, all": ((300,), 300),
    "one row, some": ((300,), 70),
    "few, all": ((5, 9), 9),
    "rows, the first": ((3, 2, 130), 1),
    "rows, as long as a block and its list": ((2, 128), 64),
    "rows, many": ((2, 3, 150), 100),
    "rows, as many as are ranked": ((2, 192), 192),
    "rows, one more": ((2, 193), 193),
    "rows, some of as many as are ranked": ((2, 191), 150),
    "candidates of short rows": ((3, 60), 12),
    "candidates of long rows": ((2, 700), 20),
    "candidates, as many as groups have": ((1100,), 100),
    "candidates of more rows than units": ((2, 67, 40), 10),
    "more rows than units, some": ((67, 30), 20),
    "more rows than units, all": ((65, 9), 9),
    "none": ((4, 10), 0),
    "of no keys": ((4, 0), 0),
    "of no keys, no list": ((0, 300), 300),
    "one key": ((2, 1), 1),
}


def keys_of(dtype: DType, shape: tuple[int, ...], top: int) -> Array:
    """Keys over the whole range of their type, or with many equal ones."""
    limit = min(top, np.iinfo(NUMPY[dtype]).max)
    drawn = np.random.default_rng(3).integers(0, limit, shape, np.uint64, endpoint=True)
    return np.asarray(drawn).astype(NUMPY[dtype])


@pytest.mark.parametrize("case", ROWS)
@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.sweep(60)
def test_argsort(dtype: DType, case: str) -> None:
    """Equal keys keep their order; the greatest key is one like others."""
    shape, count = ROWS[case]
    for top in (2**64 - 1, 3):
        builder = Builder([TensorType(dtype, shape)])
        found = builder.op("argsort", 0, count=count)
        check_graph(builder, [found], [keys_of(dtype, shape, top)], 0, RUNNABLE)


@pytest.mark.parametrize("order", ["rising", "falling", "equal"])
@pytest.mark.parametrize("count", [5, 200])
def test_argsort_of_ordered_keys(order: str, count: int) -> None:
    """Every block changes the list, or none."""
    keys = {
        "rising": np.arange(200), "falling": np.arange(200)[::-1], "equal": np.full(200, 2**32 - 1),
    }[order].astype(np.uint32)  # fmt: skip
    builder = Builder([TensorType("u32", (200,))])
    found = builder.op("argsort", 0, count=count)
    check_graph(builder, [found], [keys], 0, RUNNABLE)


def test_argsort_of_a_transposed_operand() -> None:
    """Keys of a row need not lie beside each other."""
    builder = Builder([TensorType("u32", (90, 3))])
    turned = builder.op("transpose", 0, permutation=(1, 0))
    outputs = [builder.op("argsort", turned, count=count) for count in (4, 90)]
    check_graph(builder, outputs, [keys_of("u32", (90, 3), 50)], 0, RUNNABLE)


@pytest.mark.broad
@pytest.mark.parametrize("period", [1, 16, 32, 48])
@pytest.mark.parametrize("least", [0, 7, 2**32 - 100])
def test_argsort_of_keys_that_come_again(period: int, least: int) -> None:
    """More keys are candidates than there is room for: groups have equal least ones."""
    keys = np.resize(least + np.arange(period)[::-1], 3000).astype(np.uint32)
    builder = Builder([TensorType("u32", (3000,))])
    outputs = [builder.op("argsort", 0, count=count) for count in (10, 20, 130)]
    check_graph(builder, outputs, [keys], 0, RUNNABLE)


@pytest.mark.broad
@pytest.mark.parametrize("top", [2**32 - 1, 1000, 0])
def test_argsort_of_an_open_length(top: int) -> None:
    """Where few are wanted, of many keys or of all; one kernel ranks few keys, and sorts many by
    their digits."""
    builder = Builder([TensorType("u32", (2, symbol("n")))])
    outputs = [builder.op("argsort", 0, count=count) for count in (12, 60, symbol("n"))]
    for length in (60, 64, 65, 192, 193, 327, 328, 1000):
        check_graph(builder, outputs, [keys_of("u32", (2, length), top)], 0, RUNNABLE)


def test_short_rows_of_open_length_are_sorted() -> None:
    """All of 100 keys took twice as long where they were selected."""
    builder = Builder([TensorType("u32", (2, symbol("n")))])
    (launch, _) = launches_of(
        compile_graph(builder.finish([builder.op("argsort", 0, count=100)])).fused
    )
    (step,) = lower_group(launch.group, str(BEST)).steps.steps
    assert isinstance(step, Choice)
    assert [bool(evaluate(step.condition, {"n": n})) for n in (100, 909, 910)] == [
        False,
        False,
        True,
    ]


def test_argsort_of_many_of_an_open_length() -> None:
    """What is left out leaves few keys, or many; of very many, candidates are found."""
    builder = Builder([TensorType("u32", (2, symbol("n")))])
    outputs = [builder.op("argsort", 0, count=300)]
    for length in (300, 2000, 8181, 8182):
        check_graph(builder, outputs, [keys_of("u32", (2, length), 2**32 - 1)], 0, RUNNABLE)


SPECIAL = (0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, 1e-45, -1e-45, 3e38)


@pytest.mark.sweep(5)
@pytest.mark.parametrize(
    ("dtype", "target"),
    [("f32", "u32"), ("f32", "i32"), ("f64", "u64"), ("f64", "i64"), ("i8", "u8"), ("u16", "i16")],
)
def test_bit_cast(dtype: DType, target: DType) -> None:
    """The bits are the same, there and back, in lanes and behind other ops."""
    if dtype in ("f32", "f64"):
        values = np.array(SPECIAL * 3).astype(NUMPY[dtype])
    else:
        values = np.arange(-13, 14).astype(NUMPY[dtype])
    builder = Builder([TensorType(dtype, values.shape)])
    bits = builder.op("bit_cast", 0, dtype=target)
    outputs = [bits, builder.op("bit_cast", builder.op("bitwise_not", bits), dtype=dtype)]
    check_graph(builder, outputs, [values], 0, RUNNABLE)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("density", [0.0, 0.02, 0.5, 1.0])
def test_positions_of_true(density: float) -> None:
    """Over blocks without any, with some, and behind the last whole one."""
    mask = np.random.default_rng(5).uniform(size=300) < density
    builder = Builder([TensorType("bool", (300,))])
    found = builder.op("positions_of_true", 0, count=int(mask.sum()))
    check_graph(builder, [found], [mask], 0, RUNNABLE)


def test_no_more_positions_than_asked_for() -> None:
    """What is beyond the count is not stored."""
    mask = np.ones(100, np.bool_)
    builder = Builder([TensorType("bool", (100,))])
    check_graph(builder, [builder.op("positions_of_true", 0, count=70)], [mask], 0, RUNNABLE)

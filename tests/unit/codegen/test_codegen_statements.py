"""Loops, memory access, reductions and guards, compiled for every level that this machine runs,
against numpy."""

from __future__ import annotations

import ctypes
import mmap
from typing import Literal as OneOf

import numpy as np
import pytest
from tests.harness.codegen_harness import (
    NUMPY,
    RUNNABLE,
    Array,
    elementwise,
    interpret,
    run_for_code,
    run_program,
)

from ingot_compiler.ir.dims import (
    Dim,
    dim_broadcast,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    evaluate,
    symbol,
)
from ingot_compiler.ir.types import FLOATS, DType
from ingot_compiler.lowering.loops.loop_values import (
    Apply,
    Compare,
    Constant,
    FromIndex,
    Load,
    Local,
)
from ingot_compiler.lowering.loops.program import (
    Buffer,
    Filter,
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
)
from ingot_compiler.targets.target import Target
from ingot_runtime.format import abi

_J, _N, _I, _M = symbol("j"), symbol("n"), symbol("i"), symbol("m")
_PAGE = mmap.PAGESIZE


def _program(
    dtypes: str, body: tuple[Statement, ...], extent: Dim = 1, scalars: tuple[str, ...] = ("n", "m")
) -> LoopProgram:
    """A program over buffers whose dtypes are listed; the last one is written."""
    names = dtypes.split()
    buffers = tuple(Buffer(name, number == len(names) - 1) for number, name in enumerate(names))  # type: ignore[arg-type]
    return LoopProgram(buffers, scalars, "i", extent, 1, body)


def _run(program: LoopProgram, target: Target, *arrays: Array, n: int, m: int = 0) -> Array:
    run_program(program, target, arrays, {"n": n, "m": m})
    return arrays[-1]


def _copy(index: Dim, kind: str = "vector") -> LoopProgram:
    """``y[j] = x[index]``."""
    return _program("f32 f32", (For("j", _N, kind, (Store(1, _J, Load(0, index)),)),))  # type: ignore[arg-type]


def _fenced(count: int, dtype: DType = "f32") -> tuple[Array, mmap.mmap]:
    """An array that ends where no memory can be touched, and what keeps it alive."""
    memory = mmap.mmap(-1, 2 * _PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert (
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + _PAGE), ctypes.c_size_t(_PAGE), 0) == 0
    )
    size = np.dtype(NUMPY[dtype]).itemsize
    return np.frombuffer(memory, NUMPY[dtype], count, _PAGE - count * size), memory


# ---- addresses -----------------------------------------------------------------------------------


@pytest.mark.sweep(3)
@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("kind", ["vector", "vector_down", "serial"])
@pytest.mark.parametrize(
    "index",
    [
        _J, _J + 3, 2 * _J, 3 * _J + 1, _N - 1 - _J, 2 * (_N - 1 - _J), _M * _J, 5, dim_floordiv(_J, 7), dim_mod(_J, 7),
        dim_mod(_J, 64) + dim_floordiv(_J, 64) * 70, dim_mod(_J + 64, 32) * 2, dim_floordiv(_J, _M + 1),
        dim_mod(_J, _M), dim_floordiv(_J, 4) + 2 * dim_mod(_J, 4), dim_min(_J, 9), dim_max(_J - 5, 0),
        dim_mod(_J - 5, 3), dim_floordiv(_J - 9, 4) + 3, dim_floordiv(_J - 9, 5) + 3, _J * _J, dim_mod(_J * 5, 11) * _M,
        dim_broadcast(_J, _M),
    ],
    ids=str,
)  # fmt: skip
def test_every_form_of_index(index: Dim, kind: str, target: Target) -> None:
    """Contiguous, strided, reversed, divided and quadratic indices read the element that the
    formula names."""
    x = np.arange(5000, dtype=np.float32)
    for n in (0, 1, 3, target.f32_lanes, 37, 70):
        for m in (0, 3):
            y = _run(_copy(index, kind), target, x, np.full(80, -1, np.float32), n=n, m=m)
            expected = np.full(80, -1, np.float32)
            for j in range(n):
                expected[j] = x[_evaluated(index, j=j, n=n, m=m)]
            np.testing.assert_array_equal(y, expected)


def _evaluated(index: Dim, **symbols: int) -> int:
    from ingot_compiler.ir.dims import evaluate

    return evaluate(index, symbols)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "u8", "f64"])
def test_spread_loads_touch_nothing_outside(dtype: DType, target: Target) -> None:
    """Lanes that lie 2, 3 or 4 elements apart, or that share elements, read to the last element and
    no further, in whole vectors and in the rest."""
    lanes = target.f32_lanes
    for index in (_J * 2, _J * 3, _J * 4 + 8, dim_floordiv(_J + _M * 4, 4)):
        body = (For("j", _N, "vector", (Store(1, _J, Load(0, index)),)),)
        program = _program(f"{dtype} {dtype}", body)
        for n in (1, 2, lanes, lanes + 3, 2 * lanes, 37):
            want = np.array([evaluate(index, {"j": j, "m": 2}) for j in range(n)])
            x, keep = _fenced(int(want.max()) + 1, dtype)
            x[:] = np.arange(x.size, dtype=x.dtype)
            y = _run(program, target, x, np.zeros(n, x.dtype), n=n, m=2)
            np.testing.assert_array_equal(y, want.astype(x.dtype), f"{index}, {n}")
            del keep


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i8", "bool", "i64"])
def test_strided_stores(dtype: DType, target: Target) -> None:
    """Stores with a stride write their elements and no others, for every length up to two vectors
    and one, where the memory ends behind the last one."""
    for step in (2, 3, 4, 5):
        program = _program(
            f"{dtype} {dtype}", (For("j", _N, "vector", (Store(1, step * _J + 1, Load(0, _J)),)),)
        )
        for n in range(2 * target.f32_lanes + 2):
            x = np.ones(n, NUMPY[dtype])
            y, keep = _fenced(step * max(n - 1, 0) + 2, dtype)
            y[:] = 0
            expected = np.zeros_like(y)
            expected[1 : 1 + step * n : step] = x
            np.testing.assert_array_equal(_run(program, target, x, y, n=n), expected)
            del keep


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("kind", ["vector", "serial"])
def test_requirements_are_reported(target: Target, kind: OneOf["vector", "serial"]) -> None:
    """The kernel returns the number of a requirement that an element breaks, in any lane, and goes
    on; lanes that do not run break none."""
    small = Require(0, Apply("less", (Load(0, _J), Constant(100, "i64")), "bool"))
    uniform = Require(3, Compare("less", _M, 9))
    body = For("j", _N, kind, (small, uniform, Store(1, _J, Load(0, _J))))
    program = _program("i64 i64", (body,))
    for n in (0, 1, 5, 16, 37):
        x = np.arange(n)
        for wrong in (None, *range(n)):
            values = np.where(x == wrong, 100, x)
            y = np.zeros(n, np.int64)
            # Behind the last element lies what would break it.
            code = run_for_code(
                program, target, (np.append(values, [1 << 40] * 64), y), {"n": n, "m": 0}
            )
            assert code == (0 if wrong is None else abi.RC_REQUIREMENT)
            np.testing.assert_array_equal(y, values)
    assert (
        run_for_code(program, target, (np.arange(3), np.zeros(3, np.int64)), {"n": 3, "m": 9})
        == abi.RC_REQUIREMENT + 3
    )


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_gather_by_values(target: Target) -> None:
    """An index that was loaded (LetIndex) chooses the element per lane, negative numbers count from
    the end."""
    wide = Apply("cast", (Load(1, _J),), "i64")
    zero = Constant(0, "i64")
    wrapped = Apply("add", (wide, FromIndex(_M, "i64")), "i64")
    chosen = Apply("select", (Apply("less", (wide, zero), "bool"), wrapped, wide), "i64")
    body = (LetIndex("k", chosen), Store(2, _J, Load(0, symbol("k") * 2 + 1)))
    program = _program("f32 i32 f32", (For("j", _N, "vector", body),))
    x = np.arange(200, dtype=np.float32)
    for n in (1, 5, 16, 40):
        k = np.random.default_rng(n).integers(-100, 100, n).astype(np.int32)
        y = _run(program, target, x, k, np.zeros(n, np.float32), n=n, m=100)
        np.testing.assert_array_equal(y, x[1::2][k])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("step", [0, 1, 15, 17, 24, 33, 39, 42, 60])
def test_lanes_of_known_reach(target: Target, step: int) -> None:
    """Lanes up to some vectors behind the first one, some beyond both ends, in an array that ends
    at a page without access: ``step`` tenths from one to the next."""
    places = Apply("cast", (Load(1, _J),), "i64")
    clamped = dim_max(dim_min(symbol("k") + 1, _M - 1), 0)
    body = (LetIndex("k", places, 3 * step // 2 + 1), Store(2, _J, Load(0, clamped)))
    program = _program("f32 i32 f32", (For("j", _N, "vector", body),))
    for n in (1, 5, 16, 40):
        (x, _x) = _fenced(max(1, n * step // 10 - 2), "f32")
        x[:] = np.arange(len(x))
        k = (np.arange(n) * step // 10 - 2).astype(np.int32)
        y = _run(program, target, x, k, np.zeros(n, np.float32), n=n, m=len(x))
        np.testing.assert_array_equal(y, x[np.clip(k + 1, 0, len(x) - 1)])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "f16"])
def test_tails_touch_nothing_outside(dtype: DType, target: Target) -> None:
    """Loads and stores of a tail stay inside arrays that end at a page without access."""
    program = elementwise(Load(0, _J), (dtype, dtype))
    for n in range(1, 2 * target.f32_lanes + 2):
        (x, _x), (y, _y) = _fenced(n, dtype), _fenced(n, dtype)
        x[:] = np.arange(n)
        run_program(program, target, (x, y), {"n": n})
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("pads", [(1, 2), (5, 0), (40, 3)])
def test_guards_keep_loads_inside(pads: tuple[int, int], target: Target) -> None:
    """Padding: the arm that is not chosen reads nothing, in whole vectors, tails and scalar
    code."""
    before, after = pads
    index = _J - before
    inside = Apply(
        "logical_and",
        (Compare("less_equal", 0, index), Compare("less", index, _N - before - after)),
        "bool",
    )
    value = Apply("select", (inside, Load(0, index), Constant(-1.0, "f32")), "f32")
    for kind in ("vector", "serial"):
        program = _program("f32 f32", (For("j", _N, kind, (Store(1, _J, value),)),))
        for n in (1, 16, 37):
            (x, _x) = _fenced(n)
            x[:] = np.arange(n)
            y = _run(
                program, target, x, np.zeros(n + before + after, np.float32), n=n + before + after
            )
            np.testing.assert_array_equal(y, np.pad(x, pads, constant_values=-1))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_uniform_guards_keep_vector_loads_inside(target: Target) -> None:
    """A guard on an outer index keeps the whole vector away from memory, also for gathers and
    single elements."""
    row = symbol("r")
    inside = Compare("less", row, _M)
    arms = [Load(0, row * _N + _J), Load(0, row * _N + _N - 1 - _J), Load(0, row * _N)]
    total = Apply("add", (Apply("add", (arms[0], arms[1]), "f32"), arms[2]), "f32")
    value = Apply("select", (inside, total, Constant(0.0, "f32")), "f32")
    program = _program(
        "f32 f32",
        (For("r", _M + 2, "serial", (For("j", _N, "vector", (Store(1, row * _N + _J, value),)),)),),
    )
    for n in (3, 16, 21):
        x, _memory = _fenced(2 * n)
        x[:] = np.arange(2 * n)
        y = _run(program, target, x, np.full((4, n), -1, np.float32), n=n, m=2)
        rows = x.reshape(2, n)
        np.testing.assert_array_equal(y[:2], rows + rows[:, ::-1] + rows[:, :1])
        np.testing.assert_array_equal(y[2:], 0)


# ---- tails and ranges ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("function", ["exp", "gelu_none", "tanh", "log", "pow"])
def test_tails_are_bit_equal_to_whole_vectors(function: str, target: Target) -> None:
    """An element's bits do not depend on whether it is computed in a whole vector or in a tail."""
    lanes = target.f32_lanes
    x = np.abs(np.random.default_rng(0).standard_normal(2 * lanes)).astype(np.float32) + np.float32(
        0.1
    )
    arguments = (Load(0, _J), Load(0, _J)) if function == "pow" else (Load(0, _J),)
    program = elementwise(Apply(function, arguments, "f32"), ("f32", "f32"))
    whole = np.zeros_like(x)
    run_program(program, target, (x, whole), {"n": len(x)})
    for n in range(2 * lanes):
        y = np.zeros(n, np.float32)
        run_program(program, target, (x[:n].copy(), y), {"n": n})
        assert y.tobytes() == whole[:n].tobytes()


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_ranges_of_the_parallel_index_compose(target: Target) -> None:
    """Running [0, k) and [k, extent) gives the bits of running [0, extent)."""
    mean = Reduce("s", "sum", "k", _N, "f32", (), Load(0, _I * _N + symbol("k")), lanes=True)
    value = Apply("exp", (Apply("sub", (Load(0, _I * _N + _J), Local("s", "f32")), "f32"),), "f32")
    program = _program(
        "f32 f32", (mean, For("j", _N, "vector", (Store(1, _I * _N + _J, value),))), extent=_M
    )
    x = np.random.default_rng(1).standard_normal((6, 45)).astype(np.float32)
    whole, parts = np.zeros_like(x), np.zeros_like(x)
    run_program(program, target, (x, whole), {"n": 45, "m": 6})
    for first, last in ((4, 6), (0, 1), (1, 1), (1, 4)):
        run_program(program, target, (x, parts), {"n": 45, "m": 6}, first, last)
    assert whole.tobytes() == parts.tobytes()


# ---- reductions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i8", "i32", "i64", "u8", "u32", "u64"])
@pytest.mark.parametrize("mode", ["lanes", "serial", "vector"])
@pytest.mark.parametrize("function", ["sum", "product", "max", "min"])
@pytest.mark.sweep(3)
def test_reductions(function: str, mode: str, dtype: DType, target: Target) -> None:
    """Every reduction, over lanes, in order, and per lane, for every length up to three turns;
    empty gives the identity."""
    rng = np.random.default_rng(4)
    kind = np.dtype(NUMPY[dtype])
    index = _J if mode != "vector" else _J * 5 + symbol("c")
    value = Load(0, index)
    reduce = Reduce("t", function, "j", _N, dtype, (), value, lanes=mode == "lanes")  # type: ignore[arg-type]
    body: tuple[Statement, ...] = (
        reduce,
        Store(1, symbol("c") if mode == "vector" else 0, Local("t", dtype)),
    )
    if mode == "vector":
        body = (For("c", 5, "vector", body),)
    program = _program(f"{dtype} {dtype}", body)
    for n in (0, 1, 2, 15, 16, 17, 50, 129, 200, 3 * 8 * target.f32_lanes + 5):
        low = 0 if kind.kind == "u" else -3
        data = (
            rng.integers(low, 4, (n, 5))
            if dtype not in FLOATS
            else np.exp(rng.standard_normal((n, 5)) * 0.1)
        )
        x = data.astype(kind) if mode == "vector" else data.astype(kind)[:, 0].copy()
        y = _run(program, target, x, np.zeros(5 if mode == "vector" else 1, kind), n=n)
        _check_reduction(function, dtype, x, y)


def _check_reduction(function: str, dtype: DType, x: Array, y: Array) -> None:
    kind = y.dtype
    if function in ("sum", "product"):
        wide = x.astype(np.longdouble) if dtype in FLOATS else x
        reduce = np.add if function == "sum" else np.multiply
        expected = reduce.reduce(wide, axis=0, dtype=wide.dtype)
        tolerance = {"f32": 4e-6, "f64": 1e-14, "f16": 1e-3}.get(dtype, 0.0)
        np.testing.assert_allclose(
            y.astype(wide.dtype), expected * np.ones(y.shape, wide.dtype), rtol=tolerance
        )
        return
    if dtype in FLOATS:
        least, greatest = kind.type(-np.inf), kind.type(np.inf)
    else:
        least, greatest = kind.type(np.iinfo(kind).min), kind.type(np.iinfo(kind).max)
    expected = (
        x.max(axis=0, initial=least) if function == "max" else x.min(axis=0, initial=greatest)
    )
    np.testing.assert_array_equal(y, expected * np.ones(y.shape, kind))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("function", ["max", "min"])
def test_extreme_reductions_propagate_nan(function: str, target: Target) -> None:
    """One NaN anywhere, also in the tail, makes the result NaN."""
    reduce = Reduce("t", function, "j", _N, "f32", (), Load(0, _J), lanes=True)  # type: ignore[arg-type]
    program = _program("f32 f32", (reduce, Store(1, 0, Local("t", "f32"))))
    n = 9 * target.f32_lanes + 3
    for place in range(n):
        x = np.arange(n, dtype=np.float32)
        x[place] = np.nan
        assert np.isnan(_run(program, target, x, np.zeros(1, np.float32), n=n)[0])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_known_and_symbolic_extents_give_equal_bits(target: Target) -> None:
    """A kernel made for one size sums in the order of the kernel for all sizes."""
    for n in (5, 64, 250, 777):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        results: list[bytes] = []
        for extent in (n, _N):
            deviation = Apply("exp", (Load(0, _J),), "f32")
            body = (
                Reduce("a", "sum", "j", extent, "f32", (), Load(0, _J), lanes=True),
                Reduce(
                    "b",
                    "sum",
                    "j",
                    extent,
                    "f32",
                    (Let("e", deviation),),
                    Local("e", "f32"),
                    lanes=True,
                ),
                Store(1, 0, Local("a", "f32")),
                Store(1, 1, Local("b", "f32")),
            )
            y = _run(_program("f32 f32", body), target, x, np.zeros(2, np.float32), n=n)
            results.append(y.tobytes())
            np.testing.assert_allclose(
                y,
                [x.sum(dtype=np.float64), np.exp(x.astype(np.float64)).sum()],
                rtol=2e-5,
                atol=1e-5,
            )
        assert results[0] == results[1]


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_reduction_bodies_store_on_the_way(target: Target) -> None:
    """A reduction over lanes may store in every iteration, and its tail stores nothing more."""
    value = Apply("exp", (Load(0, _J),), "f32")
    reduce = Reduce(
        "t",
        "sum",
        "j",
        _N,
        "f32",
        (Let("e", value), Store(1, _J, Local("e", "f32"))),
        Local("e", "f32"),
        lanes=True,
    )
    scale = For(
        "j", _N, "vector", (Store(1, _J, Apply("div", (Load(1, _J), Local("t", "f32")), "f32")),)
    )
    program = _program("f32 f32", (reduce, scale))
    for n in (1, 7, 16, 100):
        x = np.linspace(-2, 2, n).astype(np.float32)
        y = _run(program, target, x, np.full(n + 8, 7, np.float32), n=n)
        powers = np.exp(x.astype(np.float64))
        np.testing.assert_allclose(y[:n], powers / powers.sum(), rtol=1e-6)
        assert (y[n:] == 7).all()


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_negative_extents_are_empty(target: Target) -> None:
    """A loop or reduction whose extent comes out negative runs no iteration, in lanes or not."""
    for lanes in (True, False):
        reduce = Reduce(
            "t",
            "sum",
            "j",
            _N - 5,
            "f32",
            (Store(1, _J + 1, Constant(9.0, "f32")),),
            Load(0, _J),
            lanes=lanes,
        )
        loop = For(
            "j", _N - _M, "vector" if lanes else "serial", (Store(1, _J + 1, Constant(8.0, "f32")),)
        )
        program = _program("f32 f32", (reduce, loop, Store(1, 0, Local("t", "f32"))))
        y = _run(program, target, np.ones(40, np.float32), np.full(40, -1, np.float32), n=2, m=9)
        np.testing.assert_array_equal(y, [0, *[-1] * 39])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "u8"])
def test_vectors_downwards(dtype: DType, target: Target) -> None:
    """They come in the order in which an array can be moved up in place, where all elements are
    narrow, too."""
    body = (Store(1, _J + 1, Load(1, _J)),)
    program = _program(f"{dtype} {dtype}", (For("j", _N, "vector_down", body),))
    for n in (0, 1, 15, 16, 64, 70, 200):
        y = np.arange(n + 1).astype(NUMPY[dtype])
        moved = _run(program, target, y, y.copy(), n=n)
        np.testing.assert_array_equal(moved, [*y[:1], *y[:-1]])


# ---- control -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_if_and_unrolled_loops(target: Target) -> None:
    """``If`` runs its body for one side only; an unrolled loop sees its variable as a number, also
    in reductions."""
    tap = symbol("t")
    window = Reduce("w", "sum", "t", 3, "f32", (), Load(0, _J + tap), unroll=True)
    even = If(
        Compare("equal", dim_mod(_I, 2), 0),
        (For("j", _N, "vector", (window, Store(1, _I * _N + _J, Local("w", "f32")))),),
    )
    odd = If(
        Compare("equal", dim_mod(_I, 2), 1),
        (For("t", 2, "unroll", (Store(1, _I * _N + tap, FromIndex(tap + _I * 10, "f32")),)),),
    )
    x = np.arange(40, dtype=np.float32)
    y = _run(
        _program("f32 f32", (even, odd), extent=3), target, x, np.zeros((3, 20), np.float32), n=20
    )
    np.testing.assert_array_equal(y[0], x[:20] + x[1:21] + x[2:22])
    np.testing.assert_array_equal(y[2], y[0])
    np.testing.assert_array_equal(y[1, :4], [10, 11, 0, 0])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_serial_loops_see_their_own_stores(target: Target) -> None:
    """A running sum through memory, several columns in lanes."""
    previous = Apply(
        "select",
        (
            Compare("equal", symbol("t"), 0),
            Constant(0.0, "f32"),
            Load(1, (symbol("t") - 1) * 20 + _J),
        ),
        "f32",
    )
    total = Apply("add", (previous, Load(0, symbol("t") * 20 + _J)), "f32")
    program = _program(
        "f32 f32",
        (
            For(
                "t",
                _N,
                "serial",
                (For("j", 20, "vector", (Store(1, symbol("t") * 20 + _J, total),)),),
            ),
        ),
    )
    x = np.arange(120, dtype=np.float32).reshape(6, 20)
    np.testing.assert_array_equal(
        _run(program, target, x, np.zeros_like(x), n=6), np.cumsum(x, axis=0)
    )


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_index_values_of_every_dtype(target: Target) -> None:
    """An index as a value counts lane by lane."""
    for dtype in ("f32", "f64", "i64", "i32", "u8", "f16"):
        y = np.zeros(37, NUMPY[dtype])
        run_program(elementwise(FromIndex(2 * _J + 1, dtype), (dtype,)), target, (y,), {"n": 37})
        np.testing.assert_array_equal(y, np.arange(1, 75, 2))


# ---- filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u8", "f16", "i32", "f32", "i64"])
def test_filter(dtype: DType) -> None:
    """What is kept lies together behind ``start``, values and positions alike; nothing is written
    beyond ``limit`` or further behind the last, and the end counts all that are kept."""
    key = Local("key", "i32")
    body = (Let("key", Load(0, _J)),)
    stores = (Store(2, 1, Load(1, _J)), Store(3, 0, FromIndex(_J + 5, "i64")))
    picked = Filter(
        "end", "j", _N, 2, _M, body, Apply("less", (key, Constant(3, "i32")), "bool"), stores
    )
    end = Store(4, 0, FromIndex(symbol("end"), "i64"))
    dtypes: tuple[DType, ...] = ("i32", dtype, dtype, "i64", "i64")
    buffers = tuple(Buffer(each, number > 1) for number, each in enumerate(dtypes))
    program = LoopProgram(buffers, ("n", "m"), "i", 1, 1, (picked, end))
    draw = np.random.default_rng(7)
    for n, m in ((0, 9), (1, 9), (16, 99), (37, 99), (64, 99), (70, 20), (70, 2), (70, 0), (5, 99)):
        arrays = [
            draw.integers(0, 6, n).astype(np.int32),
            draw.integers(1, 100, n).astype(NUMPY[dtype]),
            np.zeros(100, NUMPY[dtype]),
            np.zeros(100, np.int64),
            np.zeros(1, np.int64),
        ]
        expected = [array.copy() for array in arrays]
        interpret(program, RUNNABLE[0], expected, {"n": n, "m": m})
        assert expected[-1] == 2 + (arrays[0] < 3).sum()
        for target in RUNNABLE:
            given = [array.copy() for array in arrays]
            run_program(program, target, given, {"n": n, "m": m})
            for number in (2, 3):  # at the place behind the last, anything may be written
                behind = expected[-1] + 3 - number
                given[number][behind] = expected[number][behind]
            for one, other in zip(given, expected, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{target} {n} {m}")


def test_filter_stays_inside_its_buffers() -> None:
    """The last element that is kept is the last that may be touched."""
    kept = Store(1, 0, Load(0, _J))
    picked = Filter("end", "j", _N, 0, _M, (), Apply("less", (Load(0, _J), Constant(9.0, "f32")), "bool"), (kept,))  # fmt: skip
    program = _program("f32 f32", (picked,))
    for target in RUNNABLE:
        (source, first), (result, second) = _fenced(37), _fenced(30)
        source[...] = np.arange(37) % 10
        _run(program, target, source, result, n=37, m=30)
        np.testing.assert_array_equal(result, source[source < 9][:30])
        del source, result, first, second

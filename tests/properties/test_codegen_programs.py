"""Random loop programs: compiled code agrees with the interpreter, whole and in parts."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.codegen_harness import NUMPY, RUNNABLE, Array, interpret, run_program

from ingot_compiler.ir.dims import (
    FUNCTIONS,
    Dim,
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
    Value,
)
from ingot_compiler.lowering.loops.program import (
    Buffer,
    For,
    ForKind,
    If,
    Let,
    LoopProgram,
    Reduce,
    Statement,
    Store,
)
from ingot_compiler.targets.target import Target

_SIZE = 4096
_EXTENT = 3
_N, _M = symbol("n"), symbol("m")
_INPUTS: tuple[DType, ...] = ("f32", "i32", "f64", "i8")
_OUTPUT: dict[DType, int] = {"f32": 4, "i32": 5, "f64": 6, "i8": 7}
_BUFFERS = tuple(Buffer(dtype, number >= 4) for number, dtype in enumerate((*_INPUTS, *_INPUTS)))
# Exact functions: others would flip comparisons; they only stand outermost.
_UNARY = {"f": ("abs", "neg", "relu", "floor"), "i": ("abs", "neg", "relu", "sign", "bitwise_not")}
_REDUCTIONS: tuple[Literal["sum", "max", "min"], ...] = ("sum", "sum", "max", "min")
_EXTENTS: tuple[Dim, ...] = (0, 300, 300, _N)
_WIDTHS: tuple[Dim, ...] = (1, 19, 32, _N)
_LOOP_KINDS: tuple[ForKind, ...] = ("vector", "vector_down", "serial")
_INEXACT = ("sigmoid", "tanh", "sin", "atan", "erf")
_BINARY = {
    "f": ("add", "sub", "mul", "max", "min"),
    "i": ("add", "sub", "mul", "max", "min", "div", "mod", "bitwise_and"),
}


@st.composite
def _indices(draw: st.DrawFn, names: tuple[str, ...]) -> Dim:
    """An index of at most a few hundred over the symbols in scope, >= 0 once it is wrapped by the
    caller."""
    index: Dim = draw(st.sampled_from([0, 1, -2, 5, -16, 32, -37]))
    for name in names:
        index = index + symbol(name) * draw(st.sampled_from([0, 1, 1, 2, 5, -1]))
    other = draw(st.sampled_from([1, 2, 3, 4, 7, 16, 32, _M, _N + 1]))
    form = draw(st.sampled_from(["plain", "plain", "both", "both", *FUNCTIONS]))
    if form == "both":
        return dim_floordiv(index, other) * 3 + dim_mod(index, other)
    return FUNCTIONS[form](index, other) if form in FUNCTIONS else index


def _inside(index: Dim) -> Dim:
    return dim_max(dim_min(index + 64, _SIZE - 1), 0)


@st.composite
def _values(
    draw: st.DrawFn,
    dtype: DType,
    names: tuple[str, ...],
    known: tuple[tuple[str, DType], ...],
    depth: int,
) -> Value:
    fitting = [Local(name, kind) for name, kind in known if kind == dtype]
    leaf = draw(
        st.sampled_from(
            ["load", "load", "constant", "index", "local"]
            if fitting
            else ["load", "load", "constant", "index"]
        )
    )
    choice = (
        leaf
        if depth == 0
        else draw(st.sampled_from([leaf, "unary", "binary", "binary", "select", "cast", "guard"]))
    )
    family = "f" if dtype in ("f32", "f64") else "i"

    def inner(kind: DType = dtype) -> Value:
        return draw(_values(kind, names, known, depth - 1))

    match choice:
        case "load":
            return Load(_INPUTS.index(dtype), _inside(draw(_indices(names))))
        case "constant":
            number = draw(st.integers(-4, 4))
            return Constant(float(number) / 2 if family == "f" else number, dtype)
        case "index":
            return FromIndex(draw(_indices(names)), dtype)
        case "local":
            return draw(st.sampled_from(fitting))
        case "unary":
            return Apply(draw(st.sampled_from(_UNARY[family])), (inner(),), dtype)
        case "binary":
            return Apply(draw(st.sampled_from(_BINARY[family])), (inner(), inner()), dtype)
        case "select":
            condition = Apply(
                draw(st.sampled_from(["less", "less_equal", "equal"])), (inner(), inner()), "bool"
            )
            return Apply("select", (condition, inner(), inner()), dtype)
        case "guard":
            # The load is out of bounds where the guard does not hold.
            index = draw(_indices(names))
            holds = Apply(
                "logical_and",
                (Compare("less_equal", 0, index), Compare("less", index, _SIZE)),
                "bool",
            )
            return Apply("select", (holds, Load(_INPUTS.index(dtype), index), inner()), dtype)
        case _:
            small = Apply("min", (inner("i32"), Constant(100, "i32")), "i32")
            return Apply("cast", (Apply("max", (small, Constant(-100, "i32")), "i32"),), dtype)


@st.composite
def _programs(draw: st.DrawFn) -> LoopProgram:
    """A ``Let``, a reduction, and a loop that stores to one place per iteration, maybe under an
    ``If``."""
    kinds = st.sampled_from(_INPUTS)
    let_kind, store_kind = draw(kinds), draw(kinds)
    known: tuple[tuple[str, DType], ...] = (("a", let_kind),)
    first = Let("a", draw(_values(let_kind, ("i",), (), 1)))
    reduce_kind = draw(st.sampled_from((store_kind, store_kind, _INPUTS[1])))
    function = draw(st.sampled_from(_REDUCTIONS))
    extent = draw(st.sampled_from(_EXTENTS))
    term = draw(_values(reduce_kind, ("i", "k"), known, 1))
    total = Reduce(
        "r",
        function,
        "k",
        extent,
        reduce_kind,
        (),
        term,
        lanes=draw(st.sampled_from((True, True, False))),
    )
    known = (*known, ("r", reduce_kind))
    inner: list[Statement] = []
    if draw(st.booleans()):
        window = draw(_values(store_kind, ("i", "j", "t"), known, 1))
        inner.append(
            Reduce("w", function, "t", 3, store_kind, (), window, unroll=draw(st.booleans()))
        )
        known = (*known, ("w", store_kind))
    value = draw(_values(store_kind, ("i", "j"), known, 2))
    if reduce_kind == store_kind:
        value = Apply("add", (value, Local("r", reduce_kind)), store_kind)
    if store_kind in FLOATS and draw(st.booleans()):
        value = Apply(draw(st.sampled_from(_INEXACT)), (value,), store_kind)
    stride = draw(st.sampled_from((1, 1, 2)))
    inner.append(Store(_OUTPUT[store_kind], symbol("i") * 200 + symbol("j") * stride, value))
    width = draw(st.sampled_from(_WIDTHS))
    loop = For("j", width, draw(st.sampled_from(_LOOP_KINDS)), tuple(inner))
    condition = Compare("less", symbol("i"), draw(st.sampled_from((_EXTENT, 1))))
    last = If(condition, (loop,)) if draw(st.booleans()) else loop
    return LoopProgram(_BUFFERS, ("n", "m"), "i", _EXTENT, 1, (first, total, last))


def _arrays() -> list[Array]:
    """Small numbers, most of whose sums are exact, and zeros for the results."""
    rng = np.random.default_rng(0)
    small = rng.integers(-8, 9, _SIZE)
    inputs: list[Array] = [
        (small / 4).astype(np.float32),
        small.astype(np.int32),
        small / 8,
        small.astype(np.int8),
    ]
    return [*inputs, *(np.zeros(_SIZE, NUMPY[dtype]) for dtype in _INPUTS)]


@pytest.mark.broad
@settings(max_examples=100, derandomize=True)
@given(
    program=_programs(), n=st.integers(0, 40), m=st.integers(0, 9), level=st.sampled_from(RUNNABLE)
)
def test_compiled_programs_agree_with_the_interpreter(
    program: LoopProgram, n: int, m: int, level: Target
) -> None:
    """Any program gives the interpreter's numbers: integers exactly, floats within the functions'
    errors."""
    scalars = {"n": n, "m": m}
    expected, result, parts = _arrays(), _arrays(), _arrays()
    interpret(program, level, expected, scalars)
    run_program(program, level, result, scalars)
    for left, right in zip(expected[4:], result[4:], strict=True):
        if left.dtype.kind == "i":
            np.testing.assert_array_equal(right, left)
        else:
            # Sums are made in another order; cancellation may show their relative errors.
            np.testing.assert_allclose(right, left, rtol=2e-5, atol=2e-3)
    assert evaluate(program.extent, scalars) == _EXTENT
    for first, last in ((2, 3), (0, 2)):
        run_program(program, level, parts, scalars, first, last)
    assert [part.tobytes() for part in parts] == [whole.tobytes() for whole in result]

"""Models with more open sizes than a network has: what is compiled grows with the number of sizes,
not with its square.

Counted in kernels, in scalars and in instructions of ``main``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor
from tests.harness.lowering_harness import BEST, Compiled, compile_graph
from tests.hostile.model_builder import graph_of

import ingot
from ingot_build_rules.tools.view.report_data import report_data
from ingot_build_rules.tools.view.report_subject import read_subject
from ingot_compiler.host_program.main_program import build_program
from ingot_compiler.ir.dims import (
    Dim,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    evaluate,
    symbol,
    symbol_set,
)
from ingot_compiler.lowering.loops.fixed_sums import FixedSums
from ingot_compiler.lowering.loops.kernel_of import SCALAR_COUNT_MAX, kernel_arguments, kernel_of
from ingot_compiler.lowering.loops.loop_values import FromIndex, Load
from ingot_compiler.lowering.loops.program import Buffer, For, LetIndex, LoopProgram, Store
from ingot_compiler.oracles.interpret_loops import interpret_loops

_FEW, _MORE = 4 * SCALAR_COUNT_MAX, 5 * SCALAR_COUNT_MAX

_Nodes = list[NodeProto]


def _parts(count: int) -> list[str]:
    return [f"x{at}" for at in range(count)]


def _joined(shape: Callable[[int], list[int | str]], axis: int) -> Callable[[int], ModelProto]:
    """Concat of inputs."""

    def made(count: int) -> ModelProto:
        parts = _parts(count)
        inputs = [tensor(name, shape(at)) for at, name in enumerate(parts)]
        return make_model(
            [node("Concat", " ".join(parts), "y", axis=axis)], inputs, [tensor("y", None)]
        )

    return made


def _sizes(parts: list[str]) -> _Nodes:
    """``sizes``: of each part, as a tensor."""
    shapes = [node("Shape", name, f"shape_{name}") for name in parts]
    return [*shapes, node("Concat", " ".join(f"shape_{name}" for name in parts), "sizes", axis=0)]


def _split(count: int) -> ModelProto:
    """An input into parts that are as long as other inputs."""
    parts, results = _parts(count), [f"y{at}" for at in range(count)]
    nodes = [*_sizes(parts), node("Split", "z sizes", " ".join(results), axis=0)]
    inputs = [tensor("z", ["all"]), *(tensor(name, [f"n{name}"]) for name in parts)]
    return make_model(nodes, inputs, [tensor(name, None) for name in results])


def _there_and_back(count: int) -> ModelProto:
    """Joined, changed, split into the same parts."""
    parts, results = _parts(count), [f"y{at}" for at in range(count)]
    nodes = [
        *_sizes(parts),
        node("Concat", " ".join(parts), "all", axis=0),
        node("Sin", "all", "changed"),
        node("Split", "changed sizes", " ".join(results), axis=0),
    ]
    return make_model(
        nodes,
        [tensor(name, [f"n{name}"]) for name in parts],
        [tensor(name, None) for name in results],
    )


def _apart(count: int) -> ModelProto:
    """The same op for each input."""
    parts = _parts(count)
    return make_model(
        [node("Neg", name, f"y{name}") for name in parts],
        [tensor(name, [f"n{name}"]) for name in parts],
        [tensor(f"y{name}", None) for name in parts],
    )


def _found(count: int) -> ModelProto:
    """Parts whose sizes the data decide."""
    parts = _parts(count)
    found = [node("NonZero", name, f"found_{name}") for name in parts]
    joined = node("Concat", " ".join(f"found_{name}" for name in parts), "y", axis=1)
    inputs = [tensor(name, [f"n{name}"]) for name in parts]
    return make_model([*found, joined], inputs, [tensor("y", None, TensorProto.INT64)])


MODELS: Mapping[str, Callable[[int], ModelProto]] = {
    "vectors": _joined(lambda at: [f"n{at}"], 0),
    "rows": _joined(lambda at: [f"n{at}", "m", 3], 0),
    "columns": _joined(lambda at: ["m", f"n{at}", "k"], 1),
    "backwards": _joined(lambda at: [2, f"n{at}"], -1),
    "split": _split,
    "there and back": _there_and_back,
    "apart": _apart,
    "found": _found,
}


@pytest.fixture(scope="module")
def compiled() -> Callable[[str, int], Compiled]:
    """The loops of a model of so many sizes, each made once."""
    known: dict[tuple[str, int], Compiled] = {}

    def find(name: str, count: int) -> Compiled:
        if (name, count) not in known:
            known[name, count] = compile_graph(graph_of(MODELS[name](count)), BEST)
        return known[name, count]

    return find


@pytest.mark.broad
@pytest.mark.parametrize("name", MODELS)
def test_more_sizes_are_the_same_kernels(
    name: str, compiled: Callable[[str, int], Compiled]
) -> None:
    """No kernel is for one place among many, and none is given all sizes."""
    few, more = (
        {kernel_of(each) for each in compiled(name, count).programs} for count in (_FEW, _MORE)
    )
    assert few == more
    assert all(len(kernel.scalars) <= SCALAR_COUNT_MAX for kernel in more)


def _instruction_count(made: Compiled) -> int:
    kernels, offsets = range(len(made.programs)), [0] * len(made.fused.constants)
    program, _ = build_program(made.fused, made.programs, kernels, made.plan, offsets)
    return len(program.instructions)


@pytest.mark.broad
@pytest.mark.parametrize("name", MODELS)
def test_main_grows_evenly(name: str, compiled: Callable[[str, int], Compiled]) -> None:
    """Each size more adds as many instructions to it as the last one did."""
    counts = [_FEW, _MORE, 2 * _MORE - _FEW]
    first, second, third = (_instruction_count(compiled(name, count)) for count in counts)
    assert third - second == second - first


@pytest.mark.broad
@pytest.mark.parametrize("name", MODELS)
def test_results(name: str, tmp_path: Path) -> None:
    """Parts of all lengths, some of them empty, lie where they belong."""
    model = MODELS[name](SCALAR_COUNT_MAX + 4)
    check_model(model, [_feed(model, seed) for seed in range(3)], tmp_path)


def _feed(model: ModelProto, seed: int) -> dict[str, Array]:
    random, sizes = np.random.default_rng(seed), dict[str, int]()

    def size(of: str) -> int:
        return sizes.setdefault(of, int(random.choice((0, 1, 2, 7, 40))))

    feed: dict[str, Array] = {}
    for value in reversed(model.graph.input):  # the whole is as long as its parts
        dims = [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        total = sum(sizes.values())
        shape = [
            total if dim == "all" else size(dim) if isinstance(dim, str) else dim for dim in dims
        ]
        feed[value.name] = np.round(random.standard_normal(shape)).astype(np.float32)
    return feed


def test_a_report_counts_what_each_part_moves(tmp_path: Path) -> None:
    """The numbers that a kernel is given are those that its loops are evaluated with."""
    ingot.compile(MODELS["vectors"](_FEW)).save(tmp_path / "m.ingot")
    sizes = {name: 16 * (1 + at) for at, name in enumerate(_parts(_FEW))}
    shapes = {name: (size,) for name, size in sizes.items()}
    rows = report_data(read_subject(tmp_path / "m.ingot", None, shapes), None)["launches"]
    assert [row["bytes"] for row in rows] == [2 * 4 * size for size in sizes.values()]


# ---- what a kernel could compute from its scalars alone ------------------------------------------

_SCALARS = tuple(f"n{at}" for at in range(SCALAR_COUNT_MAX + 2))
_CHANGING = ("i", "j")
_LEAVES = st.one_of(
    st.integers(-9, 9).map(lambda number: number),
    st.sampled_from((*_SCALARS, *_CHANGING)).map(symbol),
)
_FUNCTIONS: tuple[Callable[[Dim, Dim], Dim], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    dim_floordiv,
    dim_mod,
    dim_min,
    dim_max,
)
_DIMS: st.SearchStrategy[Dim] = st.recursive(
    _LEAVES,
    lambda parts: st.tuples(st.sampled_from(_FUNCTIONS), parts, parts).map(
        lambda made: made[0](made[1], made[2])
    ),
    max_leaves=20,
)


@given(_DIMS, st.lists(st.integers(0, 50), min_size=12, max_size=12))
def test_the_same_number_over_other_scalars(dim: Dim, numbers: list[int]) -> None:
    """An expression is what it was; what stands for a part of it is never below 0, and alone where
    it stands for nothing that changes."""
    values = dict(zip((*_SCALARS, *_CHANGING), numbers, strict=True))
    sums = FixedSums(frozenset(_SCALARS))
    shorter = sums.shorter(dim)
    found = {name: evaluate(each, values) for each, name in sums.names.items()}
    assert min(found.values(), default=0) >= 0
    assert all(symbol_set(each) <= set(_SCALARS) for each in sums.names)
    assert evaluate(shorter, {**values, **found}) == evaluate(dim, values)


def _program(index: str, scalars: tuple[str, ...]) -> LoopProgram:
    """Each unit copies a row, and tells where it begins."""
    start, row, unit = symbol("at"), symbol(index), symbol("p")
    total: Dim = 0
    for name in scalars:
        total += symbol(name)
    body = (
        LetIndex("at", FromIndex(unit * total + 2 * total - unit, "i64")),
        For(
            index,
            dim_min(total, 5),
            "vector",
            (Store(1, unit * 5 + row, Load(0, row + dim_floordiv(total, 4))),),
        ),
        Store(2, unit, FromIndex(start + total, "i64")),
    )
    buffers = Buffer("i32", False), Buffer("i32", True), Buffer("i64", True)
    return LoopProgram(buffers, scalars, "p", dim_floordiv(total, 9), 1, body)


@pytest.mark.parametrize("index", ["j", "s0", "s_3"])
@pytest.mark.parametrize("count", [1, 2, SCALAR_COUNT_MAX, SCALAR_COUNT_MAX + 1, 20])
def test_a_kernel_does_what_its_program_does(index: str, count: int) -> None:
    """Whatever its loops are called, with the numbers that its caller computes for it."""
    program = _program(index, tuple(f"n{at}" for at in range(count)))
    kernel = kernel_of(program)
    sizes = {name: 3 + at for at, name in enumerate(program.scalars)}
    passed = [evaluate(dim, sizes) for dim in kernel_arguments(program)]
    units = evaluate(program.extent, sizes)
    results: list[list[Array]] = []
    for made, scalars in (
        (program, sizes),
        (kernel, dict(zip(kernel.scalars, passed, strict=True))),
    ):
        buffers: list[Array] = [
            np.arange(500, dtype=np.int32), np.zeros(500, np.int32), np.zeros(100, np.int64)
        ]  # fmt: skip
        interpret_loops(made, buffers, scalars, f32_lanes=8, last=units)
        results.append(buffers)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_kernel_knows_no_sizes_by_name() -> None:
    """Programs over other sizes are one kernel."""
    for count in (1, 2, SCALAR_COUNT_MAX, 20):
        ones, others = (tuple(f"{name}{at:02}" for at in range(count)) for name in "nm")
        assert kernel_of(_program("j", ones)) == kernel_of(_program("j", others))

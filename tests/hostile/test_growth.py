"""Small files that stand for something huge: the work stays in proportion to the file, or the error
names the node and the limit.

Work is counted in nodes, operands and kernels, never in time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import FunctionProto, ModelProto, NodeProto, helper
from tests.harness.end_to_end_harness import run_all_ways
from tests.harness.lowering_harness import BEST, HOST_ALONE
from tests.hostile.model_builder import FLOAT, INT64, graph_of, load, model, value

import ingot
from ingot_build_rules.making.values.interface import Interface, NamedTensor, check_interface
from ingot_compiler.backends.host.hooks import device_rules
from ingot_compiler.frontend.model.check_functions import DEPTH_MAX, NODE_COUNT_MAX
from ingot_compiler.ir.errors import LimitError, ModelError
from ingot_compiler.ir.graph import OptimizedGraph
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.fuse import fuse
from ingot_compiler.lowering.groups.fused import FusedGraph, groups_of
from ingot_compiler.passes.canonical.movement import FLATTENED_OPERANDS_MAX
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.placement.place import place
from ingot_runtime.format.limits import (
    ELEMENT_COUNT_MAX,
    NAME_SIZE_BYTES_MAX,
    RANK_MAX,
    SYMBOL_COUNT_MAX,
    TENSOR_COUNT_MAX,
)

LEVELS = 30  # a doubling of each could not be counted
OPERANDS_PER_NODE_MAX = 8
Level = Callable[[str, str, int], list[NodeProto]]
"""(the value of the level before, the one before that, level) -> nodes that make ``v{level}``."""


def _level(op: str, *operands: int | str, axis: int | None = None) -> Level:
    """Nodes of one op; operands: 0 the last level, 1 the one before, a text is a constant."""

    def nodes(last: str, before: str, level: int) -> list[NodeProto]:
        names = [(last, before)[item] if isinstance(item, int) else item for item in operands]
        return [helper.make_node(op, names, [f"v{level}"], axis=axis)]  # None is left out

    return nodes


def _transposed(last: str, before: str, level: int) -> list[NodeProto]:
    return [
        helper.make_node("Transpose", [last], [f"t{level}"]),
        helper.make_node("Add", [last, f"t{level}"], [f"v{level}"]),
    ]


def _joined_and_cut(last: str, before: str, level: int) -> list[NodeProto]:
    return [
        helper.make_node("Concat", [last, before, last], [f"c{level}"], axis=0),
        helper.make_node("Slice", [f"c{level}", "one", "three"], [f"v{level}"]),
    ]


def _chosen(last: str, before: str, level: int) -> list[NodeProto]:
    return [
        helper.make_node("Less", [last, before], [f"b{level}"]),
        helper.make_node("Where", [f"b{level}", last, before], [f"v{level}"]),
    ]


FAMILIES: dict[str, Level] = {
    "add": _level("Add", 0, 0),
    "add_both": _level("Add", 0, 1),
    "chosen": _chosen,
    "concat": _level("Concat", 0, 0, axis=0),
    "concat_both": _level("Concat", 0, 1, axis=0),
    "concat_thrice": _level("Concat", 0, 0, 1, axis=0),
    "expand": _level("Expand", 0, "two_rows"),
    "gather": _level("Gather", 0, "rows"),
    "joined_and_cut": _joined_and_cut,
    "matmul": _level("MatMul", 0, 0),
    "mul_both": _level("Mul", 0, 1),
    "pad": _level("Pad", 0, "edges"),
    "reshape": _level("Reshape", 0, "flat_row"),
    "tile": _level("Tile", 0, "twice"),
    "transposed": _transposed,
}
CONSTANTS = {
    "rows": np.array([1, 0, 1]), "one": np.array([1]), "three": np.array([3]), "two_rows": np.array([2, 1, 1]), "edges": np.array([1, 0, 1, 0]),
    "flat_row": np.array([1, -1]), "twice": np.array([2, 1]),
}  # fmt: skip


REFUSED: set[tuple[str, int | str]] = {("joined_and_cut", "n")}
"""Towers whose size is beyond every limit: the error names the node."""


def _tower(family: str, shape: list[int | str], levels: int = LEVELS) -> ModelProto:
    names = ["x", "x", *(f"v{level}" for level in range(levels))]
    steps = [FAMILIES[family](names[level + 1], names[level], level) for level in range(levels)]
    return model(
        [node for step in steps for node in step],
        [value("x", shape)],
        [value(names[-1], None)],
        CONSTANTS,
    )


def _fused(source: ModelProto) -> tuple[OptimizedGraph, FusedGraph]:
    optimized = optimize(graph_of(source))
    return optimized, fuse(place(optimized, HOST_ALONE), (device_rules(str(BEST)),))


@pytest.mark.parametrize("shape", [["n", 4], [4, 4]], ids=["open", "fixed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_an_operand_used_twice_is_computed_once(family: str, shape: list[int | str]) -> None:
    """Towers whose every level uses the one below again: nodes, operands and kernels stay in
    proportion to the file."""
    levels = 16 if family in ("pad", "concat_both", "concat_thrice", "tile", "matmul") else LEVELS
    source = _tower(family, shape, levels)
    if (family, shape[0]) in REFUSED:
        with pytest.raises(LimitError, match="where: node '"):
            graph_of(source)
        return
    optimized, fused = _fused(source)
    operands = sum(len(node.operands) for node in optimized.graph.nodes)
    limit = OPERANDS_PER_NODE_MAX * len(source.graph.node)
    if "concat" in family:
        limit = FLATTENED_OPERANDS_MAX * len(source.graph.node)
    assert len(optimized.graph.nodes) <= 4 * len(source.graph.node)
    assert operands <= limit
    assert len(groups_of(fused)) <= limit


def test_the_same_value_twice_is_not_taken_apart() -> None:
    """A tower of ``Concat(c, c)`` is as many concats of two."""
    optimized, _ = _fused(_tower("concat", ["n", 4], 16))
    assert [len(node.operands) for node in optimized.graph.nodes] == [2] * 16


def test_a_dense_block_is_still_one_concat() -> None:
    """Concats of concats along one axis, each also used elsewhere, are taken apart as far as the
    limit."""
    nodes: list[NodeProto] = []
    for level in range(12):
        last = f"c{level - 1}" if level else "x"
        nodes.append(helper.make_node("ReduceMax", [last, "rows"], [f"m{level}"]))
        nodes.append(helper.make_node("Concat", [last, f"m{level}"], [f"c{level}"], axis=0))
    source = model(nodes, [value("x", [1, 4])], [value("c11", None)], {"rows": np.array([0])})
    counts = [
        len(node.operands) for node in optimize(graph_of(source)).graph.nodes if node.op == "concat"
    ]
    assert counts == list(range(2, 14))


# ---- functions -----------------------------------------------------------------------------------


def _functions(depth: int, calls: int) -> ModelProto:
    """``f{depth-1}``, each of which calls the one below so often, the lowest has that many
    nodes."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    functions: list[FunctionProto] = []
    for level in range(depth):
        names = ["a", *(f"t{call}" for call in range(calls - 1)), "b"]
        op, domain = (f"f{level - 1}", "own") if level else ("Neg", "")
        body = [
            helper.make_node(op, [names[call]], [names[call + 1]], domain=domain)
            for call in range(calls)
        ]
        functions.append(helper.make_function("own", f"f{level}", ["a"], ["b"], body, opsets))
    node = helper.make_node(f"f{depth - 1}", ["x"], ["y"], "/top", domain="own")
    graph = helper.make_graph([node], "test", [value("x", [4])], [value("y", [4])])
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


@pytest.mark.parametrize(
    ("depth", "calls"), [(30, 2), (18, 2), (12, 8), (DEPTH_MAX + 1, 1), (5000, 1)]
)
def test_functions_that_call_one_another_are_refused_before_they_are_expanded(
    depth: int, calls: int
) -> None:
    """Too many nodes, or too many levels; the node that calls is named."""
    with pytest.raises(LimitError) as caught:
        load(_functions(depth, calls))
    assert caught.value.where == "node '/top' (f" + f"{depth - 1})"
    assert str(NODE_COUNT_MAX if calls > 1 else DEPTH_MAX) in caught.value.why


def test_functions_within_the_limits_are_expanded() -> None:
    """Eight levels of two calls are 256 nodes."""
    imported, _ = load(_functions(8, 2))
    assert len(imported.nodes) == 256


def test_functions_in_a_cycle_are_the_models_mistake() -> None:
    """No limit is reached, and nothing goes on for ever."""
    source = _functions(2, 2)
    source.functions[0].node[0].op_type = "f1"
    source.functions[0].node[0].domain = "own"
    with pytest.raises(ModelError, match="expanded"):
        load(source)


# ---- sizes ---------------------------------------------------------------------------------------


def _size_steps(count: int) -> ModelProto:
    """``n`` through ``(n + 7) // 3`` and a maximum, so many times, as the size of the result."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    for step in range(count):
        nodes += [
            helper.make_node("Add", [f"s{step}", "seven"], [f"a{step}"]),
            helper.make_node("Div", [f"a{step}", "three"], [f"d{step}"]),
            helper.make_node("Max", [f"d{step}", "one"], [f"s{step + 1}"]),
        ]
    nodes.append(helper.make_node("ConstantOfShape", [f"s{count}"], ["y"]))
    constants = {"seven": np.array([7]), "three": np.array([3]), "one": np.array([1])}
    return model(nodes, [value("x", ["n"])], [value("y", [None])], constants)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("count", [3, 400])
def test_arithmetic_on_sizes_of_any_depth(tmp_path: Path, count: int) -> None:
    """What is too deep for an expression is computed by kernels, and the answer is the same."""
    path = tmp_path / "m.ingot"
    ingot.compile(_size_steps(count)).save(path)
    size = 1000
    for _ in range(count):
        size = max((size + 7) // 3, 1)
    (outputs,) = run_all_ways(path, [{"x": np.zeros(1000, np.float32)}])
    assert outputs["y"].shape == (size,)


def test_sizes_that_are_polynomials(tmp_path: Path) -> None:
    """Sums and products that double with every step end as sizes read at run time."""
    nodes = [helper.make_node("Shape", ["x"], ["a"]), helper.make_node("Shape", ["y"], ["b"])]
    last = ("a", "b")
    for step in range(12):
        nodes.append(helper.make_node("Add", [*last], [f"p{step}"]))
        nodes.append(helper.make_node("Mul", [f"p{step}", last[0]], [f"q{step}"]))
        nodes.append(helper.make_node("Mod", [f"q{step}", "five"], [f"r{step}"]))
        last = (f"r{step}", f"p{step}")
    nodes.append(helper.make_node("ConstantOfShape", [last[0]], ["z"]))
    path = tmp_path / "m.ingot"
    source = model(
        nodes, [value("x", ["n"]), value("y", ["m"])], [value("z", [None])], {"five": np.array([5])}
    )
    ingot.compile(source).save(path)
    a, b = 6, 9
    for _ in range(12):
        a, b = (a + b) * a % 5, a + b
    (outputs,) = run_all_ways(path, [{"x": np.zeros(6, np.float32), "y": np.zeros(9, np.float32)}])
    assert outputs["z"].shape == (a,)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("count", [8, 15, 30])
def test_lists_of_sizes_that_double(tmp_path: Path, count: int) -> None:
    """``Concat(s, s)`` of sizes: the list is computed, not chosen from element by element."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [
        helper.make_node("Concat", [f"s{step}"] * 2, [f"s{step + 1}"], axis=0)
        for step in range(count)
    ]
    nodes.append(helper.make_node("ReduceMax", [f"s{count}"], ["y"], keepdims=0))
    source = model(nodes, [value("x", ["n", 4])], [value("y", [], INT64)])
    if count == 30:
        optimize(graph_of(source))  # 2^31 elements: nobody wants to run it
        return
    path = tmp_path / "m.ingot"
    ingot.compile(source).save(path)
    (outputs,) = run_all_ways(path, [{"x": np.zeros((9, 4), np.float32)}])
    assert outputs["y"] == 9


@pytest.mark.broad
@pytest.mark.parametrize("count", [1025, 1500])
def test_a_sum_of_too_many_sizes_names_its_node(count: int) -> None:
    """So many inputs, each of a size of its own."""
    names = [f"x{index}" for index in range(count)]
    node = helper.make_node("Concat", names, ["y"], "/join", axis=0)
    source = model([node], [value(name, [f"n{name}"]) for name in names], [value("y", [None])])
    with pytest.raises(LimitError) as caught:
        graph_of(source)
    assert caught.value.where == "node '/join' (Concat)"
    assert "1024 terms" in caught.value.why


@pytest.mark.parametrize("op", ["Slice", "Tile"])
def test_sizes_that_grow_with_every_node_name_one(op: str) -> None:
    """Functions inside functions, or factors beyond 64 bits."""
    operands = ["one", "many"] if op == "Slice" else ["twice"]
    nodes = [
        helper.make_node(op, [f"v{step}", *operands], [f"v{step + 1}"], f"/{step}")
        for step in range(200)
    ]
    constants = {"one": np.array([1]), "many": np.array([1 << 20]), "twice": np.array([2])}
    with pytest.raises(LimitError) as caught:
        graph_of(model(nodes, [value("v0", ["n"])], [value("v200", [None])], constants))
    assert caught.value.where.startswith("node '/")
    assert "expected at most" in caught.value.why


# ---- what the bundle format can hold -------------------------------------------------------------


@pytest.mark.parametrize("inputs", [True, False])
def test_too_many_inputs_or_outputs(inputs: bool) -> None:
    """Refused when the file is read."""
    names = [f"x{index}" for index in range(TENSOR_COUNT_MAX + 1)]
    if inputs:
        source = model(
            [helper.make_node("Sum", names, ["y"])],
            [value(name, [2]) for name in names],
            [value("y", [2])],
        )
    else:
        nodes = [helper.make_node("Neg", ["x"], [name]) for name in names]
        source = model(nodes, [value("x", [2])], [value(name, [2]) for name in names])
    with pytest.raises(LimitError, match="too many " + ("inputs" if inputs else "outputs")):
        load(source)


def _tensor(
    name: str = "x", shape: tuple[int | str, ...] = (), dtype: DType = "f32"
) -> NamedTensor:
    return NamedTensor(name, dtype, shape)


@pytest.mark.parametrize(
    ("tensor", "limit"),
    [
        (_tensor(shape=(1,) * (RANK_MAX + 1)), RANK_MAX),
        (_tensor(shape=(ELEMENT_COUNT_MAX // 4 + 1,)), ELEMENT_COUNT_MAX),
        (_tensor(shape=(0, ELEMENT_COUNT_MAX)), ELEMENT_COUNT_MAX),
        (_tensor(shape=("n" * (NAME_SIZE_BYTES_MAX + 1),)), NAME_SIZE_BYTES_MAX),
        (_tensor("é" * (NAME_SIZE_BYTES_MAX // 2 + 1)), NAME_SIZE_BYTES_MAX),
    ],
)
def test_an_input_or_output_that_no_bundle_holds(tensor: NamedTensor, limit: int) -> None:
    """The tensor is named, and the limit."""
    for kind, interface in (
        ("input", Interface((tensor,), ())),
        ("output", Interface((), (tensor,))),
    ):
        with pytest.raises(LimitError) as caught:
            check_interface(interface)
        assert caught.value.where.startswith(f"{kind} '{tensor.name[:8]}")
        assert str(limit) in caught.value.why


def test_too_many_open_sizes() -> None:
    """As many as there may be, and one more."""
    tensors = [_tensor(f"x{index}", (f"n{index}",)) for index in range(SYMBOL_COUNT_MAX + 1)]
    check_interface(Interface(tuple(tensors[:-1]), ()))
    with pytest.raises(LimitError, match="hold"):
        check_interface(Interface(tuple(tensors), ()))


def test_a_bundle_is_refused_before_code_is_made() -> None:
    """An output of 17 dimensions, from the whole command's chain."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    source = model(
        nodes,
        [value("x", [1], FLOAT)],
        [value("y", None)],
        {"shape": np.ones(RANK_MAX + 1, np.int64)},
    )
    with pytest.raises(LimitError) as caught:
        ingot.compile(source)
    assert caught.value.where == "output 'y'"
    assert caught.value.exit_code == 3

"""Matrices of f32 that hold 16-bit numbers: found by their bits, stored in half the bytes, and every
result has the bits that f32 weights give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.harness.codegen_harness import RUNNABLE, interpret, run_program
from tests.harness.end_to_end_harness import node, tensor
from tests.harness.kernels_harness import aligned, empty
from tests.unit.lowering.test_contraction_dtypes import program

import ingot
import ingot_runtime
from ingot_compiler.frontend.families.weights.narrow_weights import factors_and_tables, in_16_bits
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.model.parse_imported import parse_imported
from ingot_compiler.frontend.model.print_imported import print_imported
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.targets.target import Target, parse_target

SHAPE = (1024, 512)
HALVES: tuple[DType, ...] = ("bf16", "f16")
WORDS: dict[DType, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


def numbers_of(halves: list[int], dtype: DType) -> Array:
    """f32 numbers of a type, by their bits."""
    numbers: Array = np.array(halves, np.uint16).view(WORDS[dtype]).astype(np.float32)
    return numbers


def stored(array: Array) -> tuple[DType, memoryview] | None:
    """What ``in_16_bits`` makes of a matrix."""
    return in_16_bits(TensorType("f32", array.shape), memoryview(array.tobytes()))


@given(
    st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=40),
    st.sampled_from(["bf16", "f16"]),
    st.integers(0, 1023),
    st.integers(1, 0xFFFF),
)
@settings(max_examples=30)
def test_it_is_found_by_its_bits(halves: list[int], dtype: DType, row: int, low: int) -> None:
    """Whatever the numbers are (denormal, infinite): what is kept widens to the same bits, and one
    number that is neither, or NaN, keeps all of the matrix."""
    base = np.full(SHAPE, 0.25, np.float32)
    base[row, : len(halves)] = numbers_of(halves, dtype)
    found = stored(base)
    is_bf16 = not (base.view(np.uint32) & 0xFFFF).any()
    has_nan = bool(np.isnan(base).any())
    assert (found is None) == has_nan
    if found is not None:
        kept, content = found
        assert kept == ("bf16" if is_bf16 else "f16")
        wide = np.frombuffer(content, np.uint16).view(WORDS[kept]).astype(np.float32)
        assert wide.tobytes() == base.tobytes()
    base.view(np.uint32)[row, 0] = 0x3F800000 | low | 1  # above 1, with the last bit of all
    assert stored(base) is None


def test_nan_keeps_its_bits(tmp_path: Path) -> None:
    """A matrix of bf16 that is folded has the sign and the payload of its NaN."""
    matrix = np.full(SHAPE, 0.25, np.float32)
    matrix.view(np.uint32)[3, :2] = 0xFFC00000, 0x7FC10000
    graph = helper.make_graph(
        [node("Identity", "m", "y"), node("Gather", "m ids", "rows")],
        "g",
        [tensor("ids", ["n"], TensorProto.INT64)],
        [tensor("y", None), tensor("rows", None)],
        [numpy_helper.from_array(matrix, "m")],
    )
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    ingot.compile(model, targets="x86-64-v3").save(tmp_path / "m.ingot")
    results = ingot_runtime.load(tmp_path / "m.ingot").run({"ids": np.array([3])})
    assert results["y"].tobytes() == matrix.tobytes()
    assert results["rows"].tobytes() == matrix[3].tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.ones((512, 512), np.float32),
        np.ones((2, 2, 512, 512), np.float32),
        np.ones(1 << 20, "f4"),
    ],
)
def test_small_ones_and_others_stay(array: Array) -> None:
    """A small matrix is read from a cache; what is no matrix is no factor and no table."""
    assert stored(array) is None


@pytest.mark.parametrize(
    ("name", "is_narrow"),
    [
        ("table", True),
        ("turned", True),
        ("moved", True),
        ("right", True),
        ("first", True),
        ("last", True),
        ("first_bias", False),
        ("picked", True),
        ("both", False),
        ("left", False),
        ("bias", False),
        ("added", False),
        ("given", False),
        ("unread", False),
    ],
)
def test_who_reads_it_decides(name: str, *, is_narrow: bool) -> None:
    """Right factors and tables of look-ups alone, also through moves; not what an Add, a left
    factor, the third operand of Gemm, a move to elsewhere or a caller reads."""
    nodes = [
        node("Gather", "table ids", "rows"),
        node("Transpose", "table", "turned"),
        node("Identity", "moved", "moved_on"),
        node("Transpose", "moved_on", "moved_twice"),
        node("MatMul", "rows turned", "y"),
        node("MatMul", "rows moved_twice", "v"),
        node("MatMul", "rows both", "z"),
        node("Add", "z both", "w"),
        node("MatMul", "left y", "l"),
        node("Gather", "left ids", "left_rows"),
        node("Gemm", "rows right bias", "g"),
        node("Identity", "added", "added_on"),
        node("Add", "g added_on", "a"),
        node("MatMul", "rows given", "m"),
        node("Transpose", "unread", "unread_on"),
        node("MoE", "rows scores first first_bias last", "e"),
        node("GatherND", "picked places", "p"),
    ]
    assert (name in factors_and_tables(nodes, ["given"])) == is_narrow


PLACES = {
    "right": "MatMul x m",
    "left": "MatMul m x",
    "bias": "Gemm a b m",
    "turned": "Transpose m",
    "same": "Identity m",
}


@pytest.mark.sweep(8)
@pytest.mark.parametrize("place", PLACES)
def test_no_bundle_grows(place: str, tmp_path: Path) -> None:
    """Beside a look-up, whatever else reads the matrix: halves take no more than f32 with the same
    readers does."""
    op, *operands = PLACES[place].split()
    nodes = [node("Gather", "m ids", "rows"), node(op, " ".join(operands), "y")]
    sizes: dict[str, list[int]] = {"x": [512, 1024], "a": [1024, 3], "b": [3, 512]}
    inputs = [tensor(name, sizes[name]) for name in operands if name != "m"]
    inputs.append(tensor("ids", ["n"], TensorProto.INT64))
    outputs = [tensor("rows", None), tensor("y", None)]
    opsets = [helper.make_opsetid("", 20)]
    found: list[int] = []
    for changed in (0, 1):
        matrix = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float16)
        matrix = matrix.astype(np.float32)
        matrix.view(np.uint32)[0, 0] |= changed  # no f16 any more
        weights = [numpy_helper.from_array(matrix, "m")]
        graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
        path = tmp_path / f"{changed}.ingot"
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        ingot.compile(model, targets="x86-64-v3").save(path)
        found.append(path.stat().st_size)
    assert found[0] <= found[1]


@pytest.mark.sweep(5)
@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", HALVES)
@given(seed=st.integers(0, 2**32), sizes=st.sampled_from([(1, 19, 6), (4, 37, 5), (7, 64, 3)]))
@settings(max_examples=6)
def test_kernels_widen_exactly(
    target: Target, dtype: DType, seed: int, sizes: tuple[int, int, int]
) -> None:
    """Any bits, denormal ones too, but those whose sums are infinite: the machine gives what it
    gives of the same numbers in f32."""
    a, halves = drawn_factors(seed, sizes, dtype)
    narrow, wide = empty(sizes[:2]), empty(sizes[:2])
    run_program(program(target, sizes, ("f32", dtype, "f32")), target, [a, halves, narrow])
    widened = aligned(halves.view(WORDS[dtype]).astype(np.float32))
    run_program(program(target, sizes, ("f32", "f32", "f32")), target, [a, widened, wide])
    assert narrow.tobytes() == wide.tobytes()


@pytest.mark.parametrize("dtype", HALVES)
def test_the_interpreter_widens_exactly(dtype: DType) -> None:
    """The same of the interpreter of loops."""
    sizes = 2, 5, 3
    target = parse_target("x86-64-v3")
    a, halves = drawn_factors(5, sizes, dtype)
    wide = halves.view(WORDS[dtype]).astype(np.float32)
    results = np.zeros((2, 10), np.float32)
    kinds: tuple[DType, DType] = (dtype, "f32")
    for kind, b, result in zip(kinds, (halves, wide), results, strict=True):
        loops = program(target, sizes, ("f32", kind, "f32"))
        interpret(loops, target, [a.ravel(), b.ravel(), result], {})
    assert results[0].tobytes() == results[1].tobytes()


def drawn_factors(seed: int, sizes: tuple[int, int, int], dtype: DType) -> tuple[Array, Array]:
    """A of f32, and B as kernels read it: f16, or the bits of bf16, all of them below 2^60."""
    rows, columns, depth = sizes
    rng = np.random.default_rng(seed)
    halves = rng.integers(0, 0x10000, (depth, columns)).astype(np.uint16)
    infinite, large = (0x7C00, 0x4000) if dtype == "f16" else (0x5D80, 0x4000)
    halves[(halves & 0x7FFF) >= infinite] &= 0xFFFF - large
    a = rng.standard_normal((rows, depth)).astype(np.float32)
    kind = np.uint16 if dtype == "bf16" else np.float16
    return aligned(a), aligned(halves.view(kind), kind)


def tied(matrix: Array, *, is_read_elsewhere: bool) -> ModelProto:
    """A table of embeddings that is also the last product, as Gemm and by a Transpose; with a
    further reader it stays in f32."""
    nodes = [
        node("Gather", "table ids", "rows"),
        node("Gemm", "rows table", "y", transB=1),
        node("Transpose", "table", "turned", perm=[1, 0]),
        node("MatMul", "rows turned", "z"),
    ]
    outputs = [tensor(name, None) for name in ("y", "z")]
    if is_read_elsewhere:
        nodes.append(node("Shape", "table", "sizes"))
        outputs.append(tensor("sizes", None, TensorProto.INT64))
    inputs = [tensor("ids", ["n"], TensorProto.INT64)]
    weights = [numpy_helper.from_array(matrix, "table")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.broad
@pytest.mark.parametrize("dtype", HALVES)
def test_one_matrix_of_several_users_is_stored_in_halves(dtype: DType, tmp_path: Path) -> None:
    """The bundle has the table and the panels of the product, a MiB each; results are those of f32
    weights, to the bit, native and stepped, for one row and for several."""
    rng = np.random.default_rng(3)
    matrix = rng.standard_normal(SHAPE).astype(WORDS[dtype]).astype(np.float32)
    matrix[7, :4] = 2.0**-24, -0.0, 0.0, 2.0**15
    feeds = [{"ids": np.array(ids)} for ids in ([7], [0, 1023, 5, 7, 7, 900, 1, 2, 3])]
    results: list[Any] = []
    sizes: list[int] = []
    for is_read_elsewhere in (False, True):
        path = tmp_path / f"{is_read_elsewhere}.ingot"
        model = tied(matrix, is_read_elsewhere=is_read_elsewhere)
        ingot.compile(model, targets="x86-64-v3").save(path)
        sessions = [ingot_runtime.load(path, executor=executor) for executor in ("aot", "vm")]
        results += [[session.run(feed) for feed in feeds] for session in sessions]
        sizes.append(path.stat().st_size)
    assert sizes[0] < 2.6 * 2**20
    assert sizes[1] > 4 * 2**20
    for native, *others in zip(*results, strict=True):
        for name in ("y", "z"):
            assert {other[name].tobytes() for other in others} == {native[name].tobytes()}


def test_the_stage_tells_it() -> None:
    """The text of the imported model says how a weight is stored, and reads back."""
    model = tied(np.ones(SHAPE, np.float32), is_read_elsewhere=False)
    written: list[bytes] = []

    def store(content: memoryview) -> str:
        written.append(bytes(content))
        return str(len(written) - 1)

    imported, _ = import_model(model.SerializeToString(), _no_file, store, [], [])
    text = print_imported(imported)
    assert "f32[1024, 512] weight 0 as bf16" in text
    assert parse_imported(text) == imported
    assert len(written[0]) == 2 * 1024 * 512


def _no_file(location: str, offset_bytes: int, size_bytes: int | None) -> memoryview:
    raise AssertionError((location, offset_bytes, size_bytes))

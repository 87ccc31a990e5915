"""Sparse tensors of a model file: they mean what the dense ones mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, SparseTensorProto, helper, numpy_helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, Outcome, run_model, translate

import ingot
from ingot_compiler.ir.errors import LimitError, ModelError

AGREES = Outcome("agrees")
DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16",
    "int32", "int64", "uint32", "uint64", "bool", "int4", "uint4",
]  # fmt: skip


def _sparse(dense: Array, *, is_flat: bool, name: str = "w") -> SparseTensorProto:
    """The elements of ``dense`` that are not 0, by row-major numbers or by one for each axis."""
    places = np.argwhere(dense != 0)
    flat = np.flatnonzero(dense != 0)
    values = numpy_helper.from_array(dense[dense != 0], name)
    indices = numpy_helper.from_array(flat if is_flat else places, f"{name}_at")
    return helper.make_sparse_tensor(values, indices, dense.shape)


def _model(sparse: SparseTensorProto, form: str, dtype: str) -> ModelProto:
    """It as an initializer, as one of a region, as a Constant."""
    kind = sparse.values.data_type
    nodes = [node("Identity", "w", "y")]
    if form == "constant":
        nodes = [node("Constant", "", "w", sparse_value=sparse), *nodes]
    if form == "region":
        branch = helper.make_graph([node("Identity", "w", "z")], "b", [], [tensor("z", None, kind)])
        branch.sparse_initializer.append(sparse)
        nodes = [node("If", "on", "y", then_branch=branch, else_branch=branch)]
    model = make_model(nodes, [tensor("on", (), 9)], [tensor("y", None, kind)])
    if form == "initializer":
        model.graph.sparse_initializer.append(sparse)
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 21))
    return model


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["initializer", "constant", "region"])
@pytest.mark.parametrize("is_flat", [True, False])
def test_a_sparse_tensor_is_the_dense_one(dtype: str, form: str, is_flat: bool) -> None:
    """Of every element type, wherever it stands and however its elements are counted; an empty
    one, too."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for shape in ((3, 5), (7,), (2, 1, 3), (2, 0)):
        drawn = np.random.default_rng(1).integers(0, 3, shape)
        dense = drawn.astype(kind)
        model = _model(_sparse(dense, is_flat=is_flat), form, dtype)
        expected = dense.view(np.uint16) if dtype == "bfloat16" else dense
        assert run_model(model, [np.array(True)], [expected]) == AGREES


def test_weights_that_are_sparse(tmp_path: Path) -> None:
    """A product with them runs in every way."""
    dense = np.where(np.random.default_rng(2).random((40, 24)) < 0.1, 1.5, 0).astype(np.float32)
    model = make_model([node("MatMul", "x w", "y")], [tensor("x", ("n", 40))], [tensor("y", None)])
    model.graph.sparse_initializer.append(_sparse(dense, is_flat=True))
    ingot.compile(model).save(tmp_path / "m.ingot")
    x = np.arange(120, dtype=np.float32).reshape(3, 40)
    (found,) = run_all_ways(tmp_path / "m.ingot", [{"x": x}])
    np.testing.assert_array_equal(found["y"], x @ dense)


def _stated(dims: Sequence[int], indices: Array) -> ModelProto:
    values = numpy_helper.from_array(np.ones(2, np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(indices, "at"), dims)
    return _model(sparse, "initializer", "float32")


@pytest.mark.parametrize(
    ("dims", "indices", "words"),
    [
        ((3, 5), [0, 15], "expected indices below [15], got [15]"),
        ((3, 5), [-1, 2], "expected indices below [15], got [-1]"),
        ((3, 5), [[0, 0], [2, 5]], "expected indices below [3, 5], got [2, 5]"),
        ((3, 5), [1, 2, 3], "expected indices of shape [2] or [2, 2], got [3]"),
        ((-3, 5), [1, 2], "expected sizes >= 0, got [-3, 5]"),
    ],
)  # fmt: skip
def test_a_sparse_tensor_that_contradicts_itself(
    dims: Sequence[int], indices: Sequence[object], words: str
) -> None:
    """It is refused with what was expected."""
    with pytest.raises(ModelError) as caught:
        translate(_stated(dims, np.array(indices)), MemoryStore())
    assert words in caught.value.why
    assert caught.value.where == "initializer 'w'"


def test_a_few_bytes_take_no_memory() -> None:
    """A file may name any size: it is refused before it is allocated."""
    with pytest.raises(LimitError, match="a sparse tensor is too large"):
        translate(_stated((1 << 30, 1 << 30), np.array([0, 1])), MemoryStore())

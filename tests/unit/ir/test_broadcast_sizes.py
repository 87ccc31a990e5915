"""Open sizes that broadcast: the other one where one of them is 1, 0 among them; nothing else is
accepted, by any loader.

In: models in which sizes meet, all sizes below 4. Out: results compared with ONNX's reference,
which is numpy. Not done here: which sizes of other ops must be equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from tests.c_loader import CBundle, LoaderError
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import WAYS, make_model, node, reference, tensor
from tests.harness.lowering_harness import assert_close

import ingot
import ingot_runtime
from ingot_compiler.ir.dims import Dim, dim_broadcast, evaluate, format_dim, symbol, terms_of

SIZES = range(4)
Shapes = Mapping[str, Sequence[int | str]]
_TWO: Shapes = {"a": ("n", 2), "b": ("m", 2)}
_THREE: Shapes = {**_TWO, "c": ("k", 2)}
_TYPES = {"f": TensorProto.FLOAT, "b": TensorProto.BOOL, "i": TensorProto.INT64}


@dataclass(frozen=True, slots=True)
class Meeting:
    """Sizes meet in ``nodes``; ``dtypes`` of the inputs, a letter each."""

    nodes: Sequence[NodeProto]
    dtypes: str = "ff"
    shapes: Shapes = field(default_factory=lambda: _TWO)
    constants: Mapping[str, Array] | None = None

    def model(self) -> ModelProto:
        """Its model, with open sizes."""
        inputs = [
            tensor(name, shape, _TYPES[dtype])
            for (name, shape), dtype in zip(self.shapes.items(), self.dtypes, strict=True)
        ]
        output = tensor("y", None, _TYPES[_OUTPUTS.get(self.nodes[-1].op_type, self.dtypes[-1])])
        return make_model(self.nodes, inputs, [output], self.constants)

    def feed(self, sizes: Mapping[str, int]) -> dict[str, Array]:
        """Inputs of some sizes."""
        random, feed = np.random.default_rng(1), dict[str, Array]()
        for (name, shape), dtype in zip(self.shapes.items(), self.dtypes, strict=True):
            own = [sizes[dim] if isinstance(dim, str) else dim for dim in shape]
            drawn = random.integers(1, 4, own)
            kinds = {"f": np.float32, "b": np.bool_, "i": np.int64}
            feed[name] = (drawn % 2 if dtype == "b" else drawn).astype(kinds[dtype])
        return feed


_OUTPUTS = {
    **dict.fromkeys(("Shape", "Size"), "i"),
    **dict.fromkeys(("Equal", "Less", "GreaterOrEqual"), "b"),
    **dict.fromkeys(("ConstantOfShape", "Expand"), "f"),
}


def _of(op: str, dtypes: str = "ff") -> Meeting:
    inputs = " ".join("abc"[: len(dtypes)])
    return Meeting([node(op, inputs, "y")], dtypes, _TWO if len(dtypes) == 2 else _THREE)


_MATRICES: Shapes = {"a": ("n", 2, 3), "b": ("m", 3, 2)}
_SUM = node("Add", "a b", "c")
MEETINGS = {
    **{op: _of(op) for op in ("Add", "Sub", "Mul", "Div", "Pow", "Mod")},
    **{op: _of(op) for op in ("Equal", "Less", "GreaterOrEqual")},
    **{op: _of(op, "bb") for op in ("And", "Or", "Xor")},
    **{op: _of(op, "ii") for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{f"{op} of 3": _of(op, "fff") for op in ("Max", "Min", "Sum")},
    "Where": _of("Where", "bff"),
    "MatMul": Meeting([node("MatMul", "a b", "y")], shapes=_MATRICES),
    "MatMul of 4 axes": Meeting(
        [node("MatMul", "a b", "y")], shapes={"a": ("n", 1, 2, 3), "b": ("m", "k", 3, 2)}
    ),
    "Einsum": Meeting([node("Einsum", "a b", "y", equation="bij,bjk->bik")], shapes=_MATRICES),
    "Einsum by elements": Meeting([node("Einsum", "a b", "y", equation="ij,ij->ij")]),
    "Expand": Meeting([node("Shape", "b", "s"), node("Expand", "a s", "y")]),
    "Shape": Meeting([_SUM, node("Shape", "c", "y")]),
    "Size": Meeting([_SUM, node("Size", "c", "y")]),
    "ConstantOfShape": Meeting([_SUM, node("Shape", "c", "s"), node("ConstantOfShape", "s", "y")]),
    "Expand of a sum's shape": Meeting(
        [_SUM, node("Shape", "c", "s"), node("Expand", "one s", "y")],
        constants={"one": np.ones((1, 2), np.float32)}
    ),
    "a sum behind a sum": Meeting([_SUM, node("Mul", "c a", "y")]),
    "a sum, summed up": Meeting([_SUM, node("ReduceSum", "c", "y", keepdims=0)]),
    "a sum, concatenated": Meeting([_SUM, node("Concat", "a c", "y", axis=0)]),
    "a sum, multiplied": Meeting(
        [_SUM, node("Transpose", "c", "t"), node("MatMul", "c t", "y")]
    ),
    "one size in two spellings": Meeting(
        [
            node("Shape", "a", "s"), node("Max", "s ones", "t"), node("Expand", "one t", "c"),
            node("Add", "a c", "y"),
        ],
        constants={"ones": np.ones(2, np.int64), "one": np.ones((1, 2), np.float32)},
        dtypes="f", shapes={"a": ("n", 2)},
    ),
    "Softmax of a sum": Meeting([_SUM, node("Softmax", "c", "y", axis=0)]),
}  # fmt: skip


def _expected(model: ModelProto, feed: Mapping[str, Array]) -> Array | None:
    """What ONNX's reference gives; None where it refuses."""
    try:
        return reference(model, feed)["y"]
    except (RuntimeError, TypeError, ValueError):
        return None


@pytest.mark.sweep(60)
@pytest.mark.parametrize("name", MEETINGS)
def test_all_small_sizes_that_meet(name: str, tmp_path: Path) -> None:
    """The result is numpy's, its shape too, or both loaders and the vm refuse the call, for every
    choice of sizes."""
    meeting = MEETINGS[name]
    model = meeting.model()
    path = tmp_path / "model.ingot"
    ingot.compile(model).save(path)
    sessions = [ingot_runtime.load(path, threads=count, executor=how) for count, how in WAYS]
    in_c = CBundle(path)
    # A sum of which only the shape is needed is not computed, nor checked.
    first, *others = [made.op_type for made in meeting.nodes]
    is_shape = first == "Add" and not {"Shape", "Size"}.isdisjoint(others)
    names = sorted(
        {dim for shape in meeting.shapes.values() for dim in shape if isinstance(dim, str)}
    )
    for chosen in itertools.product(SIZES, repeat=len(names)):
        feed = meeting.feed(dict(zip(names, chosen, strict=True)))
        expected = _expected(model, feed)
        for run in (*(session.run for session in sessions), in_c.run):
            try:
                found = run(feed)["y"]
            except (ingot_runtime.BundleError, LoaderError):
                found = None
            if expected is not None or not is_shape:
                assert (found is None) == (expected is None), chosen
            if expected is not None and found is not None:
                assert_close(expected, found, 1e-5)
    in_c.close()


@pytest.mark.sweep(6)
@pytest.mark.parametrize("size", SIZES)
def test_an_open_size_meets_a_number(size: int, tmp_path: Path) -> None:
    """So for an open size and a size that the model says."""
    meeting = Meeting([node("Add", "a b", "y")], shapes={"a": ("n", 2), "b": (size, 2)})
    model = meeting.model()
    path = tmp_path / "model.ingot"
    ingot.compile(model).save(path)
    session = ingot_runtime.load(path)
    for other in SIZES:
        feed = meeting.feed({"n": other})
        expected = _expected(model, feed)
        if expected is None:
            with pytest.raises(ingot_runtime.BundleError, match="does not broadcast"):
                session.run(feed)
        else:
            np.testing.assert_array_equal(session.run(feed)["y"], expected)


def test_sizes_broadcast_in_any_order() -> None:
    """One expression, whatever the order; its value is the size that is not 1."""
    n, m, k = map(symbol, "nmk")
    one = dim_broadcast(dim_broadcast(n, m), k)
    assert one == dim_broadcast(k, dim_broadcast(m, n)) == dim_broadcast(one, m)
    for size, *places in itertools.product(SIZES, (0, 1), (0, 1), (0, 1)):
        sizes = {name: size if at else 1 for name, at in zip("nmk", places, strict=True)}
        assert evaluate(one, sizes) == (size if any(places) else 1)
    assert [dim_broadcast(n, 1), dim_broadcast(n, n), dim_broadcast(n, 0), dim_broadcast(7, n)] == [
        n,
        n,
        0,
        7,
    ]


@pytest.mark.broad
def test_many_sizes_broadcast_without_depth() -> None:
    """A thousand sizes are one expression, ten calls deep."""
    sizes: list[Dim] = [symbol(f"n{number}") for number in range(1000)]
    total = reduce(dim_broadcast, sizes)
    ((atoms, _),) = terms_of(total)
    assert len(atoms) == 1
    assert format_dim(total).count("broadcast") == 999

"""What ops take for granted of sizes: refused in numbers at compile time, required at run time
where sizes are open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.harness.ir_harness import op_name
from tests.harness.lowering_harness import BEST, HOST_ALONE

from ingot_compiler.backends.host.hooks import device_rules
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import Dim, evaluate, symbol
from ingot_compiler.ir.graph import OptimizedGraph
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.shape_constraints import requirements
from ingot_compiler.ir.sizes.profile import SizeRange
from ingot_compiler.ir.specialise import specialise
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.fuse import fuse
from ingot_compiler.lowering.groups.fused import Requirement
from ingot_compiler.placement.place import place

Sizes = Sequence[tuple[int, ...]]
WINDOW = {"strides": (1,), "pads_before": (0,), "pads_after": (0,), "dilations": (1,)}
TRANSPOSED = {**WINDOW, "output_padding": (0,)}
ATTENTION = {"scale": 1.0, "causal": False, "nan_to_zero": False}
RESIZE = {
    "antialias": False, "axes": (1,), "coordinates": "asymmetric", "cubic_coefficient": -0.75, "exclude_outside": False,
    "extrapolation_value": 0.0, "mode": "nearest", "nearest_mode": "floor", "roi": (0.0, 1.0), "scales": (0.0,), "sizes": (4,),
}  # fmt: skip
GRU = {
    "activations": ("sigmoid", "tanh"), "alphas": (0.0, 0.0), "betas": (0.0, 0.0), "cell": "gru", "clip": 0.0,
    "has_lengths": True, "has_peepholes": False, "input_forget": False, "is_quantized": False, "linear_before_reset": True, "reverse": (False,),
}  # fmt: skip
LSTM = {
    **GRU, "activations": ("sigmoid", "tanh", "tanh"), "alphas": (0.0,) * 3, "betas": (0.0,) * 3, "cell": "lstm",
    "has_lengths": False, "is_quantized": True, "linear_before_reset": False,
}  # fmt: skip
# op, attributes, sizes that fit, sizes that contradict one of the constraints each, element types
# where not f32
CASES: list[tuple[str, dict[str, Any], Sizes, list[Sizes], tuple[DType, ...]]] = [
    ("add", {}, [(2, 1), (3,)], [[(2, 4), (3,)]], ()),
    ("select", {}, [(1,), (3,), (2, 3)], [[(2,), (3,), (2, 3)]], ("bool",)),
    ("matmul", {}, [(2, 3, 4), (1, 4, 5)], [[(2, 3, 4), (1, 3, 5)], [(2, 3, 4), (3, 4, 5)]], ()),
    ("matmul_integer", {}, [(2, 3, 4), (1, 4, 5)], [[(2, 3, 4), (1, 3, 5)], [(2, 3, 4), (3, 4, 5)]], ("u8", "i8")),
    (
        "conv", {"groups": 2, **WINDOW}, [(1, 4, 9), (6, 2, 3), (6,)],
        [[(1, 5, 9), (6, 2, 3), (6,)], [(1, 4, 9), (5, 2, 3), (5,)], [(1, 4, 9), (6, 2, 3), (4,)]], (),
    ),
    (
        "conv_transpose", {"groups": 2, **TRANSPOSED}, [(1, 4, 9), (4, 3, 3), (6,)],
        [[(1, 6, 9), (4, 3, 3), (6,)], [(1, 5, 9), (5, 3, 3), (6,)], [(1, 4, 9), (4, 3, 3), (3,)]], (),
    ),
    (
        "attention", ATTENTION, [(2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 8), (1, 6, 5, 7)],
        [
            [(2, 6, 5, 4), (1, 3, 7, 4), (2, 3, 7, 8), (1, 6, 5, 7)],
            [(2, 6, 5, 4), (2, 3, 7, 5), (2, 3, 7, 8), (1, 6, 5, 7)],
            [(2, 6, 5, 4), (2, 3, 7, 4), (2, 2, 7, 8), (1, 6, 5, 7)],
            [(2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 6, 8), (1, 6, 5, 7)],
            [(2, 6, 5, 4), (2, 4, 7, 4), (2, 4, 7, 8), (1, 6, 5, 7)],
            [(2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 8), (1, 6, 4, 7)],
        ], (),
    ),
    ("batch_norm", {"epsilon": 0.1}, [(2, 3)] + [(3,)] * 4, [[(2, 3), (3,), (3,), (3,), (2,)]], ()),
    (
        "group_norm", {"epsilon": 0.1, "groups": 2}, [(1, 4, 3), (4,), (4,)],
        [[(1, 4, 3), (4,), (3,)], [(1, 5, 3), (5,), (5,)]], (),
    ),
    ("layer_norm", {"axis": 1, "epsilon": 0.1}, [(2, 3), (3,), (3,)], [[(2, 3), (3,), (2,)]], ()),
    ("rms_norm", {"axis": 1, "epsilon": 0.1}, [(2, 3), (3,)], [[(2, 3), (4,)]], ()),
    ("concat", {"axis": 1}, [(2, 3), (2, 5)], [[(2, 3), (4, 3)]], ()),
    ("reshape", {"shape": (6,)}, [(2, 3)], [[(2, 4)]], ()),
    ("broadcast_to", {"shape": (2, 3)}, [(1, 3)], [[(2, 4)]], ()),
    (
        "slice", {"starts": (2, 5), "sizes": (2, 3), "steps": (1, -2)}, [(4, 6)], [[(3, 6)], [(4, 5)]], (),
    ),
    ("pad", {"before": (0, 1), "after": (0, 0), "mode": "edge"}, [(0, 3), ()], [[(2, 0), ()]], ()),
    ("resize", RESIZE, [(2, 3)], [[(2, 0)]], ()),
    ("gather", {"axis": 0}, [(3, 4), (2,)], [[(0, 4), (2,)]], ("f32", "i64")),
    ("gather_elements", {"axis": 0}, [(3, 4), (9, 4)], [[(3, 4), (9, 5)], [(0, 4), (9, 4)]], ("f32", "i64")),
    (
        "scatter_elements", {"axis": 0, "reduction": "none"}, [(3, 4), (2, 4), (2, 4)],
        [[(3, 4), (2, 4), (2, 3)], [(3, 4), (2, 5), (2, 5)], [(0, 4), (2, 4), (2, 4)]], ("f32", "i64"),
    ),
    (
        "suppress_overlaps", {"count": 3, "is_limited": True, "is_centered": False}, [(2, 5, 4), (2, 7, 5), (), (), ()],
        [[(2, 5, 4), (2, 7, 6), (), (), ()], [(3, 5, 4), (2, 7, 5), (), (), ()]], ("f32", "f32", "f32", "f32", "i64"),
    ),
    (
        "recurrent", GRU, [(5, 2, 12), (1, 4, 12), (1, 2, 4), (1, 4), (2,)],
        [
            [(5, 2, 11), (1, 4, 12), (1, 2, 4), (1, 4), (2,)], [(5, 2, 12), (1, 4, 11), (1, 2, 4), (1, 4), (2,)],
            [(5, 2, 12), (1, 4, 12), (1, 3, 4), (1, 4), (2,)], [(5, 2, 12), (1, 4, 12), (1, 2, 4), (1, 4), (3,)],
        ], ("f32", "f32", "f32", "f32", "i32"),
    ),
    (
        "recurrent", LSTM, [(5, 2, 12), (1, 3, 12), (1, 2, 3), (1, 2, 3), (1, 12), (1, 12)],
        [
            [(5, 2, 12), (1, 3, 12), (1, 2, 3), (1, 2, 3), (1, 11), (1, 12)],
            [(5, 2, 12), (1, 3, 12), (1, 2, 3), (1, 2, 3), (1, 12), (2, 12)],
        ], ("f32", "i8", "f32", "f32", "f32", "i32"),
    ),
]  # fmt: skip
FIXED = {("suppress_overlaps", 0, 2), ("recurrent", 1, 0)}  # numbers in every graph


def _operands(
    op: str, sizes: Sizes, dtypes: Sequence[DType], *, open_: bool
) -> Iterator[TensorType]:
    for operand, shape in enumerate(sizes):
        dims: list[Dim] = [
            symbol(f"o{operand}a{axis}") if open_ and (op, operand, axis) not in FIXED else size
            for axis, size in enumerate(shape)
        ]
        yield TensorType(dtypes[operand] if operand < len(dtypes) else "f32", tuple(dims))


def _is_met(op: str, attributes: dict[str, Any], sizes: Sizes, dtypes: Sequence[DType]) -> bool:
    """Whether a graph that leaves every size open lets a call of these sizes through."""
    constraints = (
        OPS_BY_NAME[op_name(op)]
        .infer(list(_operands(op, sizes, dtypes, open_=True)), attributes)
        .constraints
    )
    bound = {
        f"o{operand}a{axis}": size
        for operand, shape in enumerate(sizes)
        for axis, size in enumerate(shape)
    }
    return all(
        evaluate(excess, bound) == 0
        for constraint in constraints
        for excess, _ in requirements(constraint)
    )


@pytest.mark.parametrize(
    ("op", "attributes", "fit", "contradict", "dtypes"), CASES, ids=[case[0] for case in CASES]
)
def test_open_sizes_are_required_as_numbers_are_checked(
    op: str,
    attributes: dict[str, Any],
    fit: Sizes,
    contradict: list[Sizes],
    dtypes: tuple[DType, ...],
) -> None:
    """Sizes that fit leave nothing to require and meet what is required; others are refused, early
    or late."""
    fitting = OPS_BY_NAME[op_name(op)].infer(
        list(_operands(op, fit, dtypes, open_=False)), attributes
    )
    assert [
        what for constraint in fitting.constraints for _, what in requirements(constraint)
    ] == []
    assert _is_met(op, attributes, fit, dtypes)
    for sizes in contradict:
        with pytest.raises(OpTypeError):
            OPS_BY_NAME[op_name(op)].infer(
                list(_operands(op, sizes, dtypes, open_=False)), attributes
            )
        assert not _is_met(op, attributes, sizes, dtypes)


@pytest.mark.parametrize(
    ("op", "x", "i"), [("gather_nd", (2, 3, 4), (2, 5, 1)), ("scatter_nd", (3, 4), (2, 1))]
)
def test_index_vectors(op: str, x: tuple[int, ...], i: tuple[int, ...]) -> None:
    """Indices whose vectors have a known length: batch sizes, picked slices and empty axes are
    required."""
    dims = [symbol(name) for name in "abcd"]
    kinds = [
        TensorType("f32", tuple(dims[: len(x)])),
        TensorType("i64", (*(symbol(f"i{n}") for n in range(len(i) - 1)), i[-1])),
    ]
    if op == "scatter_nd":
        kinds.append(TensorType("f32", (symbol("u"), symbol("v"))))
    attributes: dict[str, Any] = {"batch_dims": 1} if op == "gather_nd" else {"reduction": "none"}
    constraints = OPS_BY_NAME[op_name(op)].infer(kinds, attributes).constraints
    fit = {"a": x[0], "b": x[1], "c": 4, "i0": i[0], "i1": 5, "u": 2, "v": 4}

    def refused(**changed: int) -> list[str]:
        found = [pair for constraint in constraints for pair in requirements(constraint)]
        return [str(what) for excess, what in found if evaluate(excess, {**fit, **changed})]

    assert refused() == []
    if op == "gather_nd":
        assert refused(i0=3) == ["batch sizes differ: a and i0"]
        assert refused(b=0) == ["elements are taken from an empty axis"]
    else:
        assert refused(v=3) == ["sizes of the picked slices and updates differ: b and v"]
        assert refused(a=0) == ["elements are taken from an empty axis"]


def test_sizes_of_a_specialised_graph_may_contradict() -> None:
    """A graph made for sizes that contradict is compiled, and refuses every call with the
    constraint that they break."""
    builder = GraphBuilder(
        [TensorType("f32", (2, symbol("a"))), TensorType("f32", (symbol("b"), 4))]
    )
    graph = builder.finish([builder.add("matmul", (0, 1))])
    fused = fuse(
        place(
            OptimizedGraph(specialise(graph, (SizeRange("a", 3, 3), SizeRange("b", 5, 5)))),
            HOST_ALONE,
        ),
        (device_rules(str(BEST)),),
    )
    required = [step for step in fused.steps if isinstance(step, Requirement)]
    assert [(step.difference, step.what) for step in required] == [
        (1, "expected equal inner sizes, got 3 and 5")
    ]

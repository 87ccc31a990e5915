"""Random graphs: compiled kernels, in the places that the memory plan gives them, agree with the
interpreter."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.harness.codegen_harness import RUNNABLE
from tests.harness.lowering_graphs import bindings, graphs, inputs_for
from tests.harness.lowering_harness import Builder, check_graph

from ingot_compiler.ir.types import TensorType

Drawn = tuple[Builder, list[TensorType], tuple[int, ...]]
QUICK = settings(
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def compare(
    drawn: Drawn, sizes: dict[str, int], level: int, relative: float, *, passes: bool
) -> None:
    """Both refuse, or both give the same."""
    builder, types, outputs = drawn
    inputs = inputs_for(types, sizes, seed=7)
    check_graph(
        builder,
        outputs,
        inputs,
        relative,
        [RUNNABLE[level % len(RUNNABLE)]],
        passes=passes,
        floor=1.0,
    )


@QUICK
@given(drawn=graphs(smooth=False), sizes=bindings(), level=st.integers(0, 2), passes=st.booleans())
def test_exact_graphs(drawn: Drawn, sizes: dict[str, int], level: int, passes: bool) -> None:
    """Integers in any element type, any chain of views, empty tensors: every bit is right."""
    compare(drawn, sizes, level, 0.0, passes=passes)


@QUICK
@given(drawn=graphs(smooth=True), sizes=bindings(), level=st.integers(0, 2), passes=st.booleans())
def test_smooth_graphs(drawn: Drawn, sizes: dict[str, int], level: int, passes: bool) -> None:
    """Convolutions, products, rows and reductions with elementwise ops and views around them."""
    compare(drawn, sizes, level, 1e-3, passes=passes)

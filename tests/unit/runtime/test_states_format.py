"""The section of states: what it may say, and which version a bundle has with it."""

from __future__ import annotations

import struct

import pytest

import ingot_runtime
from ingot_artifacts.bundle.version_minor import version_minor
from ingot_runtime.format.plan import BundlePlan, TensorPlan
from ingot_runtime.format.states import decode_states

F32, I64 = 0, 7


def plan() -> BundlePlan:
    """Inputs x[n] and past[p, 4]; outputs present[q, 4], of integers and of another rank."""
    inputs = TensorPlan("x", F32, (-1,)), TensorPlan("past", F32, (-2, 4))
    outputs = (
        TensorPlan("present", F32, (-3, 4)),
        TensorPlan("i", I64, (-3, 4)),
        TensorPlan("y", F32, (-3,)),
    )
    return BundlePlan("m", (), (), ("n", "p", "q"), inputs, outputs, ())


def section(*rows: tuple[int, int, int]) -> bytes:
    """The bytes of some rows."""
    return b"".join(struct.pack("<3q", *row) for row in rows)


def test_rows_are_states() -> None:
    """An input, an output, an axis."""
    (state,) = decode_states(section((1, 0, 0)), plan())
    assert (state.input, state.output, state.axis) == (1, 0, 0)


def fixed_plan() -> BundlePlan:
    """Input past[p, 4]; outputs present[p, 4], and one that is longer."""
    outputs = TensorPlan("present", F32, (-1, 4)), TensorPlan("longer", F32, (-2, 4))
    return BundlePlan("m", (), (), ("p", "q"), (TensorPlan("past", F32, (-1, 4)),), outputs, ())


def test_an_axis_below_zero_is_that_of_a_fixed_length() -> None:
    """All sizes are those of the input, also one that is a number; readers of 1.5 know it."""
    for axis in (0, 1):
        given = fixed_plan()
        given.states = decode_states(section((0, 0, -axis - 1)), given)
        (state,) = given.states
        assert (state.axis, state.fixed) == (axis, True)
        assert version_minor(given, ()) == 5
    for row in ((0, 1, -1), (0, 0, -3), (0, 0, -(1 << 63))):
        with pytest.raises(ingot_runtime.FormatError, match="another tensor"):
            decode_states(section(row), fixed_plan())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 23,
        section((1, 0, 0)) + b"\0",
        section((2, 0, 0)),
        section((-1, 0, 0)),
        section((1, 3, 0)),
        section((1, -1, 0)),
        section((1, 0, 2)),
        section((1, 0, -1)),
        section((1, 1, 0)),
        section((1, 2, 0)),
        section((1, 0, 1)),
        section((1, 0, 0), (1, 0, 0)),
    ],
)
def test_rows_that_mean_nothing_are_refused(data: bytes) -> None:
    """No rows, half a row, numbers of nothing, other types, an axis that cannot grow, one twice."""
    with pytest.raises(ingot_runtime.FormatError, match="section state 0"):
        decode_states(data, plan())


def test_a_bundle_has_the_lowest_version_that_it_needs() -> None:
    """States need readers that know their opcode; without them nothing has changed."""
    with_states = plan()
    with_states.states = decode_states(section((1, 0, 0)), with_states)
    assert version_minor(with_states, ()) == 1
    assert version_minor(plan(), ()) == 0

"""Pairs of an input and an output that may share memory from call to call: FORMAT.md, "State".

In: the section, the plan. Out: ``StatePlan`` rows, checked. Not done here: the memory
(``executor.sequence``).
"""

from .checks import require
from .plan import BundlePlan, StatePlan
from .schema import layout

ROW = layout(StatePlan)


def decode_states(data: bytes, plan: BundlePlan) -> tuple[StatePlan, ...]:
    """Decode the section.

    Raises:
        FormatError: any rule of FORMAT.md, "State", broken.
    """
    where = "section state 0"
    whole = len(data) >= ROW.size and not len(data) % ROW.size
    require(whole, "the section is no list of rows", where, f"{len(data)} bytes")
    states = tuple(StatePlan(*each) for each in ROW.iter_unpack(data))
    for index, state in enumerate(states):
        at = f"{where}, row {index}"
        known = 0 <= state.input < len(plan.inputs) and 0 <= state.output < len(plan.outputs)
        why = f"input {state.input}, output {state.output}"
        require(known, "a state of no input or output", at, why)
        held, result = plan.inputs[state.input], plan.outputs[state.output]
        fits = state.axis < len(held.dims) == len(result.dims) and held.dtype == result.dtype
        fits = fits and (not state.fixed or held.dims == result.dims)
        require(fits, "a state whose output is another tensor", at, f"axis {state.along}")
        grows = state.fixed or held.dims[state.axis] < 0
        require(grows, "a state that cannot grow", at, f"axis {state.along}")
    for what, numbers in (
        ("an input", [state.input for state in states]),
        ("an output", [state.output for state in states]),
    ):
        twice = "" if len(set(numbers)) == len(states) else f"{numbers}"
        require(not twice, f"{what} is two states", where, twice)
    return states

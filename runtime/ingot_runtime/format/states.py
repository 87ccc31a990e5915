"""Pairs of an input and an output that may share memory from call to call: FORMAT.md, "State".

In: the section, the plan. Out: ``StatePlan`` rows, checked. Not done here: the memory
(``executor.sequence``).
"""

import struct

from .checks import require
from .plan import BundlePlan, StatePlan

ROW = struct.Struct("<3q")


def decode_states(data: bytes, plan: BundlePlan) -> tuple[StatePlan, ...]:
    """Decode the section.

    Raises:
        FormatError: any rule of FORMAT.md, "State", broken.
    """
    where = "section state 0"
    whole = len(data) >= ROW.size and not len(data) % ROW.size
    require(whole, "the section is no list of rows", where, f"{len(data)} bytes")
    rows: list[tuple[int, int, int]] = list(ROW.iter_unpack(data))
    states: list[StatePlan] = []
    for index, (given, made, axis) in enumerate(rows):
        at = f"{where}, row {index}"
        known = 0 <= given < len(plan.inputs) and 0 <= made < len(plan.outputs)
        require(known, "a state of no input or output", at, f"input {given}, output {made}")
        held, result = plan.inputs[given], plan.outputs[made]
        fixed = axis < 0
        along = -axis - 1 if fixed else axis
        fits = along < len(held.dims) == len(result.dims) and held.dtype == result.dtype
        fits = fits and (not fixed or held.dims == result.dims)
        require(fits, "a state whose output is another tensor", at, f"axis {axis}")
        require(fixed or held.dims[axis] < 0, "a state that cannot grow", at, f"axis {axis}")
        states.append(StatePlan(given, made, along, fixed))
    for what, numbers in (
        ("an input", [row[0] for row in rows]), ("an output", [row[1] for row in rows])
    ):  # fmt: skip
        twice = "" if len(set(numbers)) == len(rows) else f"{numbers}"
        require(not twice, f"{what} is two states", where, twice)
    return tuple(states)

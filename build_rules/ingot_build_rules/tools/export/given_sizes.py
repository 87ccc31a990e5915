"""The sizes of one call of a bundle that leaves some open: those that the user gives, and what
follows.

In: a bundle's plan, shapes by input name. Out: inputs and outputs of fixed sizes. Not done here:
what the call needs (``view.evaluate_call``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_build_rules.tools.view.evaluate_call import EvaluatedCall
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.suggest import suggest
from ingot_runtime.format.plan import BundlePlan, TensorPlan
from ingot_runtime.option_ref import OptionRef
from ingot_runtime.option_values import shape_options


def sized_inputs(plan: BundlePlan, shapes: Mapping[str, str]) -> tuple[TensorPlan, ...]:
    """Return the inputs with the sizes of ``shapes``, as ``--shape`` has them; those without one
    stay as they are.

    Raises:
        UserError: no such input, another rank, no size, or other sizes than the plan has.
    """
    names = [tensor.name for tensor in plan.inputs]
    for name in shapes:
        if name not in names:
            why, do = f"the model's inputs are {', '.join(names)}", suggest(name, names)
            raise UserError(f"no input {name!r}", OptionRef("shape", name), why, do)
    known: dict[int, int] = {}
    return tuple(_sized(tensor, shapes, plan, known) for tensor in plan.inputs)


def _sized(
    tensor: TensorPlan, shapes: Mapping[str, str], plan: BundlePlan, known: dict[int, int]
) -> TensorPlan:
    """One input; ``known``: the size of each symbol so far."""
    if tensor.name not in shapes:
        return TensorPlan(tensor.name, tensor.dtype, tuple(known.get(d, d) for d in tensor.dims))
    text = shapes[tensor.name]
    given = [] if text == "scalar" else text.split("x")
    expected = ", ".join(map(str, tensor.shape(plan.symbols)))
    where = OptionRef("shape", f"{tensor.name}={text}")
    symbols = {
        str(name): known[dim]
        for dim, name in zip(tensor.dims, tensor.shape(plan.symbols), strict=True)
        if dim in known
    }
    do = f"write {shape_options([(tensor.name, tensor.shape(plan.symbols))], symbols)}"
    if len(given) != len(tensor.dims) or not all(size.isdecimal() for size in given):
        why = f"expected a number for each of [{expected}]"
        raise UserError(f"wrong shape of input {tensor.name!r}", where, why, do)
    for dim, size in zip(tensor.dims, map(int, given), strict=True):
        wanted = dim if dim >= 0 else known.setdefault(dim, size)
        if wanted != size:
            why = f"expected {wanted} in [{expected}], got {size}"
            raise UserError(f"wrong shape of input {tensor.name!r}", where, why, do)
    return TensorPlan(tensor.name, tensor.dtype, tuple(map(int, given)))


def sized_outputs(plan: BundlePlan, call: EvaluatedCall) -> Sequence[TensorPlan]:
    """Return the outputs with the sizes that a call computes; those that only the data decide stay
    open."""
    found: list[TensorPlan] = []
    for number, tensor in enumerate(plan.outputs):
        shape = call.output_shapes.get(number, tensor.dims)
        is_known = len(shape) == len(tensor.dims) and min(shape, default=0) >= 0
        found.append(TensorPlan(tensor.name, tensor.dtype, shape) if is_known else tensor)
    return found

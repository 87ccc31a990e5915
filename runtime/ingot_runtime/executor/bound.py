"""A session with fixed addresses: one native call per run, nothing copied.

In: a plan, what makes and runs a frame, arrays. Out: ``Bound``. Not done here: `main` itself
(``session``).
"""

import numpy as np

from ..errors import InputError
from .arrays import aligned_empty, by_name, checked_inputs, default_of, describe
from .numpy_dtypes import bits_of, dtype_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..format.plan import BundlePlan, TensorPlan
    from .frame import CallFrame, Shape

    Array = np.ndarray


class Bound:
    """Write the arrays of ``inputs``, ``run()``, and read those of ``outputs``."""

    __slots__ = ("_frame", "_run", "inputs", "outputs")

    def __init__(
        self,
        plan: "BundlePlan",
        new_frame: "Callable[[tuple[Shape, ...]], CallFrame]",
        run_frame: "Callable[[CallFrame, float | None], None]",
        given_inputs: "Mapping[str, Array]",
        given_outputs: "Mapping[str, Array]",
    ) -> None:
        """See ``Session.bind``; `new_frame` and `run_frame` are the session's."""
        self._run = run_frame
        inputs = by_name("inputs", given_inputs, "session.bind")
        outputs = by_name("outputs", given_outputs, "session.bind")
        for tensor in plan.inputs:
            if tensor.name not in inputs and tensor.name in plan.defaults:
                inputs[tensor.name] = default_of(tensor, plan).copy()
            elif tensor.name not in inputs and tensor.is_static:
                inputs[tensor.name] = aligned_empty(tensor.dims, dtype_of(tensor.dtype))
                inputs[tensor.name].fill(0)
        checked = checked_inputs(plan, inputs)
        # An array that is given stays what it is: its bits may go by another type.
        self.inputs = {
            name: inputs[name] if np.asarray(inputs[name]) is inputs[name] else array
            for name, array in checked.items()
        }
        self._frame = frame = new_frame(tuple(array.shape for array in checked.values()))
        for index, (name, array) in enumerate(self.inputs.items()):
            frame.input_addresses[index] = _address(name, array, "input")
        self.outputs = _bind_outputs(plan, frame, outputs)
        _require_apart(self.inputs, self.outputs)

    def run(self, timeout: "float | None" = None) -> None:
        """Compute ``outputs`` from ``inputs`` in place; `timeout` and errors: ``Session.run``."""
        self._run(self._frame, timeout)

    def output_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape that the last run left in output `name`; the array may be larger."""
        return self._frame.final_shape(list(self.outputs).index(name))


def _bind_outputs(
    plan: "BundlePlan", frame: "CallFrame", given: "dict[str, Array]"
) -> "dict[str, Array]":
    """Point the frame at an array for each output, the one given or a new one; return them."""
    names = [tensor.name for tensor in plan.outputs]
    unknown = sorted(set(given) - set(names))
    if unknown:
        why = f"the model's: {', '.join(names)}"
        raise InputError(f"no output {unknown[0]!r}", "session.bind", why)
    arrays: dict[str, Array] = {}
    for index, tensor in enumerate(plan.outputs):
        shape, array = frame.output_shapes[index], given.get(tensor.name)
        if frame.is_data_dependent[index]:
            what = f"output {tensor.name!r} cannot be bound"
            why = "its size depends on the data, so it has no fixed address"
            raise InputError(what, "session.bind", why, "use session.run")
        if array is None:
            array = aligned_empty(shape, dtype_of(tensor.dtype))
        _check_output(tensor, array, shape, describe(tensor, plan))
        frame.output_addresses[index] = _address(tensor.name, array, "output")
        arrays[tensor.name] = array
    return arrays


def _require_apart(inputs: "dict[str, Array]", outputs: "dict[str, Array]") -> None:
    """Refuse outputs that lie over another tensor: a kernel would read what another has written."""
    spans = sorted(
        (address, address + array.nbytes, name, is_output)
        for arrays, is_output in ((inputs, False), (outputs, True))
        for name, array in arrays.items()
        if array.nbytes
        for address in (array.__array_interface__["data"][0],)
    )
    end, holder, held_output = 0, "", False
    for start, stop, name, is_output in spans:
        if start < end and (is_output or held_output):
            why = "an output needs memory of its own"
            do = "give other arrays, or leave the output out"
            raise InputError(f"{name!r} and {holder!r} share memory", "session.bind", why, do)
        if stop > end:
            end, holder, held_output = stop, name, is_output


def _check_output(
    tensor: "TensorPlan", array: "Array", shape: tuple[int, ...], expected: str
) -> None:
    known = array.dtype in (dtype_of(tensor.dtype), bits_of(tensor.dtype))
    good = known and array.shape == shape and array.flags.writeable
    if not good:
        got = f"{array.dtype}{list(array.shape)}{'' if array.flags.writeable else ', read-only'}"
        why = f"expected {expected} = {list(shape)}, got {got}"
        raise InputError(f"output {tensor.name!r} does not fit", "session.bind", why)


def _address(name: str, array: "Array", what: str) -> int:
    address = int(array.__array_interface__["data"][0])
    if not array.flags.c_contiguous or (address % array.itemsize and array.nbytes):
        wanted = f"a C-contiguous array at a multiple of {array.itemsize}"
        why = f"expected {wanted}, got address {address:#x}"
        do = "leave it out: bind() makes aligned arrays, see .inputs and .outputs"
        raise InputError(f"{what} {name!r} cannot be bound", "session.bind", why, do)
    return address

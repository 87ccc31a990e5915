"""A session with fixed addresses: one native call per run, nothing copied.

In: a plan, what makes and runs a frame, arrays. Out: ``Bound``. Not done here: `main` itself
(``session``).
"""

from ..errors import InputError
from .arrays import DTYPES, aligned_empty, checked_inputs, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from ..format.plan import BundlePlan, TensorPlan
    from .frame import CallFrame, Shape

    Array = np.ndarray


class Bound:
    """``inputs`` and ``outputs`` are the arrays themselves: write the first, ``run()``, read the
    second."""

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
        inputs, outputs = _by_name("inputs", given_inputs), _by_name("outputs", given_outputs)
        for tensor in plan.inputs:
            if tensor.name not in inputs and tensor.is_static:
                inputs[tensor.name] = aligned_empty(tensor.dims, DTYPES[tensor.dtype])
                inputs[tensor.name].fill(0)
        self.inputs = checked_inputs(plan, inputs)
        frame = new_frame(tuple(array.shape for array in self.inputs.values()))
        self._frame = frame
        self.outputs: dict[str, Array] = {}
        for index, array in enumerate(self.inputs.values()):
            frame.set_input(index, _address(plan.inputs[index].name, array, "input"))
        unknown = sorted(set(outputs) - {tensor.name for tensor in plan.outputs})
        if unknown:
            raise InputError(
                f"no output {unknown[0]!r}",
                "session.bind",
                f"the model's: {', '.join(t.name for t in plan.outputs)}",
            )
        for index, tensor in enumerate(plan.outputs):
            if frame.is_data_dependent[index]:
                why = "its size depends on the data, so it has no fixed address"
                raise InputError(
                    f"output {tensor.name!r} cannot be bound",
                    "session.bind",
                    why,
                    "use session.run",
                )
            given = outputs.get(tensor.name)
            array = (
                aligned_empty(frame.output_shapes[index], DTYPES[tensor.dtype])
                if given is None
                else given
            )
            _check_output(tensor, array, frame.output_shapes[index], describe(tensor, plan))
            frame.set_output(index, _address(tensor.name, array, "output"))
            self.outputs[tensor.name] = array

        _require_apart(self.inputs, self.outputs)

    def run(self, timeout: "float | None" = None) -> None:
        """Compute ``outputs`` from ``inputs`` in place. `timeout` and errors are those of
        ``Session.run``."""
        self._run(self._frame, timeout)

    def output_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape that the last run left in output `name`: smaller than the array where
        the data decide."""
        return self._frame.final_shape(list(self.outputs).index(name))


def _by_name(what: str, given: "Mapping[str, Array]") -> "dict[str, Array]":
    if not hasattr(given, "keys") or not hasattr(given, "__getitem__"):
        why = f"expected a dict of arrays by name, got {type(given).__name__}"
        raise InputError(f"{what} are not a dict", "session.bind", why)
    return dict(given)


def _require_apart(inputs: "dict[str, Array]", outputs: "dict[str, Array]") -> None:
    """Refuse outputs that lie over another tensor: a kernel would read what another has written
    already."""
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
            raise InputError(
                f"{name!r} and {holder!r} share memory", "session.bind", "an output needs memory of its own",
                "give other arrays, or leave the output out",
            )  # fmt: skip
        if stop > end:
            end, holder, held_output = stop, name, is_output


def _check_output(
    tensor: "TensorPlan", array: "Array", shape: tuple[int, ...], expected: str
) -> None:
    good = array.dtype == DTYPES[tensor.dtype] and array.shape == shape and array.flags.writeable
    if not good:
        got = f"{array.dtype}{list(array.shape)}{'' if array.flags.writeable else ', read-only'}"
        raise InputError(
            f"output {tensor.name!r} does not fit",
            "session.bind",
            f"expected {expected} = {list(shape)}, got {got}",
        )


def _address(name: str, array: "Array", what: str) -> int:
    address = int(array.__array_interface__["data"][0])
    if not array.flags.c_contiguous or (address % array.itemsize and array.nbytes):
        why = f"expected a C-contiguous array at a multiple of {array.itemsize}, got address {address:#x}"
        do = "leave it out: bind() makes aligned arrays, see .inputs and .outputs"
        raise InputError(f"{what} {name!r} cannot be bound", "session.bind", why, do)
    return address

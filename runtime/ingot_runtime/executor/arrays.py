"""Between numpy and addresses: checks of what the user gives, views of what `main` sees.

In: arrays by name, a frame. Out: checked arrays, ``Views``. Not done here: calling `main`. The
first import of numpy.
"""

import ctypes
import math

import numpy as np

from ..errors import InputError, RunError
from ..format.dtypes import DTYPE_NAMES, ML_DTYPES
from ..format.plan import BundlePlan, TensorPlan
from ..loader.block import Block
from .frame import ALIGNMENT_BYTES, SMALL_SIZE_BYTES, CallFrame, Shape
from .numpy_dtypes import bits_of, dtype_of, with_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .grow import Grow

    Array = np.ndarray


_address_of, _first_byte = ctypes.addressof, ctypes.c_char.from_buffer


class Views:
    """A frame's arrays. ``inputs``: (name, dtype, shape, view); ``outputs``: (name, view). Tensors
    of up to 32 KiB are copied; of a larger one, whose view is None, `main` gets the address."""

    __slots__ = (
        "_aligned", "_free", "_measured", "frame", "inputs", "is_small", "large_inputs",
        "large_outputs", "ndarray", "outputs",
    )  # fmt: skip

    def __init__(self, frame: CallFrame, plan: BundlePlan, large: "dict[int, list[Block]]") -> None:
        self.frame = frame
        self.ndarray = np.ndarray
        given = zip(plan.inputs, frame.input_shapes, frame.small_inputs, strict=True)
        self.inputs = [
            (tensor.name, dtype_of(tensor.dtype), shape, _view(frame, place, tensor, shape))
            for tensor, shape, place in given
        ]
        made = list(zip(plan.outputs, frame.output_shapes, frame.small_outputs, strict=True))
        self.outputs = [
            (tensor.name, _view(frame, at, tensor, shape)) for tensor, shape, at in made
        ]
        self.large_inputs = [
            (index, row[0]) for index, row in enumerate(self.inputs) if row[3] is None
        ]
        self.large_outputs = [
            (index, tensor.name, shape, dtype_of(tensor.dtype))
            for index, (tensor, shape, place) in enumerate(made)
            if place < 0
        ]
        # Blocks of 32 MiB and more wait in lists that calls of all shapes share.
        self._free: dict[int, list[Block]] = {
            index: large.setdefault(index, []) if frame.output_bytes[index] >> 25 else []
            for index, *_ in self.large_outputs
        }
        # Places for large inputs that lie where `main` cannot read them.
        self._aligned: dict[int, Array] = {}
        # Outputs with a size of their own: `main` knows it at the end, the array given is for the
        # upper bound.
        known = {dim for tensor in plan.inputs for dim in tensor.dims}
        self._measured = frozenset(
            index
            for index, tensor in enumerate(plan.outputs)
            if any(dim < 0 and dim not in known for dim in tensor.dims)
        )
        self.is_small = not self.large_inputs and not self.large_outputs and not self._measured

    def copy_small(self, arrays: "Mapping[str, Array]") -> None:
        """Copy the small inputs to their places."""
        for name, _, _, view in self.inputs:
            if view is not None:
                view[...] = arrays[name]

    def pass_large(self, arrays: "Mapping[str, Array]") -> "list[Array]":
        """Point `main` at the large inputs; return what must stay alive during the call."""
        held: list[Array] = []
        addresses = self.frame.input_addresses
        for index, name in self.large_inputs:
            array, is_dense = arrays[name], True
            try:
                address = _address_of(_first_byte(array))  # type: ignore[arg-type]  # is one
            except (TypeError, ValueError):  # slower: of what is read-only or not dense
                address = array.__array_interface__["data"][0]
                is_dense = array.flags.c_contiguous
            if address % array.itemsize or not is_dense:
                if index not in self._aligned:
                    self._aligned[index] = aligned_empty(array.shape, array.dtype)
                copied = self._aligned[index]
                copied[...] = array
                array, address = copied, copied.__array_interface__["data"][0]
            addresses[index] = address
            held.append(array)
        return held

    def new_outputs(self) -> "dict[str, Array]":
        """Make arrays for the large outputs and point `main` at them."""
        made: dict[str, Array] = {}
        for index, name, shape, dtype in self.large_outputs:
            made[name], address = _recycled(self._free[index], shape, dtype)
            self.frame.output_addresses[index] = address
        return made

    def collect(self, large: "Mapping[str, Array]", grow: "Grow") -> "dict[str, Array]":
        """Return all outputs in order and in their final size: `large`, blocks of `grow`, and
        copies of small ones."""
        results: dict[str, Array] = {}
        for index, (name, view) in enumerate(self.outputs):
            if self.frame.is_data_dependent[index]:
                assert view is not None  # of no elements
                results[name] = _grown(self.frame, index, view.dtype, grow)
                continue
            array = large[name] if view is None else view.copy()
            if index in self._measured:
                shape = self.frame.final_shape(index)
                array = array.reshape(-1)[: math.prod(shape)].reshape(shape)
            results[name] = array
        return results


def _recycled(
    free: "list[Block]", shape: Shape, dtype: "np.dtype[np.generic]"
) -> "tuple[Array, int]":
    """Return an uninitialised array and its address. Its block is given out again once nobody holds
    an array over it: fresh memory costs a page fault per 4 KiB, more than many a kernel takes."""
    size_bytes = dtype.itemsize * math.prod(shape)
    while free:
        block = free.pop()
        if block.size_bytes == size_bytes:
            break
    else:
        block = Block(size_bytes)
    return _leased(block, free, shape, dtype), block.address


def _leased(
    block: Block, free: "list[Block]", shape: Shape, dtype: "np.dtype[np.generic]"
) -> "Array":
    """Return an array over a block, which goes to `free` with the last array over it."""
    kind: Any = block.lease
    if kind is None:
        methods = {"__del__": _give_back}
        kind = block.lease = type("Lease", (ctypes.c_char * block.size_bytes,), methods)
    lease: Any = kind.from_address(block.address)
    lease.block, lease.free = block, free
    return np.ndarray(shape, dtype, lease)


def _give_back(lease: "Any") -> None:
    if len(lease.free) < _RECYCLED_BLOCKS_MAX:
        lease.free.append(lease.block)


_RECYCLED_BLOCKS_MAX = 2


def _grown(frame: CallFrame, index: int, dtype: "np.dtype[np.generic]", grow: "Grow") -> "Array":
    """Return an output whose size `main` alone knew: a copy, or a large one as it lies."""
    shape, address = frame.final_shape(index), frame.output_addresses[index]
    for at, (_, block) in enumerate(grow.blocks):
        if isinstance(block, Block) and block.address == address:
            if dtype.itemsize * math.prod(shape) <= SMALL_SIZE_BYTES:
                return np.ndarray(shape, dtype, block.memory).copy()
            grow.blocks[at] = 0, None
            return _leased(block, grow.returned, shape, dtype)
    raise RunError("an output lies in no block", f"output {index}", hex(address))


def aligned_empty(shape: Shape, dtype: "np.dtype[np.generic]") -> "Array":
    """Return an uninitialised C-contiguous array whose address is a multiple of 64."""
    size_bytes = dtype.itemsize * math.prod(shape)
    block = np.empty(size_bytes + ALIGNMENT_BYTES, np.uint8)
    start = -block.__array_interface__["data"][0] % ALIGNMENT_BYTES
    return block[start : start + size_bytes].view(dtype).reshape(shape)


def _view(frame: CallFrame, place: int, tensor: TensorPlan, shape: Shape) -> "Array | None":
    if place < 0:
        return None
    dtype = dtype_of(tensor.dtype)
    count = math.prod(shape)
    if not count:
        return np.empty(shape, dtype)
    return np.frombuffer(frame.small.memory, dtype, count, place).reshape(shape)


def checked_inputs(plan: BundlePlan, inputs: "Any") -> "dict[str, Array]":
    """Return the inputs as arrays of the right dtype and shape, in the plan's order; else raise an
    ``InputError`` that names the input."""
    given = by_name("inputs", inputs, "session.run")
    names = [tensor.name for tensor in plan.inputs]
    for name in given:
        if name not in names:
            raise unexpected_input(name, names, given)
    sizes: dict[int, tuple[int, str]] = {}
    wanted = plan.inputs
    return {tensor.name: checked_tensor(tensor, plan, given, sizes, wanted) for tensor in wanted}


def by_name(what: str, given: "Any", where: str) -> "dict[Any, Any]":
    """Return a dict of what is given, or raise an ``InputError``."""
    if not hasattr(given, "keys") or not hasattr(given, "__getitem__"):
        why = f"expected a dict of arrays by name, got {type(given).__name__}"
        raise InputError(f"{what} are not a dict", where, why, "give {name: array}")
    return dict(given)


def unexpected_input(
    name: object, names: "Sequence[str]", given: "Mapping[Any, Any]"
) -> InputError:
    """Return the error for a name that is none of the inputs that a call takes."""
    import difflib

    absent = [known for known in names if known not in given]
    folded = {known.casefold(): known for known in absent}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1)
    why = f"the model's inputs are {', '.join(names) or 'none'}"
    do = "leave it out"
    if len(absent) == 1 and len(given) == len(names):
        why += f"; only {absent[0]!r} is missing"
        do = f"give it as {absent[0]!r}"
    if close:
        do = f"did you mean {folded[close[0]]!r}?"
    return InputError(f"no input {name!r}", f"input {name!r}", why, do)


def describe(tensor: TensorPlan, plan: BundlePlan) -> str:
    """Return dtype and shape for messages: ``float32[batch, 3]``."""
    return f"{dtype_of(tensor.dtype).name}[{', '.join(map(str, tensor.shape(plan.symbols)))}]"


def checked_tensor(
    tensor: TensorPlan,
    plan: BundlePlan,
    given: "Mapping[Any, Any]",
    sizes: "dict[int, tuple[int, str]]",
    wanted: "Sequence[TensorPlan]",
) -> "Array":
    """Return one input as an array of the right dtype and shape. ``sizes``: symbols that inputs
    have bound, and which; this one's are added. ``wanted``: all inputs of the call."""
    where = f"input {tensor.name!r}"
    if tensor.name in given:
        value = given[tensor.name]
    elif tensor.name in plan.defaults:
        value = default_of(tensor, plan)
    else:
        raise _missing(wanted, plan, given)
    array, dtype = _as_array(tensor, value, where), dtype_of(tensor.dtype)

    def got() -> str:  # only where something is wrong: numpy takes its time for names
        shape = ", ".join(map(str, array.shape))
        return f"expected {describe(tensor, plan)}, got {array.dtype}[{shape}]"

    if array.dtype != dtype:
        do = f"convert it: x.astype({dtype.name!r})"
        if DTYPE_NAMES[tensor.dtype] in ML_DTYPES and dtype == bits_of(tensor.dtype):
            do = f"give the bits of {DTYPE_NAMES[tensor.dtype]}, or install ml_dtypes"
        raise InputError(f"wrong dtype of input {tensor.name!r}", where, got(), do)
    if array.ndim != len(tensor.dims):
        do = f"give {len(tensor.dims)} dimensions"
        raise InputError(f"wrong rank of input {tensor.name!r}", where, got(), do)
    for axis, (dim, size) in enumerate(zip(tensor.dims, array.shape, strict=True)):
        known, source = (dim, "") if dim >= 0 else sizes.setdefault(dim, (size, tensor.name))
        if size != known:
            why = got()
            if dim < 0:
                why += f"; {plan.symbols[-dim - 1]} is {known} in input {source!r}"
            at, do = f"{where}, axis {axis}", f"give size {known} there"
            raise InputError(f"wrong shape of input {tensor.name!r}", at, why, do)
    return array


def _missing(
    wanted: "Sequence[TensorPlan]", plan: BundlePlan, given: "Mapping[Any, Any]"
) -> InputError:
    """Return the error for all inputs that are not given and have no default."""
    absent = [it for it in wanted if it.name not in given and it.name not in plan.defaults]
    names = ", ".join(repr(tensor.name) for tensor in absent)
    where = f"input{'s' if len(absent) > 1 else ''} {names}"
    why = f"expected {', '.join(describe(tensor, plan) for tensor in absent)}, got nothing"
    return InputError(f"missing {where}", where, why, "give all inputs")


def default_of(tensor: TensorPlan, plan: BundlePlan) -> "Array":
    """Return what an input is where a call does not give it; read-only."""
    shape, data = plan.defaults[tensor.name]
    return np.frombuffer(data, dtype_of(tensor.dtype)).reshape(shape)


def _as_array(tensor: TensorPlan, value: "Any", where: str) -> "Array":
    try:
        return with_dtype(np.asarray(value), tensor.dtype)
    except Exception as error:  # whatever numpy says of a foreign object is the user's error
        raise InputError(f"input {tensor.name!r} is not an array", where, str(error)) from error

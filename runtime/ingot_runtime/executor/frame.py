"""One call struct with everything it points to, for inputs of fixed shapes: packed once.

In: what is loaded, and the inputs' shapes. Out: ``CallFrame``: output shapes (0 where only the data
decide: ``is_data_dependent``), bytes of workspace, an address for `main`. Not done here: arrays
(``session``, ``bound``).
"""

import ctypes
import struct
from itertools import pairwise
from math import prod

from ..errors import FormatError, InputError, RunError
from ..format import abi
from ..format.dtypes import DTYPE_SIZES_BYTES
from ..format.limits import SIZE_BYTES_MAX
from ..format.plan import BundlePlan, TensorPlan
from ..loader.block import Block
from ..loader.ending import native
from .loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from . import attached as devices

Shape = tuple[int, ...]

SMALL_SIZE_BYTES = 32768
ALIGNMENT_BYTES = 64
MORE = "allow more with max_bytes (--max-bytes)"
_ERROR_CAP_BYTES = 512
_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")
_ROW, _CAPACITY = abi.TENSOR.size_bytes // 8, abi.TENSOR.offsets["bytes"] // 8


class Memory:
    """What a session lends to its frames: a workspace per device, ``stride_bytes`` of scratch per
    thread. Never changed."""

    __slots__ = ("scratch", "stride_bytes", "workspaces")

    def __init__(
        self, workspaces: "tuple[devices.Memory, ...]", scratch: Block, stride_bytes: int
    ) -> None:
        self.workspaces = workspaces
        self.scratch = scratch
        self.stride_bytes = stride_bytes


class CallFrame:
    """A call struct. ``input_shapes``, ``output_shapes``; ``*_bytes`` per tensor; ``call`` is
    `main`'s argument. To be set: ``*_addresses``, ``output_capacity``, the bytes there."""

    __slots__ = (
        "_at", "_data", "_input_capacity", "_item_bytes", "_memory", "_pools", "_shapes", "call",
        "input_addresses", "input_bytes", "input_shapes", "is_data_dependent", "lent", "n_devices",
        "output_addresses", "output_bytes", "output_capacity", "output_shapes", "scratch_bytes", "small",
        "small_inputs", "small_outputs", "workspace_bytes",
    )  # fmt: skip

    def __init__(
        self,
        loaded: Loaded,
        input_shapes: tuple[Shape, ...],
        main: "Callable[[int], int]",
        grow_address: int,
        attached: "devices.Attached | None" = None,
    ) -> None:
        """Pack the struct and let `main` compute output shapes and sizes.

        Raises:
            InputError: `main` refuses the shapes. FormatError: it contradicts the plan.
        """
        plan = loaded.plan
        self.input_shapes = input_shapes
        self.lent: Memory | None = None
        self.n_devices = len(plan.devices)
        self._item_bytes = [DTYPE_SIZES_BYTES[tensor.dtype] for tensor in plan.outputs]
        self.input_bytes = _bytes(plan.inputs, input_shapes)
        self._layout(plan.inputs, plan.outputs, loaded.image.frame_size_bytes)
        self._fill(loaded, grow_address)
        self._fill_tensors(plan.inputs, plan.outputs)
        self._fill_devices(loaded, attached)
        self.ask_sizes(loaded, main)
        self._bind_small()

    def resize(
        self, input_shapes: tuple[Shape, ...], loaded: Loaded, main: "Callable[[int], int]"
    ) -> None:
        """Ask `main` again, for inputs of other sizes; addresses are the caller's to set. Errors as
        when it was made."""
        plan, self.lent = loaded.plan, None
        self.input_shapes = input_shapes
        self.input_bytes = _bytes(plan.inputs, input_shapes)
        dims = [dim for shape in input_shapes for dim in shape]
        struct.pack_into(f"<{len(dims)}q", self._data, self._at["input_shapes"], *dims)
        for index, size_bytes in enumerate(self.input_bytes):
            self._input_capacity[index] = size_bytes
        self.ask_sizes(loaded, main)

    def _layout(
        self, inputs: tuple[TensorPlan, ...], outputs: tuple[TensorPlan, ...], frame_size_bytes: int
    ) -> None:
        """Decide where everything lies in one buffer."""
        end = (abi.CALL.size_bytes + 15) // 16 * 16
        at = {"frame": end}
        end += (frame_size_bytes + 7) // 8 * 8
        for name, size_bytes in (
            ("inputs", abi.TENSOR.size_bytes * len(inputs)),
            ("outputs", abi.TENSOR.size_bytes * len(outputs)),
            ("input_shapes", 8 * sum(len(tensor.dims) for tensor in inputs)),
            ("output_shapes", 8 * sum(len(tensor.dims) for tensor in outputs)),
            ("workspaces", 8 * self.n_devices),
            ("workspace_bytes", 8 * self.n_devices),
            ("devices", abi.DEVICE.size_bytes * self.n_devices),
            ("error", _ERROR_CAP_BYTES),
        ):
            at[name] = end
            end += (size_bytes + 7) // 8 * 8
        self._at = at
        self._memory = ctypes.create_string_buffer(end + 15)
        shift = -ctypes.addressof(self._memory) % 16
        self._data = memoryview(self._memory).cast("B")[shift : shift + end]
        self.call = ctypes.addressof(self._memory) + shift
        self._pools = self._data[at["workspaces"] : at["devices"]].cast("Q")
        given = self._data[at["inputs"] : at["outputs"]].cast("Q")
        made = self._data[at["outputs"] : at["input_shapes"]].cast("Q")
        self.input_addresses, self._input_capacity = given[::_ROW], given[_CAPACITY::_ROW]
        self.output_addresses, self.output_capacity = made[::_ROW], made[_CAPACITY::_ROW]

    def _fill(self, loaded: Loaded, grow_address: int) -> None:
        plan, at, weights = loaded.plan, self._at, loaded.weights
        words = {
            "abi": abi.ABI_VERSION, "size": abi.CALL.size_bytes, "n_inputs": len(plan.inputs),
            "n_outputs": len(plan.outputs), "n_devices": self.n_devices,
            "error_cap": _ERROR_CAP_BYTES, "weights": weights.address if weights else 0,
            "weights_bytes": weights.size_bytes if weights else 0, "pool": loaded.pool.page,
            "grow": grow_address, "watch": loaded.watch.address,
            "frame_bytes": loaded.image.frame_size_bytes,
            **{name: self.call + at[name] for name in (
                "inputs", "outputs", "workspaces", "workspace_bytes", "devices", "error", "frame",
            )},
        }  # fmt: skip
        self._store(abi.CALL, 0, words)

    def _fill_tensors(
        self, inputs: tuple[TensorPlan, ...], outputs: tuple[TensorPlan, ...]
    ) -> None:
        """Fill in dtypes and shapes; of outputs, sizes that are not known are 0."""
        known = [tuple(max(dim, 0) for dim in tensor.dims) for tensor in outputs]
        row, shape_at = self._at["inputs"], self._at["input_shapes"]
        for tensor, shape in zip((*inputs, *outputs), (*self.input_shapes, *known), strict=True):
            fields = {"shape": self.call + shape_at, "rank": len(shape), "dtype": tensor.dtype}
            self._store(abi.TENSOR, row, fields)
            struct.pack_into(f"<{len(shape)}q", self._data, shape_at, *shape)
            row += abi.TENSOR.size_bytes
            shape_at += 8 * len(shape)
        for index, size_bytes in enumerate(self.input_bytes):
            self._input_capacity[index] = size_bytes

    def _fill_devices(self, loaded: Loaded, attached: "devices.Attached | None") -> None:
        for index in range(self.n_devices):
            fields = attached.row(index) if attached is not None else {}
            if not index and loaded.weights:
                fields["weights"] = loaded.weights.address
            self._store(abi.DEVICE, self._at["devices"] + index * abi.DEVICE.size_bytes, fields)

    def _store(self, struct_: abi.Struct, at: int, values: dict[str, int]) -> None:
        """Set fields of the struct at that place."""
        kinds = dict(struct_.fields)
        for name, value in values.items():
            form = _U64 if kinds[name] == "u64" else _U32
            form.pack_into(self._data, at + struct_.offsets[name], value)

    def _set(self, name: str, value: int) -> None:
        self._store(abi.CALL, 0, {name: value})

    def get(self, name: str) -> int:
        """Return a field of the call struct."""
        kind = _U64 if dict(abi.CALL.fields)[name] == "u64" else _U32
        return int(kind.unpack_from(self._data, abi.CALL.offsets[name])[0])

    def error_text(self) -> str:
        """Return what `main` wrote into its error buffer."""
        size_bytes = min(self.get("error_len"), _ERROR_CAP_BYTES)
        at = self._at["error"]
        return bytes(self._data[at : at + size_bytes]).decode(errors="replace")

    def ask_sizes(self, loaded: Loaded, main: "Callable[[int], int]") -> None:
        """Call `main` for sizes only, and check its answer against the plan."""
        self._set("flags", abi.FLAG_SIZES_ONLY)
        rc = main(self.call)
        if rc:
            raise self.failure(rc, loaded)
        self._set("flags", 0)
        where = f"section code {loaded.variant_index}"
        self._read_output_shapes(loaded.plan, where)
        self.output_bytes = _bytes(loaded.plan.outputs, self.output_shapes)
        self.workspace_bytes = tuple(self._pools[self.n_devices :])
        self.scratch_bytes = self.get("scratch_stride")
        workspaces = zip(loaded.variant.workspace_bytes, self.workspace_bytes, strict=True)
        for planned, computed in workspaces:
            if planned and planned != computed:
                why = f"planned {planned} bytes, main needs {computed}"
                raise FormatError("plan and image disagree on the workspace", where, why)
        if max((*self.workspace_bytes, self.scratch_bytes, *self.output_bytes)) > SIZE_BYTES_MAX:
            raise InputError("these shapes need too much memory", str(self.input_shapes))
        for index, size_bytes in enumerate(self.output_bytes):
            self.output_capacity[index] = size_bytes

    def _read_output_shapes(self, plan: BundlePlan, where: str) -> None:
        """Read what `main` computed: -1 where only the data decide, which is kept as 0."""
        shapes: list[Shape] = []
        data_dependent: list[bool] = []
        self._shapes: list[memoryview] = []
        at, known = self._at["output_shapes"], _symbols(plan.inputs, self.input_shapes)
        for tensor in plan.outputs:
            self._shapes.append(self._data[at : at + 8 * len(tensor.dims)].cast("q"))
            shape = tuple(self._shapes[-1])
            at += 8 * len(shape)
            pairs = zip(tensor.dims, shape, strict=True)
            is_open = -1 in [size for dim, size in pairs if dim < 0 and dim not in known]
            if is_open:
                shape = tuple(max(size, 0) for size in shape)
            _require_shape(tensor, shape, known, where)
            shapes.append(shape)
            data_dependent.append(is_open)
        self.output_shapes, self.is_data_dependent = tuple(shapes), tuple(data_dependent)

    def _bind_small(self) -> None:
        """Give every small tensor a place of its own that stays: 64-byte aligned, in one block."""
        end = 0
        places: list[list[int]] = []
        for sizes in (self.input_bytes, self.output_bytes):
            row: list[int] = []
            for size_bytes in sizes:
                row.append(end if size_bytes <= SMALL_SIZE_BYTES else -1)
                if row[-1] >= 0:
                    end += max(size_bytes, 1) + -max(size_bytes, 1) % ALIGNMENT_BYTES
            places.append(row)
        self.small = Block(end)
        self.small_inputs, self.small_outputs = tuple(places[0]), tuple(places[1])
        tables = self.input_addresses, self.output_addresses
        for addresses, row in zip(tables, places, strict=True):
            for index, place in enumerate(row):
                if place >= 0:
                    addresses[index] = self.small.address + place

    def final_shape(self, index: int) -> Shape:
        """Return the shape that `main` left for output `index`; ``RunError`` where it is negative,
        or larger than `main` asked for."""
        shape = tuple(self._shapes[index])
        is_open = self.is_data_dependent[index]
        most = self.output_capacity[index] if is_open else self.output_bytes[index]
        if prod(shape) * self._item_bytes[index] > most or (shape and min(shape) < 0):
            why = f"main leaves {list(shape)} where {list(self.output_shapes[index])} was made"
            raise RunError("an output outgrew its upper bound", f"output {index}", why)
        return shape

    def set_grow(self, address: int) -> None:
        """Lend the callback for blocks of unknown size."""
        self._set("grow", address)

    def lend(self, memory: "Memory", loaded: Loaded) -> None:
        """Lend the session's workspace, scratch, workers and weights."""
        # Noted last: after an exception on the way, the next call lends again.
        self.lent = None
        for index, workspace in enumerate(memory.workspaces):
            self._pools[index] = workspace.address
            self._pools[index + self.n_devices] = workspace.size_bytes
        self._set("scratch", memory.scratch.address)
        self._set("scratch_stride", memory.stride_bytes)
        self._set("pool", loaded.pool.page)
        if loaded.weights is not None:
            self._set("weights", loaded.weights.address)
            self._store(abi.DEVICE, self._at["devices"], {"weights": loaded.weights.address})
        self.lent = memory

    def failure(self, rc: int, loaded: Loaded) -> Exception:
        """Return the error for `main`'s return code."""
        text = _named(self.error_text(), loaded)
        where = f"{loaded.source.name}, main of {loaded.variant.target}"
        if rc == abi.RC_BAD_INPUT:
            why = self._with_sizes(text or "an assertion of the model failed", loaded.plan)
            do = "give other sizes or values"
            shapes = self.named_shapes(loaded.plan)
            return InputError("the model refuses these inputs", shapes or where, why, do)
        if rc == abi.RC_ABI:
            why = text or "another version of the call struct"
            return FormatError("main refuses the call struct", where, why)
        what = "a device failed" if rc == abi.RC_DEVICE else "main failed"
        if rc == abi.RC_LIMIT:
            what = "a size that depends on the data is too large"
        return RunError(what, where, text or f"return code {rc}")

    def _with_sizes(self, why: str, plan: BundlePlan) -> str:
        """Return why the model refuses the inputs, with the sizes that it names and the inputs that
        they come from."""
        condition = why.partition(" (node ")[0]
        sizes: dict[int, tuple[int, str]] = {}
        for tensor, shape in zip(plan.inputs, self.input_shapes, strict=True):
            for dim, size in zip(tensor.dims, shape, strict=True):
                sizes.setdefault(dim, (size, tensor.name))
        for number, symbol in enumerate(plan.symbols):
            if -number - 1 in sizes and _has_word(condition, symbol):
                size, name = sizes[-number - 1]
                why += f"; {symbol} is {size} in input {name!r}"
        return why

    def named_shapes(self, plan: BundlePlan) -> str:
        """Return the inputs' names and shapes for messages, "" where there are none."""
        pairs = zip(plan.inputs, self.input_shapes, strict=True)
        return ", ".join(f"{tensor.name} {list(shape)}" for tensor, shape in pairs)


def _has_word(text: str, name: str) -> bool:
    """Whether a name stands in a text, and not as a part of a longer one."""
    parts = text.split(name)
    return any(_is_apart(before[-1:]) and _is_apart(after[:1]) for before, after in pairwise(parts))


def _is_apart(character: str) -> bool:
    """Whether a character separates words: a blank, a bracket, a sign, or none at all."""
    return character < "0" or character in "[]"


def _named(text: str, loaded: Loaded) -> str:
    """Return what `main` says in the user's names."""
    from ..format.debug import named_message

    return named_message(loaded.source, text) if text else ""


def _bytes(tensors: tuple[TensorPlan, ...], shapes: tuple[Shape, ...]) -> tuple[int, ...]:
    pairs = zip(tensors, shapes, strict=True)
    return tuple(DTYPE_SIZES_BYTES[tensor.dtype] * prod(shape) for tensor, shape in pairs)


native.add(CallFrame.ask_sizes.__code__)


def _require_shape(tensor: TensorPlan, shape: Shape, known: dict[int, int], where: str) -> None:
    for dim, size in zip(tensor.dims, shape, strict=True):
        expected = dim if dim >= 0 else known.get(dim, size)
        if size != expected or size < 0:
            why = f"expected {expected}, main computes {size}"
            raise FormatError(f"plan and image disagree on output {tensor.name!r}", where, why)


def _symbols(tensors: tuple[TensorPlan, ...], shapes: tuple[Shape, ...]) -> dict[int, int]:
    """Return the sizes that the input shapes give to the symbols, by the plan's negative codes."""
    return {
        dim: size
        for tensor, shape in zip(tensors, shapes, strict=True)
        for dim, size in zip(tensor.dims, shape, strict=True)
        if dim < 0
    }

"""The vm: steps the program of `main` in Python; by the same kernels, so results are bit-equal.

In: what is loaded, a call struct. Out: `main`'s return code, times, looks into buffers. Not done
here: the native `main` (``ingot_compiler.backends.host.main.main`` is its twin). Every address is
checked against the memory it must lie in.
"""

import ctypes
import struct
from time import perf_counter

from ..errors import FormatError
from ..format import abi
from ..format.dtypes import DTYPE_SIZES_BYTES
from ..format.evaluate import Evaluator, element
from ..format.program import constants_of
from ..format.program_decode import decode_program
from ..format.source import weights_sizes_bytes
from ..loader.image import LAUNCH
from .grow import Grow
from .loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .attached import Attached

    Observer = Callable[[int, str, float, list[memoryview]], None]

_TENSOR = struct.Struct("<QQQII")
_TEXT_SIZES = "a workspace is smaller than the program needs"


class Stop(Exception):  # not an error, the end of a run
    """Ends a run with `main`'s return code."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.text = text


class Step:
    """A launch or a copy of a run: when it started, by ``time.perf_counter``, and how long it took.

    ``device`` is the index of the virtual device that launches, or that a copy writes to. Of a
    launch: ``launch``, its ordinal, and ``kernel``, a number in the device's code. Of a copy:
    ``source``, the device that it reads, ``size_bytes``, and ``buffers``, the numbers in the program of
    what it reads and what it writes. What does not apply is -1 or empty.
    """

    __slots__ = (
        "buffers", "device", "kernel", "launch", "seconds", "size_bytes", "source", "started_seconds",
    )  # fmt: skip

    def __init__(
        self,
        started: float,
        device: int,
        launch: int = -1,
        kernel: int = -1,
        source: int = -1,
        size_bytes: int = -1,
        buffers: "tuple[int, ...]" = (),
    ) -> None:
        """End the step now."""
        self.started_seconds = started
        self.seconds = perf_counter() - started
        self.device = device
        self.launch = launch
        self.kernel = kernel
        self.source = source
        self.size_bytes = size_bytes
        self.buffers = buffers

    def ran(self, started: float, ended: float) -> None:
        """Note when it ran, which is not when it was asked."""
        self.started_seconds, self.seconds = started, ended - started


class Vm(Evaluator):
    """``main(call)`` does what the image's `main` does."""

    __slots__ = (
        "_attached", "_buffers", "_call", "_constants", "_done", "_grow", "_launch_native",
        "_loaded", "_names", "_queued", "observer",
    )  # fmt: skip

    def __init__(self, loaded: Loaded, grow: Grow, attached: "Attached | None" = None) -> None:
        """Decode the program; ``FormatError`` where an index in it does not exist."""
        plan, where = loaded.plan, f"section program {loaded.variant_index}"
        weights_bytes = weights_sizes_bytes(loaded.source, plan)
        program = decode_program(loaded.program, plan, loaded.variant, weights_bytes, where)
        super().__init__(program, len(plan.devices))
        self._loaded = loaded
        self._grow = grow
        self._attached = attached
        self._launch_native = LAUNCH(loaded.image.exports["launch"])
        self.observer: Observer | None = None
        self._names: dict[int, list[str]] = {}  # of the kernels of each device, once asked for
        self._done: list[Step] = []  # the steps of the last run
        # Those that ran when the device wanted, and what tells when that was.
        self._queued: list[tuple[Step, Callable[[], tuple[float, float]]]] = []
        if attached is not None:
            attached.measure()
        self._constants = constants_of(program)

    def trace(self) -> list[tuple[int, str, float]]:
        """Return (launch ordinal, kernel symbol, seconds) of the last run."""
        names = [self._kernel_names(device) for device in range(len(self._loaded.plan.devices))]
        return [
            (step.launch, names[step.device][step.kernel], step.seconds)
            for step in self.steps()
            if step.launch >= 0
        ]

    def steps(self) -> list[Step]:
        """Return the launches and copies of the last run, in order."""
        for step, times in self._queued:
            step.ran(*times())
        self._queued = []
        return list(self._done)

    def _kernel_names(self, device: int) -> list[str]:
        from ..format.debug import kernel_names, library_kernel_names

        if device not in self._names:
            loaded, library = self._loaded, self._loaded.plan.devices[device].library
            if library >= 0:
                count = loaded.plan.libraries[library].kernel_count
                self._names[device] = library_kernel_names(loaded.source, library, count)
            else:
                count = len(loaded.image.kernels)
                self._names[device] = kernel_names(loaded.source, loaded.variant.target, count)
        return self._names[device]

    def main(self, call: int) -> int:
        """Run the program on the call struct at address `call`."""
        self._call = call
        self.registers = [self._constants.get(each, 0) for each in range(len(self.registers))]
        self._buffers: list[tuple[int, int]] = [(0, 0)] * self.program.buffer_count
        self.scratch_bytes = 0
        self.workspace_bytes = [0] * len(self._loaded.plan.devices)
        self._done, self._queued, at = [], [], 0
        try:
            while True:
                after = self.step(at)
                if after <= at:
                    self._look()
                at = after
        except Stop as stop:
            if stop.text:
                self._write_error(stop.text)
            return stop.code

    def _look(self) -> None:
        """End the run where `main` would: on a way back, if somebody wants it to end."""
        watch = self._loaded.watch
        watch.look()
        if watch.is_set:
            raise Stop(abi.RC_CANCELLED)

    def _write_error(self, text: str) -> None:
        data = text.encode()[: self._field("error_cap")]
        ctypes.memmove(self._field("error"), data, len(data))
        self._set_field("error_len", len(data))

    def _field(self, name: str) -> int:
        kind = ctypes.c_uint64 if dict(abi.CALL.fields)[name] == "u64" else ctypes.c_uint32
        return int(kind.from_address(self._call + abi.CALL.offsets[name]).value)

    def _set_field(self, name: str, value: int) -> None:
        kind = ctypes.c_uint64 if dict(abi.CALL.fields)[name] == "u64" else ctypes.c_uint32
        kind.from_address(self._call + abi.CALL.offsets[name]).value = value

    def _tensor(self, which: str, index: int) -> tuple[int, int, int]:
        """Return (data, shape address, bytes) of an input or output."""
        at = self._field(which) + index * abi.TENSOR.size_bytes
        data, shape, size_bytes, _, _ = _TENSOR.unpack(ctypes.string_at(at, _TENSOR.size))
        return data, shape, size_bytes

    def _word(self, address: int) -> ctypes.c_uint64:
        return ctypes.c_uint64.from_address(address)

    # One method per opcode; a returned number is the next instruction.

    def _return(self) -> int:
        raise Stop(abi.RC_OK)

    def refuse(self, message: int) -> int:
        """End the run with a text of the program."""
        raise Stop(abi.RC_BAD_INPUT, self.program.messages[message])

    def _input_dim(self, register: int, tensor: int, axis: int) -> None:
        _, shape, _ = self._tensor("inputs", tensor)
        self.registers[register] = ctypes.c_int64.from_address(shape + 8 * axis).value

    def _output_dim(self, tensor: int, axis: int, register: int) -> None:
        _, shape, _ = self._tensor("outputs", tensor)
        ctypes.c_int64.from_address(shape + 8 * axis).value = self.registers[register]

    def _begin(self) -> None:
        sizes = self._field("workspace_bytes")
        if self._field("flags") & abi.FLAG_SIZES_ONLY:
            self._set_field("scratch_stride", self.scratch_bytes)
            for device, needed in enumerate(self.workspace_bytes):
                self._word(sizes + 8 * device).value = needed
            raise Stop(abi.RC_OK)
        short = any(
            needed > self._word(sizes + 8 * device).value
            for device, needed in enumerate(self.workspace_bytes)
        )
        if short or self.scratch_bytes > self._field("scratch_stride"):
            raise Stop(abi.RC_BAD_INPUT, _TEXT_SIZES)

    def _buffer_input(self, buffer: int, tensor: int) -> None:
        data, _, size_bytes = self._tensor("inputs", tensor)
        self._buffers[buffer] = (data, size_bytes)

    def _buffer_output(self, buffer: int, tensor: int) -> None:
        data, _, size_bytes = self._tensor("outputs", tensor)
        self._buffers[buffer] = (data, size_bytes)

    def _buffer_weights(self, buffer: int, offset: int, size_bytes: int) -> None:
        # Decoding checked the range.
        weights = self._loaded.weights
        self._buffers[buffer] = ((weights.address if weights else 0) + offset, size_bytes)

    def _buffer_device_weights(
        self, buffer: int, device: int, offset: int, size_bytes: int
    ) -> None:
        at = self._field("devices") + device * abi.DEVICE.size_bytes + abi.DEVICE.offsets["weights"]
        # Decoding checked the range.
        self._buffers[buffer] = (self._word(at).value + offset, size_bytes)

    def _held_bytes(self, register: int, given: int, made: int) -> None:
        held, _, _ = self._tensor("inputs", given)
        data, _, size_bytes = self._tensor("outputs", made)
        self.registers[register] = size_bytes if held == data else 0

    def _buffer_workspace(
        self, buffer: int, device: int, offset_register: int, size_register: int
    ) -> None:
        offset, size_bytes = self.registers[offset_register], self.registers[size_register]
        limit_bytes = self._word(self._field("workspace_bytes") + 8 * device).value
        self._require_inside(offset, size_bytes, limit_bytes, "workspace")
        base = self._word(self._field("workspaces") + 8 * device).value
        self._buffers[buffer] = (base + offset, size_bytes)

    def _buffer_grow(self, buffer: int, device: int, size_register: int) -> None:
        size_bytes = self.registers[size_register]
        address = self._grow.allocate(device, size_bytes & 0xFFFFFFFFFFFFFFFF)
        if not address:
            raise Stop(abi.RC_LIMIT, "no memory for a result whose size depends on data")
        self._buffers[buffer] = (address, size_bytes)

    def _launch(
        self,
        device: int,
        kernel: int,
        ordinal: int,
        buffers: tuple[int, ...],
        scalars: tuple[int, ...],
        extent_register: int,
        grain: int,
        messages: tuple[int, ...] = (),
    ) -> None:
        extent = self.registers[extent_register]
        addresses = [self._buffers[buffer][0] for buffer in buffers]
        values = [self.registers[scalar] for scalar in scalars]
        attached = self._attached
        start = perf_counter()
        if attached is None or self._loaded.plan.devices[device].kind == "host":
            code = self._launch_here(kernel, addresses, values, extent, grain)
        else:
            self._look()
            code = attached.launch(device, kernel, addresses, values, extent, grain)
        done = Step(start, device, ordinal, kernel)
        self._done.append(done)
        times = None if attached is None else attached.last_times(device)
        if times is not None:
            self._queued.append((done, times))
        if 0 <= code - abi.RC_REQUIREMENT < len(messages):
            text: str = self.program.messages[messages[code - abi.RC_REQUIREMENT]]
            raise Stop(abi.RC_BAD_INPUT, text)
        if code:
            raise Stop(code)
        if self.observer:
            views = [self._view(buffer, device) for buffer in buffers]
            self.observer(ordinal, self._kernel_names(device)[kernel], done.seconds, views)

    _launch_checked = _launch

    def _launch_here(
        self, kernel: int, addresses: list[int], values: list[int], extent: int, grain: int
    ) -> int:
        code: int = self._launch_native(
            self._loaded.pool.page,
            self._loaded.image.kernels[kernel],
            (ctypes.c_uint64 * max(len(addresses), 1))(*addresses),
            (ctypes.c_int64 * max(len(values), 1))(*values),
            extent,
            grain,
            self._field("scratch"),
            self._field("scratch_stride"),
            self._loaded.watch.address,
        )
        return code

    def _view(self, buffer: int, device: int) -> memoryview:
        """Return the bytes of a buffer, or a copy of them where there are devices."""
        address, size_bytes = self._buffers[buffer]
        kind = ctypes.c_ubyte * size_bytes
        if self._attached is None:
            seen = kind.from_address(address)
        else:
            seen = kind()
            self._attached.read(device, ctypes.addressof(seen), address, size_bytes)
        return memoryview(seen).cast("B").toreadonly()

    def _copy(
        self,
        source_device: int,
        target_device: int,
        target: int,
        source: int,
        size_register: int,
        part: int = 0,
    ) -> None:
        size_bytes = self.registers[size_register]
        for buffer in (target, source):
            self._require_inside(0, size_bytes, self._buffers[buffer][1], "copy")
        to, from_ = self._buffers[target][0], self._buffers[source][0]
        start = perf_counter()
        if self._attached is not None:
            self._attached.copy(target_device, source_device, to, from_, size_bytes | part)
        else:
            ctypes.memmove(to, from_, size_bytes)
        step = Step(start, target_device, -1, -1, source_device, size_bytes, (source, target))
        self._done.append(step)

    def _begin_copy(
        self, source_device: int, target_device: int, target: int, source: int, size_register: int
    ) -> None:
        places = target_device, target, source
        self._copy(source_device, *places, size_register, abi.COPY_BEGINS)

    def _end_copy(
        self, source_device: int, target_device: int, target: int, source: int, size_register: int
    ) -> None:
        if self._attached is None:
            return
        to, from_ = self._buffers[target][0], self._buffers[source][0]
        size_bytes = self.registers[size_register] | abi.COPY_ENDS
        times = self._attached.copy(target_device, source_device, to, from_, size_bytes)
        if times is not None:
            begun = [step for step in self._done if step.buffers == (source, target)]
            for step in begun[-1:]:
                step.ran(*times)

    def _read(self, register: int, buffer: int, index_register: int, dtype: int) -> None:
        size_bytes = DTYPE_SIZES_BYTES[dtype]
        address, limit_bytes = self._buffers[buffer]
        offset = self.registers[index_register] * size_bytes
        self._require_inside(offset, size_bytes, limit_bytes, "read")
        self.registers[register] = element(ctypes.string_at(address + offset, size_bytes), dtype)

    def _output_buffer(self, tensor: int, buffer: int, size_register: int) -> None:
        at = self._field("outputs") + tensor * abi.TENSOR.size_bytes
        size_bytes = self.registers[size_register]
        address, limit_bytes = self._buffers[buffer]
        self._require_inside(0, size_bytes, limit_bytes, "output")
        self._word(at + abi.TENSOR.offsets["data"]).value = address
        self._word(at + abi.TENSOR.offsets["bytes"]).value = size_bytes

    def _require_inside(self, offset: int, size_bytes: int, limit_bytes: int, what: str) -> None:
        if not (0 <= offset <= limit_bytes and 0 <= size_bytes <= limit_bytes - offset):
            where = f"section program {self._loaded.variant_index}"
            why = f"{size_bytes} bytes at {offset} of {limit_bytes}"
            raise FormatError(f"{what} leaves its memory", where, why)

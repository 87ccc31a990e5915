"""Calls a compiled `main` in the test process.

In: a program, arrays. Out: return code, error text, what `main` wrote. Not done here: any check.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from tests.harness.support_harness import Image, pack, unpack

from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.main.main import MAIN_EXPORTS, MAIN_LEVEL, main_module
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.backends.host.support.compile_support import compile_support
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.targets.host_target import host_target
from ingot_runtime.format import abi
from ingot_runtime.format.interface import DeviceSignature, Signature
from ingot_runtime.format.program import CODES, Program

Array = npt.NDArray[np.generic]


def program(
    lines: Sequence[tuple[object, ...]],
    registers: int,
    buffers: int = 0,
    messages: Sequence[str] = (),
) -> Program:
    """Write a program by names: ``("add", 2, 0, 1)``."""
    instructions = tuple((CODES[str(name)], tuple(operands)) for name, *operands in lines)
    return Program(instructions, registers, buffers, tuple(messages))  # type: ignore[arg-type]


@dataclass
class Outcome:
    """What one call of `main` gave back."""

    code: int
    error: str
    workspace_bytes: int
    scratch_stride: int
    shapes: list[list[int]]


@dataclass
class Main:
    """A linked `main`; keeps the memory of calls alive."""

    program: Program
    inputs: Sequence[Signature] = ()
    outputs: Sequence[Signature] = ()
    kernels: str = ""
    symbols: Sequence[str] = ()
    weights_bytes: int = 0
    devices: Sequence[DeviceSignature] = ((0, -1),)
    kept: list[object] = field(default_factory=list[object])

    def __post_init__(self) -> None:
        target = host_target()
        text = main_module(
            self.program, self.symbols, target, inputs=self.inputs, outputs=self.outputs,
            weights_bytes=self.weights_bytes, devices=self.devices,
        )  # fmt: skip
        objects = [
            ("main", compile_object(text, target, level=MAIN_LEVEL, verify=True)),
            ("support", compile_support(target)),
        ]
        objects.append(("kernels", compile_object(self.kernels, target, verify=True)))
        self.bytes = link_image(objects, self.symbols, {**MAIN_EXPORTS, **SUPPORT_EXPORTS}, target)
        self.image = Image(self.bytes)
        self.function = self.image.function("main", ctypes.c_int32, ctypes.c_void_p)
        at = self.image.words["frame_bytes"]
        self.frame_bytes = int.from_bytes(self.bytes[at : at + 8], "little")

    def __call__(
        self,
        inputs: Sequence[Array] = (),
        outputs: Sequence[Array] = (),
        workspace: int = 4096,
        outputs_at: int = 0,
        **fields: int,
    ) -> Outcome:
        """Call with arrays; `fields` override fields of the call struct."""
        memory = np.zeros(workspace + 64, dtype=np.uint8)
        count = len(self.devices)
        workspaces = (ctypes.c_uint64 * count)(*([memory.ctypes.data] * count))
        sizes = (ctypes.c_uint64 * count)(*([workspace] * count))
        error = ctypes.create_string_buffer(64)
        in_table, _ = self._tensors(inputs)
        out_table, shapes = self._tensors(outputs)
        frame = np.zeros(self.frame_bytes // 8 + 2, dtype=np.int64)
        devices = fields.pop("devices", 0) or self._host_table(count)
        values = {
            "abi": abi.ABI_VERSION, "size": abi.CALL.size_bytes, "n_inputs": len(inputs), "n_outputs": len(outputs),
            "n_devices": count, "inputs": in_table, "outputs": outputs_at or out_table, "workspaces": ctypes.addressof(workspaces),
            "workspace_bytes": ctypes.addressof(sizes), "devices": devices, "error": ctypes.addressof(error),
            "error_cap": 64, "frame": -(-frame.ctypes.data // 16) * 16, "frame_bytes": self.frame_bytes,
        }  # fmt: skip
        call = pack(abi.CALL, values | fields)
        code = self.function(ctypes.addressof(call))
        length = unpack(abi.CALL, call, "error_len")
        stride = unpack(abi.CALL, call, "scratch_stride")
        return Outcome(
            code, error.raw[:length].decode(), sizes[0], stride, [list(shape) for shape in shapes]
        )

    def _host_table(self, count: int) -> int:
        table = ctypes.create_string_buffer(abi.DEVICE.size_bytes * count)
        self.kept.append(table)
        return ctypes.addressof(table)

    def _tensors(self, arrays: Sequence[Array]) -> "tuple[int, list[ctypes.Array[ctypes.c_int64]]]":
        size = abi.TENSOR.size_bytes
        table = ctypes.create_string_buffer(size * max(len(arrays), 1))
        shapes: list[ctypes.Array[ctypes.c_int64]] = []
        codes = {"float32": 0, "int64": 7, "float16": 2, "uint8": 8, "float64": 1}
        for index, array in enumerate(arrays):
            shapes.append((ctypes.c_int64 * max(array.ndim, 1))(*array.shape))
            row = pack(
                abi.TENSOR,
                {"data": array.ctypes.data, "shape": ctypes.addressof(shapes[-1]), "bytes": array.nbytes,
                 "rank": array.ndim, "dtype": codes[array.dtype.name]},
            )  # fmt: skip
            ctypes.memmove(ctypes.addressof(table) + size * index, row, size)
        self.kept += [table, shapes, *arrays]
        return ctypes.addressof(table), shapes

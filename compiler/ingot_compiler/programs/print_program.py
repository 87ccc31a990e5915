"""Text form of a program; ``parse_program`` reads it back.

In: a program. Out: text that ends with a newline. Not done here: checking (``verify_program``).

An expression that is read more than once gets a number in the innermost block around all its
readers; so does one in a long chain, because texts are read by recursion.
"""

from __future__ import annotations

import json

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.device_text import print_block, print_device
from ingot_compiler.programs.print_expression import FunctionPrinter
from ingot_compiler.programs.program import KernelBuffer, Program, ProgramKernel


def print_program(program: Program, canonical: bool = False) -> str:
    """The text; ``canonical``: variables are called ``v0``, ``v1``, ... in the order of their
    binding, and global functions stand in the order of their names, so that equal texts are equal
    programs."""
    names = _DeviceNames({})
    for declared in reversed(program.devices):
        names.table[declared.device] = declared.name
    lines = [print_device(one, one.name == program.default) for one in program.devices]
    for data in program.data:
        constructors = (
            f"{one.name}({', '.join(map(str, one.fields))})" for one in data.constructors
        )
        lines.append(f"data {data.name} = {' or '.join(constructors)}")
    for kernel in program.kernels.values():
        lines += _kernel(kernel, names)
    functions = program.functions.items()
    for name, function in sorted(functions) if canonical else functions:
        lines += FunctionPrinter(names.block, names.name, canonical).lines(f"def @{name}", function)
    return "\n".join(lines) + "\n"


class _DeviceNames:
    def __init__(self, table: dict[VirtualDevice, str]) -> None:
        self.table = table

    def name(self, device: VirtualDevice) -> str:
        """The name in quotes."""
        if device not in self.table:
            raise InternalError("a program has a device without a name", str(device))
        return json.dumps(self.table[device])

    def block(self, device: VirtualDevice) -> str:
        """A block with a space before it, or nothing where the device is open."""
        return "" if device.is_open else f" {print_block(json.loads(self.name(device)))}"


def _kernel(kernel: ProgramKernel, names: _DeviceNames) -> list[str]:
    printer = FunctionPrinter(names.block, names.name, canonical=False)
    lines = printer.lines(f"kernel @{kernel.name}", kernel.reference)
    buffers = ", ".join(map(_buffer, kernel.buffers))
    lines.append(f"buffers ({buffers})")
    lines += [f"alias {one.name} of {one.of}{_scope(one.memory_scope)}" for one in kernel.aliases]
    return lines


def _buffer(buffer: KernelBuffer) -> str:
    return f"{buffer.name}: {buffer.type}{_scope(buffer.memory_scope)}"


def _scope(scope: str) -> str:
    return f" scope {json.dumps(scope)}" if scope else ""

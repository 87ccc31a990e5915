"""A program: devices, data types, kernels and global functions.

In: expressions. Out: ``Program``. Not done here: checking (``verify_program``), text
(``print_program``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.configuration import HOST
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, DeclaredDevice, VirtualDevice
from ingot_compiler.programs.expressions import NOWHERE, FunctionLiteral, TextSpan
from ingot_compiler.programs.types import FunctionType, Type
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Constructor:
    """One way to make a value of a data type."""

    name: str
    fields: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class DataDefinition:
    """A data type; its fields may be of the type itself."""

    name: str
    constructors: tuple[Constructor, ...]


@dataclass(frozen=True, slots=True)
class KernelBuffer:
    """A tensor that a kernel reads or writes; ``memory_scope`` "" accepts any."""

    name: str
    type: TensorType
    memory_scope: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """A second name of a buffer in the body of a kernel; it is in the memory of ``of``."""

    name: str
    of: str
    memory_scope: str = ""


@dataclass(frozen=True, slots=True)
class ProgramKernel:
    """Compiled code: a signature, and its buffers in the order in which they are passed: the
    tensors of each parameter, tuples flattened, then those of the result.

    ``reference`` computes what the kernel computes (a primitive function), for the interpreter.
    """

    name: str
    type: FunctionType
    buffers: tuple[KernelBuffer, ...]
    reference: FunctionLiteral
    aliases: tuple[Alias, ...] = ()
    span: TextSpan = NOWHERE


@dataclass(frozen=True, slots=True)
class Program:
    """Devices by name, data types, kernels, global functions in the order of their text.

    ``default`` names the device of what nothing else decides.
    """

    functions: Mapping[str, FunctionLiteral]
    devices: tuple[DeclaredDevice, ...] = ()
    data: tuple[DataDefinition, ...] = ()
    kernels: Mapping[str, ProgramKernel] = field(default_factory=dict[str, ProgramKernel])
    default: str = HOST

    def device(self, name: str) -> VirtualDevice:
        """The declared device of a name; an open one where there is none."""
        return next((one.device for one in self.devices if one.name == name), UNCONSTRAINED)

    def constructors(self) -> dict[str, tuple[DataDefinition, Constructor]]:
        """Constructors by name."""
        return {
            constructor.name: (data, constructor)
            for data in self.data
            for constructor in data.constructors
        }

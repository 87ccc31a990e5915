"""Memory scopes of a kernel: what its buffers ask for, and a kernel whose buffers take others.

In: a kernel. Out: one scope for each parameter and for the result; a kernel with given scopes;
where a kernel reads an operand. Not done here: which scopes are wanted (the planner).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.placement.virtual_device import VirtualDevice, join
from ingot_compiler.programs.program import Alias, KernelBuffer, ProgramKernel
from ingot_compiler.programs.types import TupleType, Type


def get_scopes(kernel: ProgramKernel) -> tuple[str, ...]:
    """The scope of each parameter and of the result; "" where any will do.

    Raises:
        ModelError: the tensors of one tuple ask for two scopes, or buffers do not fit the
            signature.
    """
    scopes: list[str] = []
    for position, group in enumerate(_groups(kernel)):
        requested = sorted({buffer.memory_scope for buffer in group if buffer.memory_scope})
        if len(requested) > 1:
            names = " and ".join(f"{one.name}: {one.memory_scope or 'any'}" for one in group)
            raise ModelError(
                f"argument {position} of kernel @{kernel.name} is a tuple in two memory scopes",
                f"@{kernel.name} at {kernel.span}",
                f"expected one scope for all its tensors, got {names}",
                "pass them as arguments of their own",
            )
        scopes.append(requested[0] if requested else "")
    return tuple(scopes)


def with_scopes(kernel: ProgramKernel, scopes: Sequence[str]) -> ProgramKernel:
    """The kernel with the given scopes for its parameters and its result, "" leaves one as it is;
    other names of a buffer follow it."""
    buffers = [
        replace(buffer, memory_scope=scope or buffer.memory_scope)
        for group, scope in zip(_groups(kernel), scopes, strict=True)
        for buffer in group
    ]
    known = {buffer.name: buffer.memory_scope for buffer in buffers}
    aliases: list[Alias] = []
    for alias in kernel.aliases:
        known[alias.name] = known[alias.of]
        aliases.append(replace(alias, memory_scope=known[alias.of]))
    return replace(kernel, buffers=tuple(buffers), aliases=tuple(aliases))


def kernel_operand(
    declared: VirtualDevice, call: VirtualDevice, device: VirtualDevice
) -> VirtualDevice:
    """Where a kernel reads an operand that is on ``device``: where its parameter is declared, else
    on the device of its call, in any memory scope."""
    place = declared if declared.device_type else replace(call, memory_scope="")
    return join(place, device) or place


def _groups(kernel: ProgramKernel) -> list[list[KernelBuffer]]:
    """The buffers of each parameter, and of the result."""
    counts = [_tensor_count(type_) for type_ in (*kernel.type.parameters, kernel.type.result)]
    if sum(counts) != len(kernel.buffers):
        raise ModelError(
            f"the buffers of kernel @{kernel.name} do not fit its signature",
            f"@{kernel.name} at {kernel.span}",
            f"expected {sum(counts)} buffers for {kernel.type}, got {len(kernel.buffers)}",
            "give one buffer for each tensor, tuples flattened, the result last",
        )
    ends = [sum(counts[: index + 1]) for index in range(len(counts))]
    return [
        list(kernel.buffers[end - count : end]) for count, end in zip(counts, ends, strict=True)
    ]


def _tensor_count(type_: Type) -> int:
    return sum(map(_tensor_count, type_.items)) if isinstance(type_, TupleType) else 1

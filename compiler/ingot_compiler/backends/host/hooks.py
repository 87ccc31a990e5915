"""The hooks of processors: of the host, and of devices that run the host's code.

In: texts, groups, loop programs, objects. Out: what ``Backend`` says of each hook. Not done here: any
of the work, which each hook imports for itself: the key of an action has the code of its hook alone
(``code_digest``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingot_compiler.lowering.fusion.device_rules import DeviceRules
    from ingot_compiler.lowering.groups.fused import Group
    from ingot_compiler.lowering.groups.group_steps import LoweredGroup
    from ingot_compiler.lowering.loops.program import LoopProgram
    from ingot_compiler.targets.target import Target


def read_target(text: str, host_targets: Sequence[str]) -> Target:
    """Read a target of the host; it is one of ``host_targets`` itself, so these say nothing
    more."""
    from ingot_compiler.targets.target import parse_target

    del host_targets
    return parse_target(text)


def read_device_target(text: str, host_targets: Sequence[str]) -> Target:
    """Read a target of a device that runs the host's code; without a text it is that of the host's
    which most machines run."""
    from ingot_compiler.targets.target import parse_target

    if text:
        return parse_target(text)
    return min(map(parse_target, host_targets), key=lambda target: target.rank)


def device_rules(target: str) -> DeviceRules:
    """Every op with loops has a kind of kernel here."""
    from ingot_compiler.kernels.anchors import ANCHORS
    from ingot_compiler.lowering.fusion.device_rules import DeviceRules
    from ingot_compiler.targets.target import parse_target

    return DeviceRules(parse_target(target), ANCHORS)


def lower_group(group: Group, target: str) -> LoweredGroup:
    """Return what runs for the group: launches, and the loops of their kernels."""
    from ingot_compiler.kernels.kinds import KINDS
    from ingot_compiler.lowering.lower import lower
    from ingot_compiler.targets.target import parse_target

    return lower(group, parse_target(target), KINDS)


def compile_kernel(program: LoopProgram, target: str) -> tuple[str, bytes]:
    """Return the kernel's symbol, which names its content, and its ELF object."""
    from ingot_compiler.codegen.emit.kernel import kernel_module
    from ingot_compiler.codegen.llvm_text import llvm_text
    from ingot_compiler.codegen.object import compile_object
    from ingot_compiler.targets.target import parse_target

    chosen = parse_target(target)
    module = kernel_module(program, chosen)
    return module.symbol, compile_object(llvm_text(module), chosen)


def compile_support(target: str) -> bytes:
    """Return the ELF object of the native code that every image of a target needs."""
    from ingot_compiler.backends.host.support import compile_support as support
    from ingot_compiler.targets.target import parse_target

    return support.compile_support(parse_target(target))


def no_support(target: str) -> bytes:
    """Return nothing, where a library needs nothing beside its kernels."""
    del target
    return b""


def link_variant(
    kernels: Sequence[tuple[str, bytes]], main: bytes | None, support: bytes, target: str
) -> bytes:
    """Link a variant of the host; ``kernels`` are (symbol, object) in the order of its table.

    Raises:
        InternalError: no `main`, or what does not link. BuildError: no linker on this machine.
    """
    from ingot_compiler.backends.host.link import link_image
    from ingot_compiler.backends.host.main.main import MAIN_EXPORTS
    from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
    from ingot_compiler.ir.errors import InternalError
    from ingot_compiler.targets.target import parse_target

    if main is None:
        raise InternalError("a variant without main", where=f"target {target}")
    objects = (*kernels, ("main", main), ("support", support))
    symbols = [symbol for symbol, _ in kernels]
    return link_image(objects, symbols, {**SUPPORT_EXPORTS, **MAIN_EXPORTS}, parse_target(target))


def link_library(
    kernels: Sequence[tuple[str, bytes]], main: bytes | None, support: bytes, target: str
) -> bytes:
    """Link a library of a device; ``kernels`` are (symbol, object) in the order of its table.

    Raises:
        InternalError: a `main`, or what does not link. BuildError: no linker on this machine.
    """
    from ingot_compiler.backends.host.link import link_image
    from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
    from ingot_compiler.ir.errors import InternalError
    from ingot_compiler.targets.target import parse_target

    if main is not None:
        raise InternalError("a library with a main", where=f"target {target}")
    symbols = [symbol for symbol, _ in kernels]
    return link_image(
        (*kernels, ("support", support)), symbols, SUPPORT_EXPORTS, parse_target(target)
    )

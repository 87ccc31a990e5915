"""The native code that every host image carries beside its kernels: one module per target.

In: a target. Out: ``support_module`` (IR text), ``SUPPORT_EXPORTS`` (``abi.EXPORTS`` name -> symbol).
Not done here: ``main`` (``main``), kernels, linking. A new piece is one file and one line in ``SUPPORT``.
"""

from collections.abc import Callable

from ingot_compiler.backends.host.support.blake3 import write_blake3
from ingot_compiler.backends.host.support.checksum import write_checksum
from ingot_compiler.backends.host.support.float_control import write_float_control
from ingot_compiler.backends.host.support.launch import write_launch, write_worker
from ingot_compiler.backends.host.support.memory import write_memory
from ingot_compiler.backends.host.support.narrow import write_narrow
from ingot_compiler.backends.host.support.parts import join_pieces, spin_hint_declaration
from ingot_compiler.backends.host.support.sigbus import write_sigbus
from ingot_compiler.backends.host.support.watch import write_watch
from ingot_compiler.backends.host.targets.target import Target

SUPPORT: tuple[Callable[[Target], str], ...] = (
    write_launch,
    write_worker,
    write_watch,
    write_float_control,
    write_blake3,
    write_checksum,
    write_sigbus,
    write_memory,
    write_narrow,
    spin_hint_declaration,
)

SUPPORT_EXPORTS: dict[str, str] = {
    "launch": "ingot_launch",
    "worker": "ingot_worker",
    "blake3_verify": "ingot_blake3_verify",
    "checksum_verify": "ingot_checksum_verify",
    "sigbus_handler": "ingot_sigbus_handler",
    "python_poll": "ingot_python_poll",
}


def support_module(target: Target) -> str:
    """Write the support code of `target` as one LLVM module; unused functions leave the image at link."""
    return join_pieces(piece(target) for piece in SUPPORT)

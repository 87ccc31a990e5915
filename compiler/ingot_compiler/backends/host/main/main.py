"""The native `main` of a host image, as one LLVM module.

In: the program (instruction list), kernel symbols, the signature that callers must meet. Out: IR
text. Not done here: kernels, the support code (``support``), linking. Semantics:
``ingot_runtime.format.program``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_compiler.backends.host.main.frame import MainFrame
from ingot_compiler.backends.host.main.helpers import fill_in, frame_numbers, write_helpers
from ingot_compiler.backends.host.main.registers import initial_registers
from ingot_compiler.backends.host.main.steps import Steps, write_steps
from ingot_compiler.targets.target import Target
from ingot_runtime.format.dtypes import DTYPE_SIZES_BYTES
from ingot_runtime.format.interface import (
    DeviceSignature,
    LibrarySignature,
    Signature,
    interface_digest,
)
from ingot_runtime.format.program import OPCODES, Program

if TYPE_CHECKING:
    from ingot_compiler.codegen.llvm import Level  # with it comes all of LLVM

MAIN_LEVEL: Level = 0
MAIN_EXPORTS: dict[str, str] = {
    "main": "ingot_main",
    "program_digest": "ingot_program_digest",
    "interface_digest": "ingot_interface_digest",
    "frame_bytes": "ingot_frame_bytes",
}
"""``abi.EXPORTS`` name -> symbol, of what `main_module` defines."""


def main_module(
    program: Program,
    kernels: Sequence[str],
    target: Target,
    *,
    inputs: Sequence[Signature],
    outputs: Sequence[Signature],
    weights_bytes: int,
    devices: Sequence[DeviceSignature] = ((0, -1),),
    libraries: Sequence[LibrarySignature] = (),
) -> str:
    """Write `main` for `program`.

    Args:
        program: what to do; every index in it must exist.
        kernels: symbols of the host's kernels; a launch names its kernel by position.
        target: the host CPU.
        inputs: (dtype code, dims) each; dims below 0 are known only at a call.
        outputs: likewise.
        weights_bytes: size of the weights section that the program was made for.
        devices: (kind code, index of its library or -1) of each virtual device.
        libraries: (kind code, target, CPU features, count of kernels) of each.
    """
    frame = MainFrame(
        program.register_count, program.buffer_count, len(devices), *_longest_arguments(program)
    )
    steps = write_steps(program, frame, kernels, [library < 0 for _, library in devices], target)
    digest = interface_digest(
        tuple(inputs), tuple(outputs), tuple(devices), tuple(libraries), target.features
    )
    counts = {"input_count": len(inputs), "output_count": len(outputs)}
    numbers = {**frame_numbers(frame), **counts, "weights_bytes": weights_bytes}
    attributes = target.function_attributes
    parts = [
        _bytes("ingot_program_digest", hashlib.sha256(encode_program(program)).digest()),
        _bytes("ingot_interface_digest", digest),
        f"@ingot_frame_bytes = hidden constant i64 {frame.size_bytes}, align 8\n",
        _tables(program, steps, inputs, outputs),
        *map(_kernel_declaration, sorted(set(kernels))),
        write_helpers(numbers, attributes),
        *steps.functions,
        fill_in("main", numbers, attributes=attributes, body="\n".join(steps.body)),
    ]
    return "".join(parts)


def _longest_arguments(program: Program) -> tuple[int, int]:
    """Return the longest buffer list and the longest scalar list of any launch."""
    lists = [
        operands
        for opcode, operands in program.instructions
        if OPCODES[opcode][0] in ("launch", "launch_checked")
    ]
    pairs = [(operands[3], operands[4]) for operands in lists]
    buffers = [len(first) for first, _ in pairs if isinstance(first, tuple)]
    scalars = [len(second) for _, second in pairs if isinstance(second, tuple)]
    return max(buffers, default=0), max(scalars, default=0)


def _kernel_declaration(symbol: str) -> str:
    return f"declare hidden i32 @{symbol}(ptr, ptr, i64, i64, ptr)\n"


def _tables(
    program: Program, steps: Steps, inputs: Sequence[Signature], outputs: Sequence[Signature]
) -> str:
    messages = [message.encode() for message in program.messages]
    return "".join(
        (
            _words("inputs", "i64", _signature_words(inputs)),
            _words("outputs", "i64", _signature_words(outputs)),
            _words("registers", "i64", initial_registers(program)),
            _words("buffers", "i64", steps.buffer_rows),
            _words("launches", "i32", steps.launch_words),
            *(_bytes(f"message.{index}", text, "private") for index, text in enumerate(messages)),
        )
    )


def _signature_words(signatures: Sequence[Signature]) -> list[int]:
    words: list[int] = []
    for dtype, dims in signatures:
        words += [dtype, DTYPE_SIZES_BYTES[dtype], len(dims), *dims]
    return words


def _words(name: str, kind: str, values: Sequence[int]) -> str:
    items = ", ".join(f"{kind} {value}" for value in values)
    return f"@table.{name} = private constant [{len(values)} x {kind}] [{items}], align 8\n"


def _bytes(name: str, content: bytes, linkage: str = "hidden") -> str:
    escaped = "".join(f"\\{byte:02x}" for byte in content)
    return f'@{name} = {linkage} constant [{len(content)} x i8] c"{escaped}", align 8\n'

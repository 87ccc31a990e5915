"""Instructions of a program that call a function of ``helpers``: asserts, launches, copies, blocks.

In: an instruction, registers, the kernels' symbols, which devices are the host. Out: lines of IR,
the table of launches. Not done here: the functions.
"""

from collections.abc import Sequence
from dataclasses import field

from ingot_compiler.backends.host.main.helpers import SIZES_DONE
from ingot_compiler.backends.host.main.instruction import (
    number,
    number_list,
    numbers_of,
    opcode_name,
)
from ingot_compiler.backends.host.main.registers import Registers
from ingot_runtime.format import abi
from ingot_runtime.format.program import Instruction
from ingot_runtime.lazy_dataclass import dataclass

COPIES = {"copy": 0, "begin_copy": abi.COPY_BEGINS, "end_copy": abi.COPY_ENDS}
"""Opcode of a copy -> the bit of its bytes."""
CALLS = (
    "assert", "begin", "launch", "launch_checked", *COPIES, "buffer_grow", "output_buffer",
)  # fmt: skip


@dataclass(slots=True)
class Calls:
    """Writes the calls; ``launch_words`` is the table of the launches so far."""

    registers: Registers
    messages: Sequence[str]
    kernels: Sequence[str]
    host_devices: Sequence[bool]
    launch_words: list[int] = field(default_factory=list[int])

    def lines(self, instruction: Instruction) -> list[str]:
        """Write one instruction, an opcode of `CALLS`."""
        name = opcode_name(instruction)
        if name in ("launch", "launch_checked"):
            return self._launch(instruction)
        operands = numbers_of(instruction)
        match name:
            case "assert":
                register, message = operands
                text = self._message(message)
                return self._checked(f"call i32 @main.assert(ptr %frame, i64 {register}, {text})")
            case "begin":
                # What `ingot_main` returns for this code is success.
                assert SIZES_DONE != abi.RC_OK
                return self._checked("call i32 @main.begin(ptr %frame)")
            case _:
                return self._sized(name, *operands)

    def look(self) -> list[str]:
        """Ask on a way back whether the call is to stop here."""
        return self._checked("call i32 @main.look(ptr %frame)")

    def _sized(self, name: str, *operands: int) -> list[str]:
        """Write a call whose last operand is the register of a size in bytes."""
        *places, register = operands
        size = self.registers.fresh("bytes")
        lines = self.registers.read(register, size)
        if COPIES.get(name):
            lines.append(f"  {size}.part = or i64 {size}, {COPIES[name]}")
            size = f"{size}.part"
        values = ", ".join(("ptr %frame", *(f"i64 {place}" for place in places), f"i64 {size}"))
        if name == "output_buffer":
            return [*lines, f"  call void @main.output({values})"]
        function = "grow" if name == "buffer_grow" else "copy"
        return [*lines, *self._checked(f"call i32 @main.{function}({values})")]

    def _launch(self, instruction: Instruction) -> list[str]:
        """Write a launch: a row of the table, and the call that walks it."""
        device, kernel, ordinal, buffers, scalars, extent, grain, *messages = instruction[1]
        row = f"ptr getelementptr (i32, ptr @table.launches, i64 {len(self.launch_words)})"
        arguments = (*number_list(buffers), *number_list(scalars))
        counts = (len(number_list(buffers)), len(number_list(scalars)))
        self.launch_words += [*counts, number(extent), *arguments]
        if self.host_devices[number(device)]:
            function, what = "launch", f"ptr @{self.kernels[number(kernel)]}"
        else:
            function, what = "launch_device", f"i64 {device}, i64 {kernel}"
        values = f"ptr %frame, {row}, {what}, i64 {ordinal}, i64 {grain}"
        call = f"call i32 @main.{function}({values})"
        return self._refused(call, number_list(messages[0]) if messages else ())

    def _refused(self, call: str, messages: Sequence[int]) -> list[str]:
        """Write a launch that may report a broken requirement: each has a code and a text."""
        lines: list[str] = []
        for code, message in enumerate(messages, abi.RC_REQUIREMENT):
            result = self.registers.fresh("rc")
            lines.append(f"  {result} = {call}")
            values = f"ptr %frame, i32 {result}, i32 {code}, {self._message(message)}"
            call = f"call i32 @main.refuse({values})"
        return [*lines, *self._checked(call)]

    def _message(self, message: int) -> str:
        return f"ptr @message.{message}, i64 {len(self.messages[message].encode())}"

    def _checked(self, call: str) -> list[str]:
        """Write a call that returns a code; anything but 0 ends `main`."""
        code = self.registers.fresh("rc")
        return [
            f"  {code} = {call}",
            f"  store i32 {code}, ptr %rc, align 4",
            f"  {code}.bad = icmp ne i32 {code}, 0",
            f"  br i1 {code}.bad, label %fail, label {code}.good",
            f"{code[1:]}.good:",
        ]

"""Instructions of a program to the steps of `main`.

In: a program, its frame, the kernels' symbols, which devices are the host. Out: ``Steps``: the body
of `main`, the functions it calls for stretches of arithmetic, the tables in read-only data. Not
done here: the fixed helpers.

Stretches of arithmetic become functions of their own of at most `_STRETCH_MAX` instructions: LLVM's
time is quadratic in the length of a block, and one block is what straight-line code becomes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ingot_compiler.backends.host.main.buffers import (
    BUFFER_DEVICE_WEIGHTS,
    BUFFER_INPUT,
    BUFFER_OUTPUT,
    BUFFER_WEIGHTS,
    BUFFER_WORKSPACE,
)
from ingot_compiler.backends.host.main.checks import SIZES_DONE
from ingot_compiler.backends.host.main.frame import MainFrame
from ingot_compiler.backends.host.main.read import read_element
from ingot_compiler.backends.host.main.text import frame_field
from ingot_compiler.backends.host.targets.target import Target
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.format import abi
from ingot_runtime.format.program import OPCODES, Instruction, Program

_STRETCH_MAX = 60
_BINARY = {"add": "add", "sub": "sub", "mul": "mul"}
_COMPARE = {"eq": "eq", "lt": "slt", "le": "sle"}
_SELECT = {"min": "slt", "max": "sgt"}
_CALLED = {"floordiv": "main.floordiv", "mod": "main.mod"}
_WITH_OFFSET = ("buffer_workspace", "buffer_device_weights")  # a register, a number
_BUFFER_KINDS = {
    "buffer_input": BUFFER_INPUT,
    "buffer_output": BUFFER_OUTPUT,
    "buffer_weights": BUFFER_WEIGHTS,
    "buffer_workspace": BUFFER_WORKSPACE,
    "buffer_device_weights": BUFFER_DEVICE_WEIGHTS,
}
_FLOW = ("jump", "branch", "return")


@dataclass(slots=True)
class Steps:
    """What the translation wrote so far, as lines of IR."""

    body: list[str] = field(default_factory=list[str])
    functions: list[str] = field(default_factory=list[str])
    buffer_rows: list[int] = field(default_factory=list[int])
    launch_words: list[int] = field(default_factory=list[int])


def initial_registers(program: Program) -> tuple[int, ...]:
    """Return what each register holds before the first instruction: its constant if it is assigned
    only one, else 0."""
    values = [0] * program.register_count
    for register, value in _single_constants(program).items():
        values[register] = value
    return tuple(values)


def write_steps(
    program: Program,
    frame: MainFrame,
    kernels: Sequence[str],
    host_devices: Sequence[bool],
    target: Target,
) -> Steps:
    """Translate the whole program.

    Raises:
        InternalError: an instruction that the program's own format does not allow.
    """
    return _Translation(program, frame, kernels, host_devices, target).run()


def _single_constants(program: Program) -> dict[int, int]:
    written = Counter(
        operands[0]
        for opcode, operands in program.instructions
        if _writes_register(opcode) and operands
    )
    return {
        _number(operands[0]): _number(operands[1])
        for opcode, operands in program.instructions
        if OPCODES[opcode][0] == "const" and written[operands[0]] == 1
    }


def _writes_register(opcode: int) -> bool:
    name, kinds = OPCODES[opcode]
    return kinds.startswith("r") and name not in ("assert", "branch", "scratch_bytes")


def _number(operand: int | tuple[int, ...]) -> int:
    if isinstance(operand, tuple):
        raise InternalError(
            "malformed program", why=f"expected a number as operand, got the list {operand}"
        )
    return operand


def _list(operand: int | tuple[int, ...]) -> tuple[int, ...]:
    if isinstance(operand, int):
        raise InternalError("malformed program", why=f"expected a list as operand, got {operand}")
    return operand


class _Translation:
    """The state of one `write_steps`."""

    def __init__(
        self,
        program: Program,
        frame: MainFrame,
        kernels: Sequence[str],
        host_devices: Sequence[bool],
        target: Target,
    ) -> None:
        self._program = program
        self._frame = frame
        self._kernels = kernels
        self._host_devices = host_devices
        self._attributes = target.function_attributes
        self._constants = _single_constants(program)
        self._steps = Steps()
        self._stretch: list[Instruction] = []
        self._buffers: list[Instruction] = []
        self._count = 0

    def run(self) -> Steps:
        """Walk over the instructions; labels end what is being collected."""
        targets = self._jump_targets()
        open_block = True
        for index, instruction in enumerate(self._program.instructions):
            if index in targets:
                self._flush()
                self._steps.body += [f"  br label %at.{index}"] if open_block else []
                self._steps.body.append(f"at.{index}:")
                open_block = True
            elif not open_block:
                # Behind a jump and not a target: never reached, but the text must be a block.
                self._steps.body.append(f"dead.{index}:")
                open_block = True
            open_block = self._instruction(index, instruction)
        self._flush()
        self._steps.body += ["  ret i32 0"] if open_block else []
        return self._steps

    def _jump_targets(self) -> frozenset[int]:
        targets: set[int] = set()
        for opcode, operands in self._program.instructions:
            name = OPCODES[opcode][0]
            labels = operands if name == "jump" else operands[1:] if name == "branch" else ()
            targets.update(_number(label) for label in labels)
        return frozenset(targets)

    def _instruction(self, index: int, instruction: Instruction) -> bool:
        """Translate or collect one; return whether the next one continues the block."""
        name = OPCODES[instruction[0]][0]
        if name in _BUFFER_KINDS:
            self._buffers.append(instruction)
            return True
        if name in _FLOW:
            self._flush()
            operands = [_number(operand) for operand in instruction[1]]
            labels = operands if name == "jump" else operands[1:]
            if any(label <= index for label in labels):
                self._checked(
                    "call i32 @main.look(ptr %frame)"
                )  # a way back: the call may be stopped here
            self._flow(name, operands)
            return False
        step = {
            "assert": self._assert, "begin": self._begin, "launch": self._launch, "launch_checked": self._launch, "copy": self._copy,
            "buffer_grow": self._grow, "output_buffer": self._output_buffer,
        }.get(name)  # fmt: skip
        if step is None:
            self._collect(name, instruction)
        else:
            self._flush()
            step(instruction[1])
        return True

    def _collect(self, name: str, instruction: Instruction) -> None:
        """Add to the stretch; buffers wait with it unless it reads one, or changes a register that
        they still need."""
        if name == "const" and instruction[1][0] in self._constants:
            return
        needed = {
            operands[2]
            for opcode, operands in self._buffers
            if OPCODES[opcode][0] == "buffer_workspace"
        }
        if name == "read" or (_writes_register(instruction[0]) and instruction[1][0] in needed):
            self._flush()
        self._stretch.append(instruction)
        if len(self._stretch) == _STRETCH_MAX:
            self._flush_stretch()

    def _flow(self, name: str, operands: list[int]) -> None:
        body = self._steps.body
        if name == "return":
            body.append("  ret i32 0")
        elif name == "jump":
            body.append(f"  br label %at.{operands[0]}")
        else:
            value = self._name("taken")
            body += self._read(operands[0], value)
            body.append(f"  {value}.bit = icmp ne i64 {value}, 0")
            body.append(f"  br i1 {value}.bit, label %at.{operands[1]}, label %at.{operands[2]}")

    def _checked(self, call: str) -> None:
        """Append a call that returns a code; anything but 0 ends `main`."""
        code = self._name("rc")
        self._steps.body += [
            f"  {code} = {call}",
            f"  store i32 {code}, ptr %rc, align 4",
            f"  {code}.bad = icmp ne i32 {code}, 0",
            f"  br i1 {code}.bad, label %fail, label {code}.good",
            f"{code[1:]}.good:",
        ]

    def _assert(self, operands: tuple[int | tuple[int, ...], ...]) -> None:
        register, message = _number(operands[0]), _number(operands[1])
        text = f"ptr @message.{message}, i64 {self._message_bytes(message)}"
        self._checked(f"call i32 @main.assert(ptr %frame, i64 {register}, {text})")

    def _message_bytes(self, message: int) -> int:
        return len(self._program.messages[message].encode())

    def _begin(self, _operands: tuple[int | tuple[int, ...], ...]) -> None:
        # `fail` turns SIZES_DONE into success.
        assert SIZES_DONE != abi.RC_OK
        self._checked("call i32 @main.begin(ptr %frame)")

    def _launch(self, operands: tuple[int | tuple[int, ...], ...]) -> None:
        device, kernel, ordinal = (_number(operand) for operand in operands[:3])
        buffers, scalars = _list(operands[3]), _list(operands[4])
        extent, grain = _number(operands[5]), _number(operands[6])
        messages = _list(operands[7]) if len(operands) > 7 else ()
        words = self._steps.launch_words
        row = f"ptr getelementptr (i32, ptr @table.launches, i64 {len(words)})"
        words += [len(buffers), len(scalars), extent, *buffers, *scalars]
        if self._host_devices[device]:
            symbol = self._kernels[kernel]
            call = f"call i32 @main.launch(ptr %frame, {row}, ptr @{symbol}, i64 {ordinal}, i64 {grain})"
        else:
            values = f"i64 {device}, i64 {kernel}, i64 {ordinal}, i64 {grain}"
            call = f"call i32 @main.launch_device(ptr %frame, {row}, {values})"
        for code, message in enumerate(messages, abi.RC_REQUIREMENT):
            result = self._name("rc")
            self._steps.body.append(f"  {result} = {call}")
            text = f"ptr @message.{message}, i64 {self._message_bytes(message)}"
            call = f"call i32 @main.refuse(ptr %frame, i32 {result}, i32 {code}, {text})"
        self._checked(call)

    def _copy(self, operands: tuple[int | tuple[int, ...], ...]) -> None:
        *places, register = (_number(operand) for operand in operands)
        size = self._name("bytes")
        self._steps.body += self._read(register, size)
        values = ", ".join(f"i64 {place}" for place in places)
        self._checked(f"call i32 @main.copy(ptr %frame, {values}, i64 {size})")

    def _grow(self, operands: tuple[int | tuple[int, ...], ...]) -> None:
        buffer, device, register = (_number(operand) for operand in operands)
        size = self._name("bytes")
        self._steps.body += self._read(register, size)
        self._checked(f"call i32 @main.grow(ptr %frame, i64 {buffer}, i64 {device}, i64 {size})")

    def _output_buffer(self, operands: tuple[int | tuple[int, ...], ...]) -> None:
        tensor, buffer, register = (_number(operand) for operand in operands)
        size = self._name("bytes")
        self._steps.body += self._read(register, size)
        self._steps.body.append(
            f"  call void @main.output(ptr %frame, i64 {tensor}, i64 {buffer}, i64 {size})"
        )

    def _flush(self) -> None:
        self._flush_stretch()
        self._flush_buffers()

    def _flush_buffers(self) -> None:
        """End a run of buffer definitions: rows of the table and one call that walks them."""
        if not self._buffers:
            return
        rows = self._steps.buffer_rows
        start = f"ptr getelementptr (i64, ptr @table.buffers, i64 {len(rows)})"
        for opcode, operands in self._buffers:
            buffer, place, *rest = (_number(operand) for operand in operands)
            name = OPCODES[opcode][0]
            rows += [_BUFFER_KINDS[name], buffer, place, rest[0] if name in _WITH_OFFSET else 0]
        self._steps.body.append(
            f"  call void @main.buffers(ptr %frame, {start}, i64 {len(self._buffers)})"
        )
        self._buffers.clear()

    def _flush_stretch(self) -> None:
        """End a stretch of arithmetic: a function over the frame and its call."""
        if not self._stretch:
            return
        lines: list[str] = []
        for instruction in self._stretch:
            lines += self._arithmetic(instruction)
        self._stretch.clear()
        name = f"@main.stretch.{len(self._steps.functions)}"
        head = ["  %call = load ptr, ptr %frame, align 8"]
        self._steps.functions.append(
            "\n".join(
                [
                    f"define internal void {name}(ptr %frame) {self._attributes} {{",
                    *head,
                    *lines,
                    "  ret void",
                    "}",
                    "",
                ]
            )
        )
        self._steps.body.append(f"  call void {name}(ptr %frame)")

    def _arithmetic(self, instruction: Instruction) -> list[str]:
        name = OPCODES[instruction[0]][0]
        operands = [_number(operand) for operand in instruction[1]]
        if name == "const":
            return self._write(operands[0], str(operands[1]))
        if name in ("input_dim", "output_dim", "workspace_bytes", "scratch_bytes"):
            return self._sizes(name, operands)
        if name == "read":
            return self._read_buffer(operands)
        register, left, right = operands
        a, b, value = self._name("a"), self._name("b"), self._name("v")
        lines = [*self._read(left, a), *self._read(right, b)]
        if name in _BINARY:
            lines.append(f"  {value} = {_BINARY[name]} i64 {a}, {b}")
        elif name in _COMPARE:
            lines.append(f"  {value}.bit = icmp {_COMPARE[name]} i64 {a}, {b}")
            lines.append(f"  {value} = zext i1 {value}.bit to i64")
        elif name in _SELECT:
            lines.append(f"  {value}.bit = icmp {_SELECT[name]} i64 {a}, {b}")
            lines.append(f"  {value} = select i1 {value}.bit, i64 {a}, i64 {b}")
        else:
            lines.append(f"  {value} = call i64 @{_CALLED[name]}(i64 {a}, i64 {b})")
        return lines + self._write(register, value)

    def _sizes(self, name: str, operands: list[int]) -> list[str]:
        value, place = self._name("v"), self._name("p")
        if name in ("input_dim", "output_dim"):
            register = operands[0] if name == "input_dim" else operands[2]
            tensor, axis = operands[1:] if name == "input_dim" else operands[:2]
            lines = self._dimension(
                "inputs" if name == "input_dim" else "outputs", tensor, axis, place
            )
            if name == "input_dim":
                return [
                    *lines,
                    f"  {value} = load i64, ptr {place}, align 8",
                    *self._write(register, value),
                ]
            return [
                *lines,
                *self._read(register, value),
                f"  store i64 {value}, ptr {place}, align 8",
            ]
        register = operands[-1]
        at = self._frame.scratch_needed_at
        if name == "workspace_bytes":
            at = self._frame.workspaces_needed_at + 8 * operands[0]
        return [
            *self._read(register, value),
            frame_field(place[1:], at),
            f"  {value}.old = load i64, ptr {place}, align 8",
            f"  {value}.more = icmp ugt i64 {value}, {value}.old",
            f"  {value}.max = select i1 {value}.more, i64 {value}, i64 {value}.old",
            f"  store i64 {value}.max, ptr {place}, align 8",
        ]

    def _dimension(self, kind: str, tensor: int, axis: int, place: str) -> list[str]:
        shape_at = tensor * abi.TENSOR.size_bytes + abi.TENSOR.offsets["shape"]
        return [
            f"  {place}.list.p = getelementptr i8, ptr %call, i64 {abi.CALL.offsets[kind]}",
            f"  {place}.list = load ptr, ptr {place}.list.p, align 8",
            f"  {place}.shape.p = getelementptr i8, ptr {place}.list, i64 {shape_at}",
            f"  {place}.shape = load ptr, ptr {place}.shape.p, align 8",
            f"  {place} = getelementptr i64, ptr {place}.shape, i64 {axis}",
        ]

    def _read_buffer(self, operands: list[int]) -> list[str]:
        register, buffer, index_register, dtype = operands
        index, value, address = self._name("i"), self._name("v"), self._name("p")
        return [
            *self._read(index_register, index),
            frame_field(f"{address[1:]}.slot", self._frame.buffers_at + 8 * buffer),
            f"  {address} = load ptr, ptr {address}.slot, align 8",
            *read_element(dtype, address, index, value),
            *self._write(register, value),
        ]

    def _read(self, register: int, value: str) -> list[str]:
        if register in self._constants:
            return [f"  {value} = add i64 0, {self._constants[register]}"]
        return [
            frame_field(f"{value[1:]}.p", self._frame.registers_at + 8 * register),
            f"  {value} = load i64, ptr {value}.p, align 8",
        ]

    def _write(self, register: int, value: str) -> list[str]:
        place = self._name("w")
        return [
            frame_field(place[1:], self._frame.registers_at + 8 * register),
            f"  store i64 {value}, ptr {place}, align 8",
        ]

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"%{prefix}{self._count}"

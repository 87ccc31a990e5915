"""Instructions of a program to the steps of `main`.

In: a program, its frame, the kernels' symbols, which devices are the host. Out: ``Steps``: the body
of `main`, the functions it calls for stretches of arithmetic, the tables in read-only data. Not
done here: the fixed functions (``helpers``).

Stretches of arithmetic become functions of their own of at most `_STRETCH_MAX` instructions: LLVM's
time is quadratic in the length of a block, and one block is what straight-line code becomes.
"""

from collections.abc import Sequence
from dataclasses import field

from ingot_compiler.backends.host.main.arithmetic import arithmetic
from ingot_compiler.backends.host.main.calls import CALLS, Calls
from ingot_compiler.backends.host.main.frame import MainFrame
from ingot_compiler.backends.host.main.helpers import BUFFER_KINDS
from ingot_compiler.backends.host.main.instruction import numbers_of, opcode_name
from ingot_compiler.backends.host.main.registers import Registers
from ingot_compiler.targets.target import Target
from ingot_runtime.format.program import Instruction, Program, result_of
from ingot_runtime.lazy_dataclass import dataclass

_STRETCH_MAX = 60
_WITH_OFFSET = ("buffer_workspace", "buffer_device_weights")  # a register, a number
_FLOW = ("jump", "branch", "return")


@dataclass(frozen=True, slots=True)
class Steps:
    """What the translation wrote, as lines of IR and as words of tables."""

    body: Sequence[str]
    functions: Sequence[str]
    buffer_rows: Sequence[int]
    launch_words: Sequence[int]


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
    registers = Registers(program, frame)
    calls = Calls(registers, program.messages, kernels, host_devices)
    return _Translation(program, frame, target.function_attributes, registers, calls).run()


def _targets(instruction: Instruction) -> Sequence[int]:
    """Return the instructions that a jump may lead to."""
    name = opcode_name(instruction)
    if name not in _FLOW:
        return ()
    operands = numbers_of(instruction)
    return operands[1:] if name == "branch" else operands


@dataclass(slots=True)
class _Translation:
    """The state of one `write_steps`."""

    program: Program
    frame: MainFrame
    attributes: str
    registers: Registers
    calls: Calls
    body: list[str] = field(default_factory=list[str])
    functions: list[str] = field(default_factory=list[str])
    buffer_rows: list[int] = field(default_factory=list[int])
    stretch: list[Instruction] = field(default_factory=list[Instruction])
    buffers: list[Instruction] = field(default_factory=list[Instruction])

    def run(self) -> Steps:
        """Walk over the instructions; labels end what is being collected."""
        instructions = self.program.instructions
        targets = {target for instruction in instructions for target in _targets(instruction)}
        open_block = True
        for index, instruction in enumerate(instructions):
            if index in targets:
                self.flush()
                self.body += [f"  br label %at.{index}"] if open_block else []
                self.body.append(f"at.{index}:")
            elif not open_block:
                # Behind a jump and not a target: never reached, but the text must be a block.
                self.body.append(f"dead.{index}:")
            open_block = self.instruction(index, instruction)
        self.flush()
        self.body += ["  ret i32 0"] if open_block else []
        return Steps(self.body, self.functions, self.buffer_rows, self.calls.launch_words)

    def instruction(self, index: int, instruction: Instruction) -> bool:
        """Translate or collect one; return whether the next one continues the block."""
        name = opcode_name(instruction)
        if name in BUFFER_KINDS:
            self.buffers.append(instruction)
        elif name in CALLS:
            self.flush()
            self.body += self.calls.lines(instruction)
        elif name in _FLOW:
            self.flush()
            back = any(target <= index for target in _targets(instruction))
            self.body += self.calls.look() if back else []
            self.flow(name, numbers_of(instruction))
        else:
            self.collect(name, instruction)
        return name not in _FLOW

    def collect(self, name: str, instruction: Instruction) -> None:
        """Add to the stretch; buffers wait with it unless it reads one, or changes a register that
        they still need."""
        result = result_of(instruction)
        if name == "const" and result in self.registers.constants:
            return
        needed = [
            numbers_of(buffer)[2]
            for buffer in self.buffers
            if opcode_name(buffer) == "buffer_workspace"
        ]
        if name == "read" or result in needed:
            self.flush()
        self.stretch.append(instruction)
        if len(self.stretch) == _STRETCH_MAX:
            self.flush_stretch()

    def flow(self, name: str, operands: Sequence[int]) -> None:
        """End the block."""
        if name == "return":
            self.body.append("  ret i32 0")
        elif name == "jump":
            self.body.append(f"  br label %at.{operands[0]}")
        else:
            register, then, otherwise = operands
            value = self.registers.fresh("taken")
            self.body += self.registers.read(register, value)
            self.body.append(f"  {value}.bit = icmp ne i64 {value}, 0")
            self.body.append(f"  br i1 {value}.bit, label %at.{then}, label %at.{otherwise}")

    def flush(self) -> None:
        """End what is being collected."""
        self.flush_stretch()
        self.flush_buffers()

    def flush_buffers(self) -> None:
        """End a run of buffer definitions: rows of the table and one call that walks them."""
        if not self.buffers:
            return
        row = f"ptr getelementptr (i64, ptr @table.buffers, i64 {len(self.buffer_rows)})"
        for instruction in self.buffers:
            buffer, place, *rest = numbers_of(instruction)
            name = opcode_name(instruction)
            offset = rest[0] if name in _WITH_OFFSET else 0
            self.buffer_rows += [BUFFER_KINDS[name], buffer, place, offset]
        self.body.append(f"  call void @main.buffers(ptr %frame, {row}, i64 {len(self.buffers)})")
        self.buffers.clear()

    def flush_stretch(self) -> None:
        """End a stretch of arithmetic: a function over the frame and its call."""
        if not self.stretch:
            return
        name = f"@main.stretch.{len(self.functions)}"
        lines = [
            f"define internal void {name}(ptr %frame) {self.attributes} {{",
            "  %call = load ptr, ptr %frame, align 8",
        ]
        for instruction in self.stretch:
            lines += arithmetic(instruction, self.registers, self.frame)
        self.stretch.clear()
        self.functions.append("\n".join([*lines, "  ret void", "}", ""]))
        self.body.append(f"  call void {name}(ptr %frame)")

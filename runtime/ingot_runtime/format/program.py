"""The instruction list of `main`: one list, compiled natively (aot) and stepped by the loader (vm).

In: nothing. Out: opcodes with their operand kinds, ``Program``. Not done here: execution
(``evaluate``), bytes (read by ``program_decode``, written by
``ingot_compiler.backends.host.main.encode_program``), code generation
(``ingot_compiler.backends.host.main.main``). Normative text: FORMAT.md, "program".

An instruction is ``(opcode, operands)``, all operands plain integers:
``r`` register index (i64 registers), ``b`` buffer index, ``i`` immediate, ``*r``/``*b``/``*i``
counted list, ``l`` label (instruction index). A buffer is an address that one of the ``buffer_*``
instructions defines.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Name, kinds of operands, what each immediate counts ("-" is any number), the first minor version of
# bundles that have it, and for arithmetic what its first register gets from the two others, modulo
# 2^64. The opcode is the position (only grows at the end). What each does is in FORMAT.md's table.
OPCODES: "tuple[tuple[str, str, str, int, Callable[[int, int], int] | None], ...]" = (
    ("return", "", "", 0, None),
    ("const", "ri", "-", 0, None),
    ("input_dim", "rii", "input axis", 0, None),
    ("add", "rrr", "", 0, lambda a, b: a + b),
    ("sub", "rrr", "", 0, lambda a, b: a - b),
    ("mul", "rrr", "", 0, lambda a, b: a * b),
    ("floordiv", "rrr", "", 0, lambda a, b: a // b if b else 0),
    ("mod", "rrr", "", 0, lambda a, b: a % b if b else 0),
    ("min", "rrr", "", 0, min),
    ("max", "rrr", "", 0, max),
    ("eq", "rrr", "", 0, lambda a, b: int(a == b)),
    ("lt", "rrr", "", 0, lambda a, b: int(a < b)),
    ("le", "rrr", "", 0, lambda a, b: int(a <= b)),
    ("assert", "ri", "message", 0, None),
    ("jump", "l", "", 0, None),
    ("branch", "rll", "", 0, None),
    ("workspace_bytes", "ir", "device", 0, None),
    ("scratch_bytes", "r", "", 0, None),
    ("output_dim", "iir", "output axis", 0, None),
    ("begin", "", "", 0, None),
    ("buffer_input", "bi", "input", 0, None),
    ("buffer_output", "bi", "output", 0, None),
    ("buffer_weights", "bii", "offset size", 0, None),
    ("buffer_workspace", "birr", "device", 0, None),
    ("buffer_grow", "bir", "device", 0, None),
    ("launch", "iii*b*rri", "device - size positive", 0, None),
    ("copy", "iibbr", "device device", 0, None),
    ("read", "rbri", "dtype", 0, None),
    ("output_buffer", "ibr", "output", 0, None),
    ("launch_checked", "iii*b*rri*i", "device - size positive message", 0, None),
    ("buffer_device_weights", "biii", "device offset size", 0, None),
    ("held_bytes", "rii", "input output", 1, None),
    ("begin_copy", "iibbr", "device device", 3, None),
    ("end_copy", "iibbr", "device device", 3, None),
)
CODES = {row[0]: code for code, row in enumerate(OPCODES)}

Instruction = tuple[int, tuple[int | tuple[int, ...], ...]]
"""(opcode, operands); a counted list is a tuple in its operand's place."""


class Program:
    """A whole program: ``instructions``, and what they index.

    ``register_count``, ``buffer_count``; ``messages`` of the asserts (UTF-8 text).
    """

    __slots__ = ("buffer_count", "instructions", "messages", "register_count")

    def __init__(
        self,
        instructions: tuple[Instruction, ...],
        register_count: int,
        buffer_count: int,
        messages: tuple[str, ...],
    ) -> None:
        self.instructions = instructions
        self.register_count = register_count
        self.buffer_count = buffer_count
        self.messages = messages


def operand_kinds(opcode: int) -> list[str]:
    """Split an opcode's operand string: ``"i*b"`` -> ``["i", "*b"]``."""
    kinds: list[str] = []
    star = ""
    for letter in OPCODES[opcode][1]:
        if letter == "*":
            star = "*"
        else:
            kinds.append(star + letter)
            star = ""
    return kinds


def result_of(instruction: Instruction) -> "int | None":
    """Return the register that an instruction writes, None where it writes none."""
    name, kinds, *_ = OPCODES[instruction[0]]
    if not kinds.startswith("r") or name in ("assert", "branch", "scratch_bytes"):
        return None
    register = instruction[1][0]
    assert isinstance(register, int)
    return register


def constants_of(program: Program) -> "dict[int, int]":
    """Return the registers to which one ``const`` alone assigns, and its value: they hold it from
    the start."""
    found: dict[int, int] = {}
    met: set[int] = set()
    for instruction in program.instructions:
        register = result_of(instruction)
        if register is None:
            continue
        found.pop(register, None)
        if register not in met and OPCODES[instruction[0]][0] == "const":
            value = instruction[1][1]
            assert isinstance(value, int)
            found[register] = value
        met.add(register)
    return found

"""The instruction list of `main`: one list, compiled natively (aot) and stepped by the loader (vm).

In: nothing. Out: opcodes with their operand kinds, ``Program``. Not done here: execution
(``executor/vm.py``), bytes (read by ``program_decode``, written by
``ingot_compiler.backends.host.main.encode_program``), code generation
(``ingot_compiler.backends.host.main.main``). Normative text: FORMAT.md, "program".

An instruction is ``(opcode, operands)``, all operands plain integers:
``r`` register index (i64 registers), ``b`` buffer index, ``i`` immediate, ``*r``/``*b``/``*i``
counted list, ``l`` label (instruction index). A buffer is an address that one of the ``buffer_*``
instructions defines.
"""

# name -> operand kinds; the opcode is the position (only grows at the end). What each does is in
# FORMAT.md's table, which a test compares.
OPCODES: tuple[tuple[str, str], ...] = (
    ("return", ""),
    ("const", "ri"),
    ("input_dim", "rii"),
    ("add", "rrr"),
    ("sub", "rrr"),
    ("mul", "rrr"),
    ("floordiv", "rrr"),
    ("mod", "rrr"),
    ("min", "rrr"),
    ("max", "rrr"),
    ("eq", "rrr"),
    ("lt", "rrr"),
    ("le", "rrr"),
    ("assert", "ri"),
    ("jump", "l"),
    ("branch", "rll"),
    ("workspace_bytes", "ir"),
    ("scratch_bytes", "r"),
    ("output_dim", "iir"),
    ("begin", ""),
    ("buffer_input", "bi"),
    ("buffer_output", "bi"),
    ("buffer_weights", "bii"),
    ("buffer_workspace", "birr"),
    ("buffer_grow", "bir"),
    ("launch", "iii*b*rri"),
    ("copy", "iibbr"),
    ("read", "rbri"),
    ("output_buffer", "ibr"),
    ("launch_checked", "iii*b*rri*i"),
    ("buffer_device_weights", "biii"),
    ("held_bytes", "rii"),
    ("begin_copy", "iibbr"),
    ("end_copy", "iibbr"),
)
CODES = {name: code for code, (name, _) in enumerate(OPCODES)}

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

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

# Name, kinds of operands, what each immediate counts ("-" is any number), the first minor version of
# bundles that have it. The opcode is the position (only grows at the end). What each does is in
# FORMAT.md's table.
OPCODES: tuple[tuple[str, str, str, int], ...] = (
    ("return", "", "", 0),
    ("const", "ri", "-", 0),
    ("input_dim", "rii", "input axis", 0),
    ("add", "rrr", "", 0),
    ("sub", "rrr", "", 0),
    ("mul", "rrr", "", 0),
    ("floordiv", "rrr", "", 0),
    ("mod", "rrr", "", 0),
    ("min", "rrr", "", 0),
    ("max", "rrr", "", 0),
    ("eq", "rrr", "", 0),
    ("lt", "rrr", "", 0),
    ("le", "rrr", "", 0),
    ("assert", "ri", "message", 0),
    ("jump", "l", "", 0),
    ("branch", "rll", "", 0),
    ("workspace_bytes", "ir", "device", 0),
    ("scratch_bytes", "r", "", 0),
    ("output_dim", "iir", "output axis", 0),
    ("begin", "", "", 0),
    ("buffer_input", "bi", "input", 0),
    ("buffer_output", "bi", "output", 0),
    ("buffer_weights", "bii", "offset size", 0),
    ("buffer_workspace", "birr", "device", 0),
    ("buffer_grow", "bir", "device", 0),
    ("launch", "iii*b*rri", "device - size positive", 0),
    ("copy", "iibbr", "device device", 0),
    ("read", "rbri", "dtype", 0),
    ("output_buffer", "ibr", "output", 0),
    ("launch_checked", "iii*b*rri*i", "device - size positive message", 0),
    ("buffer_device_weights", "biii", "device offset size", 0),
    ("held_bytes", "rii", "input output", 1),
    ("begin_copy", "iibbr", "device device", 3),
    ("end_copy", "iibbr", "device device", 3),
)
CODES = {name: code for code, (name, *_) in enumerate(OPCODES)}

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

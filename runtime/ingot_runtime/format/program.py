"""The instruction list of `main`: one list, compiled natively (aot) and stepped by the loader (vm).

In: nothing. Out: opcodes with their operand kinds, ``Program``. Not done here: execution (``executor/vm.py``), bytes (read by ``program_decode``, written
by ``ingot_compiler.backends.host.main.encode_program``), code generation (``ingot_compiler.backends.host.main.main``). Normative text: FORMAT.md, "program".

An instruction is ``(opcode, operands)``, all operands plain integers:
``r`` register index (i64 registers), ``b`` buffer index, ``i`` immediate, ``*r``/``*b``/``*i`` counted list, ``l`` label
(instruction index). A buffer is an address that one of the ``buffer_*`` instructions defines.
"""

# name -> operand kinds; the opcode is the position (only grows at the end).
OPCODES: tuple[tuple[str, str], ...] = (
    ("return", ""),  # success
    ("const", "ri"),  # r = i
    ("input_dim", "rii"),  # r = inputs[i0].shape[i1]
    ("add", "rrr"),
    ("sub", "rrr"),
    ("mul", "rrr"),
    ("floordiv", "rrr"),  # rounds to -infinity; divisor 0 gives 0
    ("mod", "rrr"),  # sign of the divisor; divisor 0 gives 0
    ("min", "rrr"),
    ("max", "rrr"),
    ("eq", "rrr"),
    ("lt", "rrr"),
    ("le", "rrr"),
    ("assert", "ri"),  # r != 0, else return RC_BAD_INPUT with message i of the message table
    ("jump", "l"),
    ("branch", "rll"),  # r != 0 ? first : second
    ("workspace_bytes", "ir"),  # device i0 needs r bytes
    ("scratch_bytes", "r"),  # every host thread needs r bytes of scratch (a multiple of 64)
    ("output_dim", "iir"),  # outputs[i0].shape[i1] = r
    ("begin", ""),  # end of the sizes part: with FLAG_SIZES_ONLY return RC_OK here; else check the given sizes
    ("buffer_input", "bi"),  # b = inputs[i].data
    ("buffer_output", "bi"),  # b = outputs[i].data
    ("buffer_weights", "bii"),  # b = weights + i0; i1 bytes
    ("buffer_workspace", "birr"),  # b = workspaces[i0] + r0; r1 bytes
    ("buffer_grow", "bir"),  # b = grow(device i0, r bytes)
    # device, kernel (of the device's library), launch ordinal; buffers, on a device with a library its scratch last; scalars; extent r; grain i
    ("launch", "iii*b*rri"),
    ("copy", "iibbr"),  # source device, destination device; destination b, source b; r bytes
    ("read", "rbri"),  # r = element at index r of b with dtype code i
    ("output_buffer", "ibr"),  # outputs[i].data = b, a grown block of r bytes; at `begin` its unknown sizes are -1
    (
        "launch_checked",
        "iii*b*rri*i",
    ),  # launch; where the kernel returns RC_REQUIREMENT + n, RC_BAD_INPUT with message i[n]
    ("buffer_device_weights", "biii"),  # b = devices[i0].weights + i1; i2 bytes
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

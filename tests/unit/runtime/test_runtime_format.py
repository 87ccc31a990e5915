"""The format's pieces: canonical msgpack, plans and programs that decode to themselves, FORMAT.md's
numbers."""

import struct
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile.tiny import WEIGHTS_BYTES, tiny_program

import ingot_runtime
from ingot_artifacts.bundle.encode_plan import encode_plan
from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_runtime.format.dtypes import DTYPE_NAMES
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.plan import (
    BundlePlan,
    DevicePlan,
    LibraryPlan,
    TensorPlan,
    VariantPlan,
    decode_plan,
    manifest_bytes,
)
from ingot_runtime.format.program import CODES, OPCODES, Instruction, Program, operand_kinds
from ingot_runtime.format.program_decode import decode_program
from ingot_runtime.format.schema import forbidden_character, record_dict

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
NAMES = st.text(max_size=9).filter(lambda name: not forbidden_character(name))
DIMS = st.lists(st.integers(-2, 9), max_size=4).map(tuple)
TENSORS = st.builds(TensorPlan, NAMES, st.integers(0, len(DTYPE_NAMES) - 1), DIMS)


packb: Any = msgpack.packb  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # no stubs
unpackb: Any = msgpack.unpackb  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # no stubs


def sorted_keys(value: Any) -> Any:
    if hasattr(value, "keys"):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return [sorted_keys(item) for item in value] if hasattr(value, "append") else value


@pytest.mark.broad
@given(VALUES)
def test_msgpack_is_the_packages(value: object) -> None:
    """Our encoding is msgpack's own, with sorted keys."""
    assert pack(value) == packb(sorted_keys(value))


@pytest.mark.sweep(5)
@pytest.mark.parametrize("count", [15, 16, 31, 32, 255, 256, 65535, 65536])
def test_msgpack_lengths(count: int) -> None:
    """The shortest form at every border of lengths."""
    for value in (
        "a" * count,
        b"a" * count,
        [0] * count,
        {f"{index:06}": 0 for index in range(count)},
    ):
        assert pack(value) == packb(value)


@pytest.mark.parametrize("value", [1.0, {1: 2}, {"a": {3}}, 2**64, object()])
def test_msgpack_refuses_the_rest(value: object) -> None:
    """No floats, no other keys, no other types."""
    with pytest.raises(TypeError):
        pack(value)


@given(
    st.lists(TENSORS, max_size=3, unique_by=lambda tensor: tensor.name),
    st.lists(TENSORS, max_size=3, unique_by=lambda tensor: tensor.name),
)
def test_plan_decodes_to_itself(inputs: list[TensorPlan], outputs: list[TensorPlan]) -> None:
    """Encode, decode, encode gives the same bytes; the manifest is a function of the plan."""
    variant = VariantPlan("x86-64-v2", 100, ("sse3", "ssse3"), 3, (64,), ((0, 64), (128, 1)))
    plan = BundlePlan(
        "m",
        (DevicePlan("host", "host", 0),),
        (),
        ("batch", "len"),
        tuple(inputs),
        tuple(outputs),
        (variant,),
    )
    again = decode_plan(encode_plan(plan))
    assert encode_plan(again) == encode_plan(plan)
    assert unpackb(manifest_bytes(again)) == record_dict(plan, plan)


@given(st.binary(max_size=200))
def test_plan_refuses_noise(noise: bytes) -> None:
    """Bytes that are no plan are refused by FormatError, whatever they are."""
    with pytest.raises(ingot_runtime.FormatError):
        decode_plan(noise)


def plan_of(*devices: DevicePlan) -> BundlePlan:
    """A plan of these devices, with a library of each of two kinds."""
    libraries = (
        LibraryPlan("null", "x86-64-v2", ("sse3", "ssse3"), 2),
        LibraryPlan("opencl", "opencl-c-1.2", (), 1),
    )
    tensors = (TensorPlan("x", 0, (4, -1)),)
    variant = VariantPlan("x86-64-v2", 1, (), 1, (64,) * len(devices), ((0, 64),))
    return BundlePlan("m", devices, libraries, ("batch",), tensors, tensors, (variant,))


DEVICES = (
    DevicePlan("host", "host", 0),
    DevicePlan("acc", "null", 7, "", 0),
    DevicePlan("gpu", "opencl", 2, "global", 1),
)


def test_every_field_of_a_device_decodes_to_itself() -> None:
    """Kind, id, scope and library of each device, and all of each library."""
    again = decode_plan(encode_plan(plan_of(*DEVICES)))
    assert [(it.name, it.kind, it.id, it.scope, it.library) for it in again.devices] == [
        (it.name, it.kind, it.id, it.scope, it.library) for it in DEVICES
    ]
    assert manifest_bytes(again) == manifest_bytes(plan_of(*DEVICES))


def test_the_host_is_the_first_device() -> None:
    """A table that begins with another device is refused, by that device's kind."""
    with pytest.raises(
        ingot_runtime.FormatError, match="the first device is not the host"
    ) as found:
        decode_plan(encode_plan(plan_of(DEVICES[1], DEVICES[0], DEVICES[2])))
    assert found.value.why == "null"


def resized(data: bytes, word_count: int) -> bytes:
    """The section with fewer words, or with zeros behind them."""
    (count,) = struct.unpack_from("<q", data)
    words = struct.unpack_from(f"<{count}q", data, 8)
    kept = (*words[:word_count], *[0] * (word_count - count))
    return struct.pack(f"<{word_count + 1}q", word_count, *kept) + data[8 + 8 * count :]


def word_count_of(data: bytes) -> int:
    """How many words a section has."""
    (count,) = struct.unpack_from("<q", data)
    return int(count)


PLAN = BundlePlan(
    "m",
    (DevicePlan("host", "host", 0),),
    (),
    (),
    (TensorPlan("x", 0, (4, 8)),),
    (TensorPlan("y", 0, (4, 8)),),
    (VariantPlan("x86-64-v2", 1, (), 1, (0,), ()),),
)


def decoded(program: Program) -> Program:
    return decode_program(
        encode_program(program), PLAN, PLAN.variants[0], (WEIGHTS_BYTES,), "section program 0"
    )


def test_program_decodes_to_itself() -> None:
    """A program and its decoded form are the same instructions and messages."""
    program = tiny_program(4)
    again = decoded(program)
    assert again.instructions == program.instructions
    assert again.messages == program.messages


RETURN: Instruction = (CODES["return"], ())
BAD: list[tuple[str, tuple[int | tuple[int, ...], ...]]] = [
    ("const", (7, 0)),
    ("add", (0, 1, -1)),
    ("input_dim", (0, 1, 0)),
    ("input_dim", (0, 0, 2)),
    ("output_dim", (0, 2, 0)),
    ("assert", (0, 1)),
    ("jump", (2,)),
    ("branch", (0, 0, -1)),
    ("workspace_bytes", (1, 0)),
    ("buffer_input", (4, 0)),
    ("buffer_output", (0, 1)),
    ("buffer_weights", (0, WEIGHTS_BYTES, 1)),
    ("buffer_weights", (0, -1, 1)),
    ("buffer_weights", (0, 0, 2**62)),
    ("buffer_workspace", (0, 0, 0, 7)),
    ("buffer_grow", (0, 1, 0)),
    ("launch", (0, 1, 0, (), (), 0, 1)),
    ("launch", (1, 0, 0, (), (), 0, 1)),
    ("launch", (0, 0, 0, (4,), (), 0, 1)),
    ("launch", (0, 0, 0, (), (7,), 0, 1)),
    ("launch", (0, 0, 0, (), (), 0, 0)),
    ("copy", (0, 1, 0, 0, 0)),
    (
        "read",
        (0, 0, 0, -1),
    ),  # one beyond the dtypes is of a later version: tests/hostile/test_forged_devices.py
    ("output_buffer", (1, 0, 0)),
    ("launch_checked", (0, 0, 0, (), (), 0, 1, (0, 1))),
    ("launch_checked", (0, 1, 0, (), (), 0, 1, (0,))),
    ("buffer_device_weights", (0, 1, 0, 1)),
    ("buffer_device_weights", (0, 0, WEIGHTS_BYTES, 1)),
    ("held_bytes", (0, 1, 0)),
    ("held_bytes", (0, 0, 1)),
    ("begin_copy", (0, 0, 0, 1, 0)),
    ("begin_copy", (0, 1, 0, 0, 0)),
    ("end_copy", (0, 0, 0, 0, 7)),
    ("end_copy", (0, 0, 4, 0, 0)),
]


@pytest.mark.parametrize(("name", "operands"), BAD)
def test_program_index_out_of_range(name: str, operands: tuple[int | tuple[int, ...], ...]) -> None:
    """Every operand that points at nothing is refused, naming the instruction."""
    program = Program(((CODES[name], operands), RETURN), 7, 4, ("message",))
    with pytest.raises(ingot_runtime.FormatError, match="instruction 0"):
        decoded(program)


EVERY_OPCODE: dict[str, tuple[int | tuple[int, ...], ...]] = {
    "return": (),
    "const": (0, -5),
    "input_dim": (1, 0, 1),
    "add": (0, 1, 2),
    "sub": (3, 4, 5),
    "mul": (6, 0, 1),
    "floordiv": (2, 3, 4),
    "mod": (5, 6, 0),
    "min": (1, 2, 3),
    "max": (4, 5, 6),
    "eq": (0, 2, 4),
    "lt": (6, 4, 2),
    "le": (1, 3, 5),
    "assert": (2, 0),
    "jump": (3,),
    "branch": (1, 2, 5),
    "workspace_bytes": (2, 3),
    "scratch_bytes": (4,),
    "output_dim": (0, 1, 3),
    "begin": (),
    "buffer_input": (0, 0),
    "buffer_output": (1, 0),
    "buffer_weights": (2, 16, 64),
    "buffer_workspace": (3, 1, 0, 2),
    "buffer_grow": (4, 1, 5),
    "launch": (1, 1, 9, (3, 4), (0, 6), 2, 7),
    "copy": (1, 0, 0, 4, 3),
    "read": (1, 2, 6, 4),
    "output_buffer": (0, 1, 5),
    "launch_checked": (1, 0, 8, (4, 3), (5,), 1, 3, (0,)),
    "buffer_device_weights": (5, 1, 32, 16),
    "held_bytes": (6, 0, 0),
    "begin_copy": (1, 0, 1, 4, 2),
    "end_copy": (1, 0, 1, 3, 4),
}


def every_instruction() -> Program:
    """A program with each opcode once."""
    instructions = [(CODES[name], operands) for name, operands in EVERY_OPCODE.items()]
    return Program((*instructions, RETURN), 7, 6, ("message",))


def decoded_with_devices(data: bytes) -> Program:
    """A program section read beside a plan of three devices."""
    plan, sizes = plan_of(*DEVICES), (WEIGHTS_BYTES,) * 3
    return decode_program(data, plan, plan.variants[0], sizes, "section program 0")


def test_every_instruction_decodes_to_itself() -> None:
    """Each opcode with operands that differ: none is lost, and none takes another's place."""
    assert list(EVERY_OPCODE) == [name for name, *_ in OPCODES]
    again = decoded_with_devices(encode_program(every_instruction()))
    assert again.instructions == every_instruction().instructions
    assert (again.register_count, again.buffer_count) == (7, 6)


def test_no_word_may_be_missing_or_left_over() -> None:
    """A plan and a program that end at any word before their end, or go on behind it, are refused,
    and what is missing is named."""
    plan, program = encode_plan(plan_of(*DEVICES)), encode_program(every_instruction())
    for data, decode in ((plan, decode_plan), (program, decoded_with_devices)):
        for count in [*range(word_count_of(data)), word_count_of(data) + 1]:
            with pytest.raises(ingot_runtime.FormatError) as found:
                decode(resized(data, count))
            assert found.value.where.startswith("section p")


def test_program_must_end() -> None:
    """A program whose last instruction runs off the end is refused; so is an empty program."""
    for instructions in (((CODES["const"], (0, 1)),), ()):
        with pytest.raises(ingot_runtime.FormatError):
            decoded(Program(instructions, 7, 4, ()))


def test_every_opcode_has_a_bad_case() -> None:
    """The list of bad operands covers every opcode that has operands to check."""
    checked = {name for name, _ in BAD}
    plain = {
        "return",
        "begin",
        "scratch_bytes",
        "sub",
        "mul",
        "floordiv",
        "mod",
        "min",
        "max",
        "eq",
        "lt",
        "le",
    }
    assert checked | plain == {name for name, *_ in OPCODES}
    assert operand_kinds(CODES["launch"]) == ["i", "i", "i", "*b", "*r", "r", "i"]

"""The native `main`: arithmetic, flow, checks of the caller's struct, launches, copies, hooks."""

import ctypes
import hashlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.main_harness import Main, program
from tests.harness.support_harness import Pool, address_of, pack

from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_compiler.targets.host_target import host_target
from ingot_runtime.format import abi
from ingot_runtime.format.interface import interface_digest

F32, I64 = 0, 7
_SCALE = """
define i32 @scale(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch) {
entry:
  %from = load ptr, ptr %buffers, align 8
  %to.p = getelementptr ptr, ptr %buffers, i64 1
  %to = load ptr, ptr %to.p, align 8
  %by = load i64, ptr %scalars, align 8
  %by.f = sitofp i64 %by to float
  br label %next
next:
  %i = phi i64 [ %first, %entry ], [ %i.next, %next ]
  %p = getelementptr float, ptr %from, i64 %i
  %x = load float, ptr %p, align 4
  %y = fmul float %x, %by.f
  %q = getelementptr float, ptr %to, i64 %i
  store float %y, ptr %q, align 4
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %last
  br i1 %more, label %next, label %done
done:
  ret i32 0
}
define i32 @fails(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch) { ret i32 6 }
"""


def chain() -> Main:
    """y = (x * 3) through the workspace * 2; x has a dimension known only at the call."""
    lines = [
        ("input_dim", 0, 0, 0), ("const", 1, 3), ("const", 2, 2), ("const", 3, 4), ("mul", 4, 0, 3), ("const", 5, 64),
        ("add", 6, 4, 5), ("workspace_bytes", 0, 6), ("scratch_bytes", 5), ("output_dim", 0, 0, 0), ("begin",),
        ("buffer_input", 0, 0), ("buffer_workspace", 1, 0, 5, 4), ("buffer_output", 2, 0),
        ("launch", 0, 0, 0, (0, 1), (1,), 0, 4), ("launch", 0, 0, 1, (1, 2), (2,), 0, 4), ("return",),
    ]  # fmt: skip
    tensors = ((F32, (-1,)),)
    return Main(program(lines, 7, 3), tensors, tensors, _SCALE, ["scale"])


def test_a_chain_computes_and_reports_its_sizes() -> None:
    """With FLAG_SIZES_ONLY only shapes and sizes are written; without it the outputs are, with and
    without threads."""
    main = chain()
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, dtype=np.float32)
    sizes = main([x], [y], flags=abi.FLAG_SIZES_ONLY)
    assert (sizes.code, sizes.workspace_bytes, sizes.scratch_stride, sizes.shapes) == (
        0,
        104,
        64,
        [[10]],
    )
    assert not y.any()
    assert main([x], [y], scratch_stride=64).code == 0
    assert np.array_equal(y, x * 6)
    pool = Pool(main.image, 2, 100)
    y[:] = 0
    scratch = np.zeros(256, dtype=np.uint8)
    assert main([x], [y], scratch_stride=64, scratch=scratch.ctypes.data, pool=pool.page).code == 0
    assert np.array_equal(y, x * 6)
    pool.stop()


@pytest.mark.sweep(5)
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"abi": abi.ABI_VERSION - 1}, abi.RC_ABI),
        ({"size": abi.CALL.size_bytes - 8}, abi.RC_ABI),
        ({"n_inputs": 2}, abi.RC_BAD_INPUT),
        ({"n_outputs": 0}, abi.RC_BAD_INPUT),
        ({"n_devices": 2}, abi.RC_BAD_INPUT),
        ({"scratch_stride": 0}, abi.RC_BAD_INPUT),
        ({"workspace": 100}, abi.RC_BAD_INPUT),
        ({"frame_bytes": 8}, abi.RC_BAD_INPUT),
    ],
)
def test_a_wrong_struct_is_refused(fields: dict[str, int], code: int) -> None:
    """Version, counts and sizes are checked before anything runs."""
    main = chain()
    x, y = np.ones(10, dtype=np.float32), np.zeros(10, dtype=np.float32)
    outcome = main([x], [y], **({"scratch_stride": 64} | fields))
    assert outcome.code == code
    assert not y.any()


def test_wrong_tensors_are_refused() -> None:
    """Rank, dtype, fixed dims and the size of outputs must be the program's."""
    lines = [("begin",), ("return",)]
    main = Main(program(lines, 0), ((F32, (2, -1)),), ((F32, (4, 4)),))
    good, out = np.zeros((2, 5), dtype=np.float32), np.zeros((4, 4), dtype=np.float32)
    assert main([good], [out]).code == 0
    for bad in (np.zeros((3, 5), np.float32), np.zeros(2, np.float32), np.zeros((2, 5), np.int64)):
        outcome = main([bad], [out])
        assert outcome.code == abi.RC_BAD_INPUT
        assert outcome.error.startswith("a tensor's rank, element type, shape or size")
    assert main([good], [np.zeros((4, 3), np.float32)]).code == abi.RC_BAD_INPUT
    assert main([good], [np.zeros((4, 4), np.int64)]).code == abi.RC_BAD_INPUT


def test_weights_must_be_there() -> None:
    """Fewer bytes of weights than the program was made for are refused."""
    main = Main(program([("begin",)], 0), weights_bytes=1 << 20)
    assert main().code == abi.RC_BAD_INPUT
    assert main(weights_bytes=1 << 20).code == 0


def test_flow_and_asserts() -> None:
    """A loop sums 1..n; an assert ends `main` with its text."""
    lines = [
        ("input_dim", 0, 0, 0), ("const", 1, 0), ("const", 2, 0), ("const", 3, 1), ("const", 4, 5),
        ("jump", 8), ("add", 2, 2, 3), ("add", 1, 1, 2), ("lt", 5, 2, 0), ("branch", 5, 6, 10),
        ("output_dim", 0, 0, 1), ("le", 6, 0, 4), ("assert", 6, 0), ("begin",), ("return",), ("return",),
    ]  # fmt: skip
    main = Main(program(lines, 7, 0, ["n is at most 5 \u2264"]), ((F32, (-1,)),), ((F32, (-1,)),))
    out = np.zeros(100, dtype=np.float32)
    assert main([np.zeros(4, np.float32)], [out]).shapes == [[10]]
    outcome = main([np.zeros(6, np.float32)], [out])
    assert (outcome.code, outcome.error) == (abi.RC_BAD_INPUT, "n is at most 5 \u2264")


def wrapped(value: int) -> int:
    """Two's complement of 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: wrapped(a + b),
    "sub": lambda a, b: wrapped(a - b),
    "mul": lambda a, b: wrapped(a * b),
    "floordiv": lambda a, b: wrapped(a // b) if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": lambda a, b: min(b, a),
    "max": lambda a, b: max(b, a),
    "eq": lambda a, b: int(a == b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
}
_NUMBERS = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1), st.just(-(2**63)))


@settings(max_examples=8)
@given(st.lists(st.tuples(_NUMBERS, _NUMBERS), min_size=1, max_size=20), st.booleans())
def test_arithmetic_is_that_of_the_format(pairs: list[tuple[int, int]], constant: bool) -> None:
    """Every operation on many pairs: values from the caller's shapes or constants, long
    stretches."""
    lines: list[tuple[object, ...]] = []
    expected: list[int] = []
    for number, (a, b) in enumerate(pairs):
        if constant:
            lines += [("const", 2 * number, a), ("const", 2 * number + 1, b)]
        else:
            # Assigned twice, so not folded into the initial registers.
            for register, value in ((2 * number, a), (2 * number + 1, b)):
                lines += [("const", register, 7), ("const", register, value)]
    result = 2 * len(pairs)
    for number, (a, b) in enumerate(pairs):
        for name, function in _OPERATIONS.items():
            lines += [
                (name, result, 2 * number, 2 * number + 1),
                ("output_dim", 0, len(expected), result),
            ]
            expected.append(function(a, b))
    main = Main(program([*lines, ("return",)], result + 1), (), ((F32, (-1,) * len(expected)),))
    shape = (ctypes.c_int64 * len(expected))()
    tensor = np.zeros(4, dtype=np.uint64)
    tensor[1] = ctypes.addressof(shape)
    tensor[3] = len(expected)
    assert main((), (), n_outputs=1, outputs_at=tensor.ctypes.data).code == 0
    assert list(shape) == expected


def test_read_rounds_towards_zero() -> None:
    """Elements of every width become integers; floats are truncated."""
    lines = [
        ("buffer_input", 0, 0), ("buffer_input", 1, 1), ("buffer_input", 2, 2), ("buffer_input", 3, 3), ("const", 0, 1),
        ("read", 1, 0, 0, 0), ("read", 2, 1, 0, 7), ("read", 3, 2, 0, 2), ("read", 4, 3, 0, 8), ("read", 5, 0, 0, 4),
        *[("output_dim", 0, axis, axis + 1) for axis in range(5)], ("return",),
    ]  # fmt: skip
    signatures = ((F32, (2,)), (I64, (2,)), (2, (2,)), (8, (2,)))
    main = Main(program(lines, 6, 4), signatures, ((F32, (-1,) * 5),))
    arrays = [np.array([0, -2.75], kind) for kind in (np.float32, np.int64, np.float16)]
    outcome = main([*arrays, np.array([0, 200], np.uint8)], [np.zeros((1,) * 5, np.float32)])
    # i8 at index 1 of the f32 0.0 is 0.
    assert outcome.shapes == [[-2, -2, -2, 200, 0]]


def test_a_failing_kernel_ends_main() -> None:
    """Its code is main's; later launches do not run; cancel and profile are heard."""
    lines = [("const", 0, 1), ("begin",), ("buffer_output", 0, 0), ("launch", 0, 1, 0, (), (), 0, 1),
             ("launch", 0, 0, 1, (0, 0), (0,), 0, 1), ("return",)]  # fmt: skip
    main = Main(program(lines, 1, 1), (), ((F32, (1,)),), _SCALE, ["scale", "fails"])
    seen: list[tuple[int, int, int]] = []
    hook = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64)(
        lambda *a: seen.append(a)
    )
    address = address_of(hook)
    out = [np.zeros(1, np.float32)]
    assert main((), out, profile=address, profile_context=5).code == abi.RC_LIMIT
    assert seen == [(5, 0, 0), (5, 0, 1)]
    watch = pack(abi.WATCH, {"cancel": 1})
    assert main((), out, watch=ctypes.addressof(watch)).code == abi.RC_CANCELLED


def test_a_requirement_of_a_launch_has_its_text() -> None:
    """A kernel's report becomes bad input with the message of its number; any other code stays as
    it is."""
    lines = [("input_dim", 0, 0, 0), ("const", 1, 1), ("begin",),
             ("launch_checked", 0, 0, 0, (), (0,), 1, 1, (2, 0)), ("return",)]  # fmt: skip
    kernel = """
define hidden i32 @reports(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch) nounwind {
  %n = load i64, ptr %scalars
  %code = trunc i64 %n to i32
  ret i32 %code
}
"""
    messages = ("second", "not used", "first")
    main = Main(program(lines, 2, 0, messages), ((F32, (-1,)),), (), kernel, ["reports"])
    for code, expected in (
        (0, (0, "")),
        (256, (1, "first")),
        (257, (1, "second")),
        (258, (258, "")),
        (6, (6, "")),
    ):
        outcome = main([np.zeros(code, np.float32)])
        assert (outcome.code, outcome.error) == expected


def test_grow_and_copy() -> None:
    """A block of the caller is written by a copy on the host; without a callback the limit is
    reported."""
    lines = [("const", 0, 16), ("begin",), ("buffer_input", 0, 0), ("buffer_grow", 1, 0, 0), ("copy", 0, 0, 1, 0, 0),
             ("buffer_output", 2, 0), ("copy", 0, 0, 2, 1, 0), ("return",)]  # fmt: skip
    main = Main(program(lines, 1, 3), ((F32, (4,)),), ((F32, (4,)),))
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, dtype=np.float32)
    block = np.zeros(16, dtype=np.uint8)
    asked: list[tuple[int, int]] = []

    def grow(device: int, size_bytes: int) -> int:
        asked.append((device, size_bytes))
        return int(block.ctypes.data)

    callback = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(grow)
    assert main([x], [y]).code == abi.RC_LIMIT
    assert main([x], [y], grow=address_of(callback)).code == 0
    assert asked == [(0, 16)]
    assert np.array_equal(y, x)


def test_devices_get_their_launches_and_copies() -> None:
    """A launch on a device passes buffers, scalars, extent and grain; a copy is the target's, or
    the source's where the target is the host; a bit says that it begins or ends."""
    lines = [("const", 0, 16), ("const", 1, 0), ("begin",), ("buffer_input", 0, 0), ("buffer_workspace", 1, 1, 1, 0),
             ("buffer_device_weights", 2, 2, 64, 16), ("copy", 0, 1, 1, 0, 0), ("launch", 1, 9, 0, (1, 2), (0,), 0, 3),
             ("copy", 1, 2, 2, 1, 0), ("copy", 1, 0, 0, 1, 0), ("begin_copy", 1, 0, 0, 1, 0), ("end_copy", 1, 0, 0, 1, 0), ("return",)]  # fmt: skip
    main = Main(program(lines, 2, 3), ((F32, (4,)),), devices=((0, -1), (3, 0), (3, 0)))
    seen: list[tuple[object, ...]] = []
    word, number = ctypes.c_int64, ctypes.c_int32
    launch_type = ctypes.CFUNCTYPE(number, word, number, ctypes.POINTER(word), word, word)
    copy_type = ctypes.CFUNCTYPE(number, word, word, word, word, word, word)

    def launch(self: int, kernel: int, arguments: Any, buffers: int, scalars: int) -> int:
        seen.append(
            (
                self,
                kernel,
                buffers,
                scalars,
                *(arguments[index] for index in range(1, buffers + scalars + 2)),
            )
        )
        return 0

    def copy(self: int, target: int, source: int, _to: int, _from: int, size_bytes: int) -> int:
        seen.append((self, target, source, size_bytes))
        return 0

    callbacks = launch_type(launch), copy_type(copy)
    words = abi.DEVICE.size_bytes // 8
    table = np.zeros(3 * words, dtype=np.uint64)
    for device, number_of in ((1, 77), (2, 78)):
        fields = {
            "self": number_of,
            "launch": address_of(callbacks[0]),
            "copy": address_of(callbacks[1]),
            "weights": 4096,
        }
        for name, value in fields.items():
            table[device * words + abi.DEVICE.offsets[name] // 8] = value
    x = np.zeros(4, dtype=np.float32)
    assert main([x], devices=table.ctypes.data).code == 0
    assert seen == [
        (77, 1, 0, 16),
        (77, 9, 2, 1, 4096 + 64, 16, 16, 3),
        (78, 2, 1, 16),
        (77, 0, 1, 16),
        (77, 0, 1, abi.COPY_BEGINS + 16),
        (77, 0, 1, abi.COPY_ENDS + 16),
    ]
    assert main([x]).code == abi.RC_DEVICE


def test_digests_are_in_the_image() -> None:
    """The image carries the digests of its program and of its interface."""
    main = chain()
    at = main.image.words["program_digest"]
    assert main.bytes[at : at + 32] == hashlib.sha256(encode_program(main.program)).digest()
    at = main.image.words["interface_digest"]
    assert main.bytes[at : at + 32] == interface_digest(
        tuple(main.inputs), tuple(main.outputs), ((0, -1),), (), host_target().features
    )


def test_the_frame_is_not_on_the_stack() -> None:
    """A program of 200,000 registers runs on a thread whose stack is a tenth of that: the caller
    lends the frame."""
    registers = 200_000
    lines = [
        ("const", registers - 1, 7),
        ("output_dim", 0, 0, registers - 1),
        ("begin",),
        ("return",),
    ]
    main = Main(program(lines, registers), (), ((F32, (-1,)),))
    assert main.frame_bytes > 8 * registers
    outcomes: list[int] = []
    former = threading.stack_size(160 * 1024)
    try:
        thread = threading.Thread(
            target=lambda: outcomes.append(main((), [np.zeros(7, np.float32)]).code)
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(former)
    assert outcomes == [abi.RC_OK]

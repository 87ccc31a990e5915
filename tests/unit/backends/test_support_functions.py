"""Support functions against independent references: digests, memory, conversions, the SIGBUS
handler."""

import ctypes
import faulthandler
import functools
import math
import mmap
import os
import signal
import struct
from fractions import Fraction
from pathlib import Path

import blake3
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.support_harness import Image, image_of, libc_address

from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.backends.host.support.compile_support import compile_support
from ingot_compiler.backends.host.support.host import HostDigests
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format import abi

_MIB = 1 << 20
_HOST = host_target()
_LEVELS = [
    level for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4")
    if _HOST.arch == "x86-64" and set(parse_target(level).features) <= set(_HOST.features)
]  # fmt: skip


def lane_checksum(data: bytes) -> int:
    """The definition in FORMAT.md, with numpy."""
    state = (np.arange(64, dtype=np.uint64) * 0x9E3779B1 + 1).astype(np.uint32)
    for row in np.frombuffer(data, dtype="<u4").reshape(4096, 64):
        state = (state ^ row) * np.uint32(0x85EBCA77)
        state = (state << np.uint32(13)) | (state >> np.uint32(19))
    result = 0
    for lane in state.tolist():
        result = ((result ^ lane) * 0x9E3779B97F4A7C15) % 2**64
    return result


@pytest.mark.parametrize("level", _LEVELS)
def test_a_tree_entry_is_blake3_and_the_lane_checksum(level: str) -> None:
    """Equal to the blake3 package and to the definition, at every vector width; short data is
    padded with zeros."""
    digests = HostDigests(compile_support(parse_target(level)))
    for data in (np.random.default_rng(1).bytes(_MIB), bytes(_MIB), b"abc"):
        padded = data + bytes(_MIB - len(data))
        entry = digests.mib_tree_entry(memoryview(data))
        assert entry[:32] == blake3.blake3(padded).digest()
        assert int.from_bytes(entry[32:], "little") == lane_checksum(padded)


@pytest.mark.parametrize("level", _LEVELS)
@pytest.mark.parametrize("export", ["blake3_verify", "checksum_verify"])
def test_verification_names_the_first_bad_mib(level: str, export: str) -> None:
    """0 for good data, each MiB counted; else RC_DAMAGED and the index of the first MiB that
    differs, inside the range asked for."""
    image = image_of("", [], parse_target(level))
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    verify = image.function(export, ctypes.c_int32, pointer, pointer, word, word, pointer)
    data = bytearray(np.random.default_rng(2).bytes(3 * _MIB))
    digests = HostDigests()
    tree = b"".join(
        digests.mib_tree_entry(memoryview(data)[at : at + _MIB]) for at in range(0, len(data), _MIB)
    )
    scratch = np.zeros(abi.VERIFY_SCRATCH_BYTES + 64, dtype=np.uint8)
    aligned = -(-scratch.ctypes.data // 64) * 64
    # A tree at an odd address: sections align it to 64, nothing says that rows are aligned.
    rows = ctypes.create_string_buffer(b"x" + tree)
    base = ctypes.addressof((ctypes.c_char * len(data)).from_buffer(data))

    def look(first: int, last: int) -> tuple[int, int, int]:
        verified = (ctypes.c_uint64 * 2)(0, 99)
        buffers = (ctypes.c_uint64 * 3)(
            base, ctypes.addressof(rows) + 1, ctypes.addressof(verified)
        )
        start = ctypes.c_int64(first)
        code = verify(ctypes.addressof(buffers), ctypes.addressof(start), 0, last - first, aligned)
        return code, verified[0], verified[1]

    assert look(0, 3) == (0, 3, 99)
    assert look(3, 3) == (0, 0, 99)
    data[2 * _MIB + 77] ^= 1
    assert look(0, 3) == (abi.RC_DAMAGED, 2, 2)
    assert look(0, 2) == (0, 2, 99)
    data[_MIB - 1] ^= 128
    assert look(0, 3) == (abi.RC_DAMAGED, 0, 0)
    assert look(1, 3) == (abi.RC_DAMAGED, 1, 2)


@functools.cache
def memory_image(level: str) -> Image:
    """Export the memory functions and conversions as kernels, under which they can be called."""
    target = parse_target(level)
    names = ["memcpy", "memmove", "memset", "memcmp", "bcmp"]
    return Image(link_image([("support", compile_support(target))], names, SUPPORT_EXPORTS, target))


@given(st.sampled_from(_LEVELS), st.integers(0, 300), st.integers(0, 200), st.integers(0, 200))
def test_memory_functions_are_those_of_c(level: str, n: int, to: int, source: int) -> None:
    """memmove over any overlap, memcpy, memset, memcmp, at every length around the vector width."""
    word = ctypes.c_uint64
    copy, move, fill, compare, equal = (
        ctypes.CFUNCTYPE(ctypes.c_int64 if index < 3 else ctypes.c_int32, word, word, word)(address)
        for index, address in enumerate(memory_image(level).kernels)
    )
    content = bytes(index * 7 % 251 for index in range(600))
    for function in (copy, move):
        buffer = ctypes.create_string_buffer(content, 600)
        expected = bytearray(content)
        expected[to : to + n] = content[source : source + n]
        if function is move or abs(to - source) >= n:
            assert (
                function(ctypes.addressof(buffer) + to, ctypes.addressof(buffer) + source, n)
                == ctypes.addressof(buffer) + to
            )
            assert buffer.raw == bytes(expected)
    buffer = ctypes.create_string_buffer(content, 600)
    fill(ctypes.addressof(buffer) + to, 0x1AB, n)
    assert buffer.raw == content[:to] + b"\xab" * n + content[to + n :]
    other = ctypes.create_string_buffer(content, 600)
    a, b = buffer.raw[to : to + n], content[to : to + n]
    for function in (compare, equal):
        sign = function(ctypes.addressof(buffer) + to, ctypes.addressof(other) + to, n)
        assert (sign > 0) - (sign < 0) == (a > b) - (a < b)


_CONVERT = """
declare float @llvm.fma.f32(float, float, float)
define void @f16_to_f32(ptr %p) { %x = load half, ptr %p
  %y = fpext half %x to float
  store float %y, ptr %p
  ret void }
define void @f32_to_f16(ptr %p) { %x = load float, ptr %p
  %y = fptrunc float %x to half
  store half %y, ptr %p
  ret void }
define void @f64_to_f16(ptr %p) { %x = load double, ptr %p
  %y = fptrunc double %x to half
  store half %y, ptr %p
  ret void }
define void @f32_to_bf16(ptr %p) { %x = load float, ptr %p
  %y = fptrunc float %x to bfloat
  store bfloat %y, ptr %p
  ret void }
define void @f64_to_bf16(ptr %p) { %x = load double, ptr %p
  %y = fptrunc double %x to bfloat
  store bfloat %y, ptr %p
  ret void }
define void @fused(ptr %p) { %a = load float, ptr %p
  %b.p = getelementptr float, ptr %p, i64 1
  %b = load float, ptr %b.p
  %c.p = getelementptr float, ptr %p, i64 2
  %c = load float, ptr %c.p
  %y = call float @llvm.fma.f32(float %a, float %b, float %c)
  store float %y, ptr %p
  ret void }
"""
_CONVERSIONS = ["f16_to_f32", "f32_to_f16", "f64_to_f16", "f32_to_bf16", "f64_to_bf16", "fused"]


@functools.cache
def converters(level: str) -> Image:
    """Compile the conversions."""
    return image_of(_CONVERT, _CONVERSIONS, parse_target(level))


def convert(level: str, name: str, content: bytes) -> bytes:
    """Run one conversion in place."""
    buffer = ctypes.create_string_buffer(content, 16)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(converters(level).kernels[_CONVERSIONS.index(name)])(
        ctypes.addressof(buffer)
    )
    return buffer.raw


@pytest.mark.broad
@pytest.mark.parametrize("level", _LEVELS)
def test_every_f16_becomes_its_f32(level: str) -> None:
    """All 65536 values; NaNs keep their sign and payload and get quiet."""
    address = converters(level).kernels[0]
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    values = np.arange(65536, dtype=np.uint32)
    for index in range(65536):
        function(values.ctypes.data + 4 * index)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    expected = halves.astype(np.float32).view(np.uint32)
    nan = np.isnan(halves)
    assert np.array_equal(values[~nan], expected[~nan])
    assert np.array_equal(values[nan], expected[nan] | 0x400000)


_ODD = [0.0, -0.0, 65504.0, 65519.99, 65520.0, 2.0**-24, 2.0**-25, 2.0**-25 * 1.0001, 6.1e-5, math.inf, -math.inf, 3.4e38,
        1e-45, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-50, 3.3895e38, 1e300, -1e-300]  # fmt: skip


@given(
    st.sampled_from(_LEVELS),
    st.one_of(st.sampled_from(_ODD), st.floats(), st.floats(-70000, 70000), st.floats(-1e-4, 1e-4)),
)
def test_narrowing_rounds_once_to_nearest_even(level: str, value: float) -> None:
    """From f32 and from f64, also where rounding twice would differ; NaN stays NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = np.float32(value)
        half_of_single, half_of_double = np.float16(single), np.float16(np.float64(value))
    for name, content, expected in (
        ("f32_to_f16", single.tobytes(), half_of_single),
        ("f64_to_f16", struct.pack("<d", value), half_of_double),
        ("f32_to_bf16", single.tobytes(), single.astype(ml_dtypes.bfloat16)),
    ):
        got = np.frombuffer(convert(level, name, content)[:2], dtype=expected.dtype)[0]
        assert np.isnan(got) if math.isnan(value) else got.tobytes() == expected.tobytes()


@given(st.sampled_from(_LEVELS), st.floats(2.0**-120, 2.0**120), st.booleans())
def test_f64_to_bf16_rounds_once(level: str, value: float, negative: bool) -> None:
    """The result is the nearest bf16 by exact arithmetic, ties to even."""
    signed = -value if negative else value
    got = struct.unpack("<H", convert(level, "f64_to_bf16", struct.pack("<d", signed))[:2])[0]
    exact = Fraction(signed)
    errors = {
        bits: abs(Fraction(struct.unpack("<f", struct.pack("<I", bits << 16))[0]) - exact)
        for bits in (got - 1, got, got + 1)
    }
    assert errors[got] == min(errors.values())
    if list(errors.values()).count(errors[got]) > 1:
        assert got % 2 == 0


_SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.sampled_from(_LEVELS), _SINGLE, _SINGLE, _SINGLE)
def test_fma_rounds_once_on_every_level(level: str, a: float, b: float, c: float) -> None:
    """Levels without an FMA instruction give the bits of those that have one."""
    content = struct.pack("<3f", a, b, c)
    got = convert(level, "fused", content)[:4]
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if abs(exact) < Fraction(2) ** 127 and exact:
        value = struct.unpack("<f", got)[0]
        bits = struct.unpack("<i", got)[0] & 0x7FFFFFFF
        near = [
            struct.unpack("<f", struct.pack("<I", max(bits + step, 0)))[0] for step in (-1, 0, 1)
        ]
        assert abs(Fraction(value) - exact) == min(
            abs(Fraction(math.copysign(v, value)) - exact) for v in near
        )
    assert got == convert(_LEVELS[-1], "fused", content)[:4]


def test_cut_off_file_reads_as_zeros_and_is_counted(tmp_path: Path) -> None:
    """A fault in a range is replaced by a zero page and counted; a foreign one still ends the
    process."""
    path = tmp_path / "weights"
    path.write_bytes(b"\x55" * 4 * 4096)
    child = os.fork()
    if child == 0:
        faulthandler.disable()  # pytest's own SIGBUS handler would print a traceback
        os._exit(_read_cut_file(path))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == -signal.SIGBUS


def _read_cut_file(path: Path) -> int:
    image = image_of("", [])
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    descriptor = os.open(path, os.O_RDWR)
    ours, foreign = (
        libc.mmap(None, 4 * 4096, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0) for _ in range(2)
    )
    # A free row, then the one that counts.
    size = abi.GUARDED.size_bytes
    rows = ctypes.create_string_buffer(2 * size)
    second = ctypes.addressof(rows) + size
    struct.pack_into("<4Q", rows, 0, 0, 0, 0, second)
    struct.pack_into("<4Q", rows, size, ours, ours + 4 * 4096, 0, 0)
    values = {
        "first": ctypes.addressof(rows), "syscall": libc_address("syscall"), "mmap_number": 9, "page_bytes": 4096,
        "sigaction": libc_address("sigaction"),
    }  # fmt: skip
    for name, value in values.items():
        ctypes.c_uint64.from_address(image.page + abi.SIGBUS_OFFSETS[name]).value = value
    # struct sigaction of glibc on x86-64: handler, mask (128 bytes), flags, restorer.
    action = struct.pack("<Q128xiiQ", image.address("sigbus_handler"), 4, 0, 0)
    libc.sigaction(
        int(signal.SIGBUS), action, ctypes.c_void_p(image.page + abi.SIGBUS_OFFSETS["old_action"])
    )
    os.ftruncate(descriptor, 4096)
    content = ctypes.string_at(ours, 4 * 4096)
    faults = ctypes.c_uint64.from_address(second + abi.GUARDED.offsets["faults"]).value
    if content != b"\x55" * 4096 + bytes(3 * 4096) or faults != 3:
        return 1
    ctypes.string_at(foreign, 4 * 4096)
    return 2


@pytest.mark.broad
def test_compiles_for_every_family() -> None:
    """The support module passes LLVM's verifier and links for each target family."""
    for text in ("aarch64", "riscv64"):
        target = parse_target(text)
        kernel = compile_object("define i32 @k() { ret i32 0 }", target)
        assert link_image(
            [("k", kernel), ("support", compile_support(target))], ["k"], SUPPORT_EXPORTS, target
        )

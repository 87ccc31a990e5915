"""Kernel modules: names, errors, no calls to libraries, the text views, foreign targets."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from tests.harness.codegen_harness import (
    FOREIGN,
    RUNNABLE,
    apply_program,
    compile_only,
    elementwise,
)

from ingot_compiler.codegen.emit.kernel import kernel_module, kernel_symbol
from ingot_compiler.codegen.emit.math import FUNCTIONS
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import InternalError, UnsupportedError
from ingot_compiler.ir.types import COMPUTED_DTYPES, FLOATS, DType
from ingot_compiler.lowering.loops.kernel_of import kernel_of
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, Constant, Load, Local
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import (
    Buffer,
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Store,
)
from ingot_compiler.targets.target import Target, parse_target

_J = symbol("j")
_LEVELS = tuple(
    parse_target(level) for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "riscv64")
)
_BINARY = frozenset((
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "div", "equal", "fmod", "less", "less_equal", "logical_and", "logical_or",
    "logical_xor", "max", "min", "mod", "mul", "philox", "pow", "shift_left", "shift_right", "sub",
))  # fmt: skip
_TESTS = frozenset(
    (
        "equal",
        "less",
        "less_equal",
        "isnan",
        "isinf",
        "isinf_positive",
        "isinf_negative",
        "isinf_none",
    )
)
_ANY_DTYPE = frozenset(
    (
        "abs",
        "add",
        "div",
        "equal",
        "fmod",
        "less",
        "less_equal",
        "max",
        "min",
        "mod",
        "mul",
        "neg",
        "pow",
    )
)
_INTEGERS_ONLY = frozenset(
    ("bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")
)


def _undefined(content: bytes) -> list[str]:
    """Names that an ELF object wants from elsewhere."""
    at = struct.unpack_from("<Q", content, 0x28)[0]
    count = struct.unpack_from("<H", content, 0x3C)[0]
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", content, at + 64 * number) for number in range(count)
    ]
    table = next(section for section in sections if section[1] == 2)
    names: list[str] = []
    for number in range(1, table[5] // 24):
        name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", content, table[4] + 24 * number)
        start = sections[table[6]][4] + name
        if section == 0:
            names.append(content[start : content.index(b"\0", start)].decode())
    return names


def _dtypes_of(function: str) -> tuple[DType, ...]:
    if function.startswith("logical"):
        return ("bool",)
    if function == "philox":
        return ("u64",)
    if function in _INTEGERS_ONLY:
        return ("i8", "i32", "u64")
    return ("f32", "f64", "i16", "i64") if function in _ANY_DTYPE else ("f32", "f64")


@pytest.mark.parametrize("target", _LEVELS, ids=str)
@pytest.mark.parametrize("function", sorted(FUNCTIONS))
@pytest.mark.sweep(60)
def test_functions_call_no_library(function: str, target: Target) -> None:
    """Every function becomes instructions on every target, foreign ones included."""
    for dtype in _dtypes_of(function):
        program = apply_program(
            function,
            (dtype,) * (1 + (function in _BINARY)),
            "bool" if function in _TESTS else dtype,
        )
        assert _undefined(compile_only(program, target)) == []


@pytest.mark.broad
@pytest.mark.parametrize("target", _LEVELS, ids=str)
def test_casts_call_no_library(target: Target) -> None:
    """Every cast becomes instructions on every target."""
    for source in COMPUTED_DTYPES:
        loops = tuple(
            Store(1 + number, _J, Apply("cast", (Load(0, _J),), dtype))
            for number, dtype in enumerate(COMPUTED_DTYPES)
        )
        buffers = (
            Buffer(source, written=False),
            *(Buffer(dtype, written=True) for dtype in COMPUTED_DTYPES),
        )
        program = LoopProgram(buffers, ("n",), "i", 1, 1, (For("j", symbol("n"), "vector", loops),))
        assert _undefined(compile_only(program, target)) == []


def _row_program(name: str = "x") -> LoopProgram:
    row = symbol("i") * symbol("n")
    body = (
        Reduce("m", "max", "j", symbol("n"), "f32", (), Load(0, row + _J), lanes=True),
        Let(name, Apply("sub", (Load(0, row), Local("m", "f32")), "f32")),
        LetIndex("k", Apply("cast", (Local(name, "f32"),), "i64")),
        If(
            Compare("less", symbol("k"), 4),
            (For("j", symbol("n"), "vector", (Store(1, row + _J, Constant(0.5, "f32")),)),),
        ),
    )
    return LoopProgram(
        (Buffer("f32", written=False), Buffer("f32", written=True)), ("n",), "i", 8, 2, body, 64
    )


@pytest.mark.parametrize("target", [*RUNNABLE, *FOREIGN], ids=str)
def test_row_kernels_compile_everywhere(target: Target) -> None:
    """A kernel with reductions, gathers and branches is accepted by LLVM's verifier for every
    target."""
    assert compile_only(_row_program(), target)[:4] == b"\x7fELF"


def test_the_symbol_names_the_content() -> None:
    """Equal programs share a symbol on all targets; any change of what one unit does changes it."""
    program = _row_program()
    assert {kernel_module(program, target).symbol for target in _LEVELS} == {
        kernel_symbol(_row_program())
    }
    changed = [
        _row_program("y"),
        dataclasses.replace(program, scratch_bytes=128),
        dataclasses.replace(program, buffers=(Buffer("f16", written=False), program.buffers[1])),
        dataclasses.replace(program, body=program.body[:-1]),
    ]
    assert len({kernel_symbol(other) for other in (program, *changed)}) == len(changed) + 1


def test_more_units_are_the_same_kernel() -> None:
    """How many units there are, and how many are worth a thread, changes neither symbol nor
    code."""
    program = _row_program()
    longer = dataclasses.replace(program, extent=9, grain=3)
    assert kernel_of(longer) == kernel_of(program)
    for target in _LEVELS:
        assert kernel_module(longer, target) == kernel_module(program, target)


def test_modules_are_deterministic() -> None:
    """The same program gives the same text."""
    for target in _LEVELS:
        assert kernel_module(_row_program(), target) == kernel_module(_row_program(), target)


def test_print_loops_shows_the_program() -> None:
    """The text view of a row kernel."""
    assert print_loops(_row_program()) == (
        "kernel(b0: f32, b1: write f32; n) scratch 64 {\n"
        "  parallel i in 8 grain 2 {\n"
        "    m: f32 = max lanes over j in n {\n"
        "      yield b0[i*n + j]\n"
        "    }\n"
        "    x = sub(b0[i*n], %m:f32):f32\n"
        "    index k = cast(%x:f32):i64\n"
        "    if (k < 4) {\n"
        "      vector j in n {\n"
        "        b1[i*n + j] = 0.5:f32\n"
        "      }\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_unknown_functions_are_refused_by_name() -> None:
    """A function without an emitter is unsupported, not a crash."""
    with pytest.raises(UnsupportedError, match="has no function gamma"):
        kernel_module(apply_program("gamma", ("f32",), "f32"), _LEVELS[0])


def test_broken_programs_are_internal_errors() -> None:
    """Unbound symbols, unknown locals, nested vector loops, lanes that meet or disagree are our
    bugs, by name."""
    nested = For("j", 4, "vector", (For("k", 4, "vector", ()),))
    broken = {
        "symbol q is not bound": elementwise(Load(0, symbol("q")), ("f32", "f32")),
        "local z is not in scope": elementwise(Local("z", "f32"), ("f32",)),
        "vector loop k stands inside vector loop j": LoopProgram((), (), "i", 1, 1, (nested,)),
        "store to one element": LoopProgram(
            (Buffer("f32", written=True),),
            (),
            "i",
            1,
            1,
            (For("j", 9, "vector", (Store(0, 0, Load(0, _J)),)),),
        ),
        "extent differs between lanes": LoopProgram(
            (Buffer("f32", written=True),),
            (),
            "i",
            1,
            1,
            (
                For(
                    "j",
                    9,
                    "vector",
                    (Reduce("r", "sum", "k", _J, "f32", (), Constant(1.0, "f32")),),
                ),
            ),
        ),
        "extent that is no integer": LoopProgram(
            (), ("n",), "i", 1, 1, (For("j", symbol("n"), "unroll", ()),)
        ),
    }
    for message, program in broken.items():
        with pytest.raises(InternalError, match=message):
            kernel_module(program, _LEVELS[2])


def test_every_float_function_has_both_widths() -> None:
    """No function of the table refuses f64."""
    for function in FUNCTIONS:
        for dtype in _dtypes_of(function):
            if dtype in FLOATS:
                result: DType = "bool" if function in _TESTS else dtype
                assert llvm_text(
                    kernel_module(
                        apply_program(function, (dtype,) * (1 + (function in _BINARY)), result),
                        _LEVELS[1],
                    )
                )

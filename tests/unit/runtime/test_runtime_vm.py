"""The native `main` and the stepped one are the same function: every opcode, every dtype, the same
bits and errors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.hostile.tiny import op, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.contents import BundleContents, BundleTensor, DeviceSpec, VariantImage
from ingot_artifacts.bundle.symbols import dims_of, symbols_of
from ingot_artifacts.bundle.write import write_bundle
from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_compiler.backends.host.main.main import MAIN_EXPORTS, MAIN_LEVEL, main_module
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.backends.host.support.compile_support import compile_support
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format.dtypes import DTYPE_CODES, DTYPE_NAMES, DTYPE_SIZES_BYTES, NUMPY_NAMES
from ingot_runtime.format.program import Instruction, Program
from ingot_runtime.npz import in_bits

Tensor = tuple[str, str, tuple[int | str, ...]]
Arrays = dict[str, npt.NDArray[np.generic]]
TARGET = parse_target("x86-64-v2")


def build(
    path: Path,
    instructions: Sequence[Instruction],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    registers: int = 16,
    messages: tuple[str, ...] = (),
) -> Path:
    """Write a bundle whose program needs no kernel."""
    program = Program(tuple(instructions), registers, 8, messages)
    symbols = symbols_of(tuple(shape for _, _, shape in (*inputs, *outputs)))
    signatures = [
        tuple((DTYPE_CODES[dtype], dims_of(shape, symbols)) for _, dtype, shape in group)
        for group in (inputs, outputs)
    ]
    main = main_module(
        program, (), TARGET, inputs=signatures[0], outputs=signatures[1], weights_bytes=0
    )
    objects = [
        ("main", compile_object(main, TARGET, level=MAIN_LEVEL)),
        ("support", compile_support(TARGET)),
    ]
    image = link_image(objects, (), {**MAIN_EXPORTS, **SUPPORT_EXPORTS}, TARGET)
    variant = VariantImage(
        str(TARGET), TARGET.features, TARGET.rank, image, encode_program(program), (), (0,), ()
    )
    specs = [tuple(BundleTensor(*tensor) for tensor in group) for group in (inputs, outputs)]
    write_bundle(
        BundleContents("m", specs[0], specs[1], (DeviceSpec("host"),), (variant,)), path, tree_entry
    )
    return path


def both(path: Path, inputs: Arrays) -> Arrays:
    """Run natively and stepped, twice each; the bits must be the same."""
    results = [ingot_runtime.load(path, executor=executor) for executor in ("aot", "vm")]
    runs = [session.run(inputs) for session in results for _ in range(2)]
    for run in runs[1:]:
        assert {name: (array.shape, array.tobytes()) for name, array in run.items()} == {
            name: (array.shape, array.tobytes()) for name, array in runs[0].items()
        }
    return runs[0]


def copy_program(dims: Sequence[int | str], item_size_bytes: int) -> list[Instruction]:
    """Return y = x: count the elements, copy the bytes."""
    steps = [op("const", 0, item_size_bytes)]
    for axis, _ in enumerate(dims):
        steps += [op("input_dim", 1, 0, axis), op("mul", 0, 0, 1), op("output_dim", 0, axis, 1)]
    return [
        *steps,
        op("begin"),
        op("buffer_input", 0, 0),
        op("buffer_output", 1, 0),
        op("copy", 0, 0, 1, 0, 0),
        op("return"),
    ]


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
@pytest.mark.sweep(20)
def test_every_dtype(tmp_path: Path, dtype: str) -> None:
    """Each element type arrives and leaves bit for bit: many, one, none, rank 0."""
    code = DTYPE_CODES[dtype]
    for dims, shapes in (
        (("n", 3), ((5, 3), (0, 3), (30_000, 3))),
        ((), ((),)),
        ((2, 0), ((2, 0),)),
    ):
        tensor = ("x", dtype, dims)
        program = copy_program(dims, DTYPE_SIZES_BYTES[code])
        path = build(tmp_path / "m.ingot", program, [tensor], [("y", dtype, dims)])
        for shape in shapes:
            x = np.asarray(np.random.default_rng(1).integers(0, 2, shape)).astype(NUMPY_NAMES[code])
            y = both(path, {"x": x})["y"]
            y = in_bits(y)
            assert (y.dtype, y.shape, y.tobytes()) == (x.dtype, shape, x.tobytes())


BINARY = ("add", "sub", "mul", "floordiv", "mod", "min", "max", "eq", "lt", "le")
EDGES = (0, 1, -1, 2, -2, 3, 7, -7, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))


def test_arithmetic(tmp_path: Path) -> None:
    """All binary opcodes on all pairs of edges of i64: wrapping, flooring, division by zero."""
    pairs = [(a, b) for a in EDGES for b in EDGES]
    i64 = DTYPE_CODES["i64"]
    steps = [op("const", 6, 0), op("const", 7, 1)]
    opened = [op("buffer_input", 0, 0), op("buffer_output", 1, 0)]
    reads = [op("read", 0, 0, 6, i64), op("read", 1, 0, 7, i64)]
    results: list[Instruction] = []
    for index, name in enumerate(BINARY):
        expected = [op("const", 5, index + 2), op("read", 4, 0, 5, i64)]
        results += [op(name, 2, 0, 1), *expected, op("eq", 3, 2, 4), op("assert", 3, index)]
    program = [*steps, op("begin"), *opened, *reads, *results, op("return")]
    path = build(
        tmp_path / "m.ingot",
        program,
        [("x", "i64", (2 + len(BINARY),))],
        [("y", "i64", (0,))],
        messages=BINARY,
    )
    sessions = [ingot_runtime.load(path, executor=executor) for executor in ("aot", "vm")]
    for a, b in pairs:
        values = [
            a + b, a - b, a * b, a // b if b else 0, a % b if b else 0, min(a, b), max(a, b), a == b, a < b, a <= b,
        ]  # fmt: skip
        wrapped = [(int(value) + 2**63) % 2**64 - 2**63 for value in values]
        for session in sessions:
            session.run({"x": np.array([a, b, *wrapped], np.int64)})
    for session in sessions:
        with pytest.raises(ingot_runtime.InputError, match="why: mod"):
            session.run({"x": np.array([7, 2, 9, 5, 14, 3, 0, 2, 7, 0, 0, 0], np.int64)})


@pytest.mark.broad
def test_control_flow_and_data_dependent_size(tmp_path: Path) -> None:
    """A loop over the input finds its first zero; what is before it is the output, smaller than its
    upper bound."""
    program = [
        op("input_dim", 0, 0, 0),
        op("output_dim", 0, 0, 0),  # upper bound
        op("begin"),
        op("buffer_input", 0, 0),
        op("const", 1, 0),  # index
        op("const", 2, 1),
        op("const", 3, 4),
        op("le", 4, 0, 1),  # 7: the loop
        op("branch", 4, 13, 9),
        op("read", 5, 0, 1, DTYPE_CODES["i32"]),
        op("branch", 5, 11, 13),
        op("add", 1, 1, 2),
        op("jump", 7),
        op("output_dim", 0, 0, 1),  # 13: the end
        op("mul", 6, 1, 3),
        op("buffer_grow", 2, 0, 6),
        op("copy", 0, 0, 2, 0, 6),
        op("buffer_output", 1, 0),
        op("copy", 0, 0, 1, 2, 6),
        op("return"),
    ]
    path = build(tmp_path / "m.ingot", program, [("x", "i32", ("n",))], [("y", "i32", ("found",))])
    for values in (
        (),
        (0,),
        (5,),
        (1, 2, 3, 0, 4),
        tuple(range(1, 40_000)),
        (*range(1, 30_000), 0, 1),
    ):
        x = np.array(values, np.int32)
        count = values.index(0) if 0 in values else len(values)
        assert both(path, {"x": x})["y"].tolist() == list(values[:count])
    bound = ingot_runtime.load(path).bind({"x": np.zeros(0, np.int32)})
    bound.run()
    assert bound.output_shape("y") == (0,)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", [name for name in DTYPE_NAMES if name != "bool"])
def test_read_of_every_dtype(tmp_path: Path, dtype: str) -> None:
    """Elements become integers: floats toward zero, saturated, NaN as 0; the size of the output
    tells."""
    code = DTYPE_CODES[dtype]
    program = [
        op("input_dim", 0, 0, 0),
        op("output_dim", 0, 0, 0),
        op("begin"),
        op("buffer_input", 0, 0),
        op("const", 1, 0),
        op("read", 2, 0, 1, code),
        op("const", 3, 3),
        op("mod", 2, 2, 3),  # 0, 1 or 2 whatever the value
        op("output_dim", 0, 0, 2),
        op("return"),
    ]
    path = build(tmp_path / "m.ingot", program, [("x", dtype, ("n",))], [("y", "u8", ("m",))])
    rng = np.random.default_rng(2)
    sessions = [ingot_runtime.load(path, executor=executor) for executor in ("aot", "vm")]
    special = [np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**63, -(2.0**63), 1.9, -1.9, 0.0]
    for index in range(60):
        raw = rng.bytes(DTYPE_SIZES_BYTES[code] * 3)
        x = np.frombuffer(raw, NUMPY_NAMES[code]).copy()
        if NUMPY_NAMES[code].startswith("float") and index < len(special):
            with np.errstate(over="ignore"):
                x[0] = special[index]
        shapes = [session.run({"x": x})["y"].shape for session in sessions]
        assert shapes[0] == shapes[1]


def test_failing_assert(tmp_path: Path) -> None:
    """An assertion of the model is an InputError with the model's own words, while sizes are
    computed too."""
    program = [
        op("input_dim", 0, 0, 0),
        op("const", 1, 3),
        op("eq", 2, 0, 1),
        op("assert", 2, 0),
        op("output_dim", 0, 0, 0),
        op("begin"),
        op("return"),
    ]
    messages = ("n must be 3, é",)
    path = build(
        tmp_path / "m.ingot",
        program,
        [("x", "u8", ("n",))],
        [("y", "u8", ("n",))],
        messages=messages,
    )
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(path, executor=executor)
        session.run({"x": np.zeros(3, np.uint8)})
        with pytest.raises(ingot_runtime.InputError) as caught:
            session.run({"x": np.zeros(4, np.uint8)})
        assert (
            str(caught.value)
            == "the model refuses these inputs\n  where: x [4]\n  why: n must be 3, é; n is 4 in input 'x'"
            "\n  do: give other sizes or values"
        )


def test_symbols_must_agree(tmp_path: Path) -> None:
    """A symbol has one size in all inputs; the second place that differs is named, with the
    first."""
    program = [op("input_dim", 0, 0, 0), op("output_dim", 0, 0, 0), op("begin"), op("return")]
    inputs: list[Tensor] = [("a", "u8", ("batch", 2)), ("b", "u8", ("batch",))]
    path = build(tmp_path / "m.ingot", program, inputs, [("y", "u8", ("batch",))])
    session = ingot_runtime.load(path)
    with pytest.raises(ingot_runtime.InputError) as caught:
        session.run({"a": np.zeros((3, 2), np.uint8), "b": np.zeros(4, np.uint8)})
    assert str(caught.value) == (
        "wrong shape of input 'b'\n  where: input 'b', axis 0\n"
        "  why: expected uint8[batch], got uint8[4]; batch is 3 in input 'a'\n  do: give size 3 there"
    )


def test_grow_that_fails(tmp_path: Path) -> None:
    """A block that the system refuses is an error that names it; the next call works."""
    program = [
        op("input_dim", 0, 0, 0),
        op("output_dim", 0, 0, 0),
        op("begin"),
        op("buffer_input", 0, 0),
        op("const", 1, 0),
        op("read", 2, 0, 1, DTYPE_CODES["i64"]),
        op("buffer_grow", 1, 0, 2),
        op("return"),
    ]
    path = build(tmp_path / "m.ingot", program, [("x", "i64", ("n",))], [("y", "u8", ("n",))])
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(path, executor=executor)
        session.run({"x": np.array([100], np.int64)})
        for size in (2**62, -1):
            with pytest.raises(ingot_runtime.ResourceError, match="not enough memory"):
                session.run({"x": np.array([size], np.int64)})
        session.run({"x": np.array([100], np.int64)})


def test_vm_refuses_addresses_outside(tmp_path: Path) -> None:
    """The vm checks every address that a program forms, though only the compiler's own programs get
    that far."""
    for bad in (
        [op("const", 1, 1 << 40), op("read", 2, 0, 1, DTYPE_CODES["u8"])],
        [op("const", 1, -1), op("read", 2, 0, 1, DTYPE_CODES["u8"])],
        [op("const", 1, 1 << 40), op("copy", 0, 0, 0, 0, 1)],
        [op("const", 1, 8), op("const", 2, 64), op("buffer_workspace", 1, 0, 1, 2)],
        [op("const", 1, -8), op("const", 2, 8), op("buffer_workspace", 1, 0, 1, 2)],
    ):
        program = [op("begin"), op("buffer_input", 0, 0), *bad, op("return")]
        path = build(tmp_path / "m.ingot", program, [("x", "u8", (4,))], [("y", "u8", (0,))])
        session = ingot_runtime.load(path, executor="vm")
        with pytest.raises(ingot_runtime.FormatError, match="leaves its memory"):
            session.run({"x": np.zeros(4, np.uint8)})

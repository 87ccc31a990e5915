"""A bundle with a device beside the host, made by hand: the kernel of ``tiny`` runs on ``acc``,
then on the host, then on ``acc`` again.

In: which devices. Out: ``BundleContents`` and the numpy reference. Not done here: tests. y = ((x *
v + 1) * w + 1) * v + 1: v lies in the weights of ``acc``, w in the host's. With a second device
``aux``, what ``acc`` computes last goes there by a copy between devices, and from there to the
host.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
from tests.hostile import tiny
from tests.hostile.tiny import (
    KERNEL,
    KERNEL_IR,
    WEIGHTS_AT,
    WEIGHTS_BYTES,
    WEIGHTS_SECTION_BYTES,
    WIDTH,
    op,
    tiny_contents,
    tiny_weights,
)

from ingot_artifacts.bundle.contents import BundleContents, DeviceSpec, LibrarySpec, VariantImage
from ingot_artifacts.bundle.symbols import dims_of, symbols_of
from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_compiler.backends.host.main.main import MAIN_EXPORTS, MAIN_LEVEL, main_module
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.backends.host.support.compile_support import compile_support
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format.dtypes import DTYPE_CODES
from ingot_runtime.format.plan import DEVICE_KINDS
from ingot_runtime.format.program import Instruction, Program

DEVICE_WEIGHTS_AT = (1 << 20) + 128
DEVICE_WEIGHTS_BYTES = (1 << 20) + 128 + 4 * WIDTH
SCRATCH_BYTES = 64
TARGET = "x86-64-v2"


def two_device_program(
    rows: int | str, count: int = 1, *, grows: bool = False, early: bool = False
) -> Program:
    """Return the instruction list; `count`: of devices beside the host, 1 or 2; `grows`: the
    results of ``acc`` lie in a block that only `main` asks for; `early`: of one device, the copy of
    the output begins, another one is made, and the first ends."""
    first = op("input_dim", 0, 0, 0) if isinstance(rows, str) else op("const", 0, rows)
    lines: list[Instruction] = [
        first, op("const", 1, WIDTH), op("mul", 2, 0, 1), op("const", 3, 4), op("mul", 4, 2, 3), op("const", 5, 0),
        op("const", 6, SCRATCH_BYTES), op("add", 7, 4, 6), op("add", 8, 7, 4),
        op("workspace_bytes", 0, 4), op("workspace_bytes", 1, 8), op("scratch_bytes", 6),
        *([op("workspace_bytes", 2, 4)] if count > 1 else []),
        op("output_dim", 0, 0, 0), op("output_dim", 0, 1, 1), op("begin"),
        op("buffer_input", 0, 0), op("buffer_output", 1, 0), op("buffer_weights", 2, WEIGHTS_AT, 4 * WIDTH),
        op("buffer_workspace", 3, 0, 5, 4),
        op("buffer_workspace", 4, 1, 5, 6), op("buffer_workspace", 5, 1, 6, 4), op("buffer_grow", 6, 1, 4) if grows else op("buffer_workspace", 6, 1, 7, 4),
        op("buffer_device_weights", 7, 1, DEVICE_WEIGHTS_AT, 4 * WIDTH),
        op("copy", 0, 1, 5, 0, 4),
        op("launch", 1, 0, 0, (6, 5, 7, 4), (1,), 2, 1),
        op("copy", 1, 0, 3, 6, 4),
        op("launch", 0, 0, 1, (3, 3, 2), (1,), 2, 1),
        op("copy", 0, 1, 5, 3, 4),
        op("launch_checked", 1, 0, 2, (6, 5, 7, 4), (1,), 2, 1, (0,)),
    ]  # fmt: skip
    if count > 1:
        lines += [
            op("buffer_workspace", 8, 2, 5, 4),
            op("copy", 1, 2, 8, 6, 4),
            op("copy", 2, 0, 1, 8, 4),
        ]
    else:
        whole = op("copy", 1, 0, 1, 6, 4)
        begin, end = (op(name, 1, 0, 1, 6, 4) for name in ("begin_copy", "end_copy"))
        lines += [begin, op("copy", 1, 0, 3, 6, 4), end] if early else [whole]
    return Program((*lines, op("return")), 9, 9, ("the rows must not be negative",))


@cache
def library(
    kernels: tuple[str, ...] = (KERNEL_IR,), symbols: tuple[str, ...] = (KERNEL,)
) -> LibrarySpec:
    """Return a library of kind null with kernels given as LLVM IR."""
    target = parse_target(TARGET)
    objects = [("support", compile_support(target))]
    objects += [
        (symbol, compile_object(text, target))
        for symbol, text in zip(symbols, kernels, strict=True)
    ]
    image = link_image(objects, symbols, {"launch": SUPPORT_EXPORTS["launch"]}, target)
    return LibrarySpec("null", TARGET, target.features, symbols, image)


@cache
def _variant(
    rows: int | str, count: int, grows: bool, early: bool, made: LibrarySpec
) -> VariantImage:
    target, program, shape = (
        parse_target(TARGET),
        two_device_program(rows, count, grows=grows, early=early),
        (rows, WIDTH),
    )
    signature = ((DTYPE_CODES["f32"], dims_of(shape, symbols_of((shape,)))),)
    kind = DEVICE_KINDS.index(made.kind)
    main = main_module(
        program, (KERNEL,), target, inputs=signature, outputs=signature, weights_bytes=WEIGHTS_BYTES,
        devices=((0, -1), *[(kind, 0)] * count),
        libraries=((kind, made.target, made.features, len(made.kernels)),),
    )  # fmt: skip
    objects = [
        ("main", compile_object(main, target, level=MAIN_LEVEL)),
        ("support", compile_support(target)),
        (KERNEL, compile_object(KERNEL_IR, target)),
    ]
    size = 4 * WIDTH * rows if isinstance(rows, int) else 0
    pools = (size, 2 * size + SCRATCH_BYTES, size) if size else (0, 0, 0)
    return VariantImage(
        TARGET, target.features, target.rank, link_image(objects, (KERNEL,), {**MAIN_EXPORTS, **SUPPORT_EXPORTS}, target),
        encode_program(program), ((WEIGHTS_AT, 4 * WIDTH),), pools[: count + 1], (KERNEL,),
    )  # fmt: skip


def two_device_contents(
    rows: int | str = 4,
    count: int = 1,
    *,
    grows: bool = False,
    early: bool = False,
    code: LibrarySpec | None = None,
) -> BundleContents:
    """Return a bundle with one input and one output, f32[`rows`, WIDTH], on the host and `count`
    devices, of kind null or that of `code`, which has the same kernel."""
    made = code or library()
    devices = (
        DeviceSpec("acc", made.kind, 0, library=0),
        DeviceSpec("aux", made.kind, 1, library=0),
    )
    return replace(
        tiny_contents(rows),
        devices=(DeviceSpec("host"), *devices[:count]),
        libraries=(made,),
        variants=(_variant(rows, count, grows, early, made),),
        weights=(
            (WEIGHTS_AT, memoryview(tiny_weights().tobytes())),
            (WEIGHTS_SECTION_BYTES + DEVICE_WEIGHTS_AT, memoryview(device_weights().tobytes())),
        ),
        weights_bytes=(WEIGHTS_BYTES, DEVICE_WEIGHTS_BYTES, 0)[: count + 1],
    )


def device_weights() -> npt.NDArray[np.float32]:
    """Return v: f32[WIDTH]."""
    return np.arange(WIDTH, dtype=np.float32) - np.float32(3)


def two_device_reference(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return y for `x`, bit for bit."""
    one = np.float32(1)
    return ((x * device_weights() + one) * tiny_weights() + one) * device_weights() + one


tree_entry = tiny.tree_entry

"""A bundle in half a second: two launches of one hand-written kernel, real support code, real
`main`.

In: shapes and targets. Out: ``BundleContents`` and the numpy reference. Not done here: tests. y =
(x * w + 1) * w + 1 over rows of ``WIDTH``; w lies in the second of two MiB and a rest, the first holds
nothing that is read.
"""

from functools import cache, lru_cache

import blake3
import numpy as np
import numpy.typing as npt

from ingot_artifacts.bundle.contents import BundleContents, BundleTensor, DeviceSpec, VariantImage
from ingot_artifacts.bundle.symbols import dims_of, symbols_of
from ingot_artifacts.digest.tree import tree_entry_with
from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_compiler.backends.host.main.main import MAIN_EXPORTS, MAIN_LEVEL, main_module
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.backends.host.support.compile_support import compile_support
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format.dtypes import DTYPE_CODES
from ingot_runtime.format.program import CODES, Instruction, Program

WIDTH = 8
WEIGHTS_AT = (1 << 20) + 64
WEIGHTS_BYTES = (2 << 20) + 5
WEIGHTS_SECTION_BYTES = (2 << 20) + (1 << 16)
KERNEL = "tiny_scale"

KERNEL_IR = """
define hidden i32 @tiny_scale(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch) nounwind "no-builtins" {
entry:
  %y = load ptr, ptr %buffers
  %x.p = getelementptr ptr, ptr %buffers, i64 1
  %x = load ptr, ptr %x.p
  %w.p = getelementptr ptr, ptr %buffers, i64 2
  %w = load ptr, ptr %w.p
  %width = load i64, ptr %scalars
  %empty = icmp sge i64 %first, %last
  br i1 %empty, label %done, label %body
body:
  %i = phi i64 [ %first, %entry ], [ %i.next, %body ]
  %column = urem i64 %i, %width
  %xi.p = getelementptr float, ptr %x, i64 %i
  %xi = load float, ptr %xi.p
  %wi.p = getelementptr float, ptr %w, i64 %column
  %wi = load float, ptr %wi.p
  %product = fmul float %xi, %wi
  %sum = fadd float %product, 1.0
  %yi.p = getelementptr float, ptr %y, i64 %i
  store float %sum, ptr %yi.p
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %last
  br i1 %more, label %body, label %done
done:
  ret i32 0
}
"""


def op(name: str, *operands: int | tuple[int, ...]) -> Instruction:
    """Return one instruction by its name."""
    return CODES[name], operands


def tiny_program(rows: int | str) -> Program:
    """Return the instruction list; `rows` a str: taken from the input's first dimension."""
    first = op("input_dim", 0, 0, 0) if isinstance(rows, str) else op("const", 0, rows)
    instructions = (
        first,
        op("const", 1, WIDTH),
        op("mul", 2, 0, 1),  # elements
        op("const", 3, 4),
        op("mul", 4, 2, 3),  # bytes of one tensor
        op("const", 5, 0),
        op("const", 6, 64),
        op("workspace_bytes", 0, 4),
        op("scratch_bytes", 6),
        op("output_dim", 0, 0, 0),
        op("output_dim", 0, 1, 1),
        op("begin"),
        op("buffer_input", 0, 0),
        op("buffer_weights", 1, WEIGHTS_AT, 4 * WIDTH),
        op("buffer_workspace", 2, 0, 5, 4),
        op("buffer_output", 3, 0),
        op("launch", 0, 0, 0, (2, 0, 1), (1,), 2, 1),
        op("launch", 0, 0, 1, (3, 2, 1), (1,), 2, 1),
        op("return"),
    )
    return Program(instructions, 7, 4, ("the rows must not be negative",))


@cache
def _variant(target_text: str, rows: int | str) -> VariantImage:
    target = parse_target(target_text)
    program = tiny_program(rows)
    shape = (rows, WIDTH)
    dims = dims_of(shape, symbols_of((shape,)))
    signature = ((DTYPE_CODES["f32"], dims),)
    main = main_module(
        program,
        (KERNEL,),
        target,
        inputs=signature,
        outputs=signature,
        weights_bytes=WEIGHTS_BYTES,
    )
    objects = [
        ("main", compile_object(main, target, level=MAIN_LEVEL)),
        ("support", compile_support(target)),
        (KERNEL, compile_object(KERNEL_IR, target)),
    ]
    image = link_image(objects, (KERNEL,), {**MAIN_EXPORTS, **SUPPORT_EXPORTS}, target)
    workspace_bytes = 4 * WIDTH * rows if isinstance(rows, int) else 0
    return VariantImage(
        target=str(target),
        features=target.features,
        rank=target.rank,
        image=image,
        program=encode_program(program),
        weight_ranges=((WEIGHTS_AT, 4 * WIDTH),),
        workspace_bytes=(workspace_bytes,),
        kernels=(KERNEL,),
    )


def tiny_contents(
    rows: int | str = 4,
    targets: tuple[str, ...] = ("x86-64-v2",),
    names: tuple[str, str] = ("x", "y"),
    seed: int = 0,
) -> BundleContents:
    """Return a bundle with one input and one output, f32[`rows`, WIDTH]."""
    return BundleContents(
        model="tiny",
        inputs=(BundleTensor(names[0], "f32", (rows, WIDTH)),),
        outputs=(BundleTensor(names[1], "f32", (rows, WIDTH)),),
        devices=(DeviceSpec("host"),),
        variants=tuple(_variant(target, rows) for target in targets),
        weights=((WEIGHTS_AT, memoryview(tiny_weights(seed).tobytes())),),
        weights_bytes=(WEIGHTS_BYTES,),
        lock={"toolchain": "none"},
        debug={
            "launches": {target: [_launch("/a", ["/b"]), _launch("/b", [])] for target in targets},
            "programs": {target: {KERNEL: b"none"} for target in targets},
            "refusals": [
                {
                    "pattern": "GELU",
                    "nodes": [["/a", "Mul"]],
                    "reason": "no Erf",
                    "others": [["/b", "Add"]],
                }
            ],
            "messages": {"the rows must not be negative": "the rows of 'x' must not be negative"},
            "memory": {
                target: {"planned_bytes": 128, "lower_bound_bytes": 128, "fixed": True}
                for target in targets
            },
        },
    )


def _launch(node: str, users: list[str]) -> dict[str, object]:
    return {
        "kernel": KERNEL, "kind": "elementwise", "nodes": [[node, "Mul"]], "writes": ["f32[4, 8]"],
        "saved_bytes": 128, "ends": "the result is read", "users": users,
    }  # fmt: skip


def tiny_weights(seed: int = 0) -> npt.NDArray[np.float32]:
    """Return w: f32[WIDTH]."""
    return (np.arange(WIDTH, dtype=np.float32) + np.float32(seed)) / np.float32(7)


def tiny_reference(x: npt.NDArray[np.float32], seed: int = 0) -> npt.NDArray[np.float32]:
    """Return y for `x`, bit for bit what the kernel computes."""
    w = tiny_weights(seed)
    one = np.float32(1)
    return (x * w + one) * w + one


def oracle_digest(mib: memoryview) -> bytes:
    """BLAKE3 of the oracle package."""
    return blake3.blake3(mib).digest()


_tree_entry = lru_cache(maxsize=64)(tree_entry_with(oracle_digest))


def tree_entry(mib: memoryview) -> bytes:
    """The entry of one MiB by the oracles; most bundles here have the same MiBs, and the oracle of
    a checksum is slow."""
    return _tree_entry(memoryview(bytes(mib)))

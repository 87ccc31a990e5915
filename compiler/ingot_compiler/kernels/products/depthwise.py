"""Depthwise convolutions: one kernel row of an image at a time, channels in lanes.

In: a group anchored by ``conv`` with one input and one output channel per group, channels-last.
Out: its loop program. Not done here: other grouped convolutions (``conv``).
"""

import math

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.rules.reference_rules import ints
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.products.algorithm import Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.convolution import TAP_NAMES, ConvShape
from ingot_compiler.kernels.tiles import (
    BLOCK_CHAINS_MAX,
    choose_pixels,
    rows_together,
    sum_dtype,
)
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.groups.views import Shape, flat_offset
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops.program import Depthwise, LoopProgram

_STRAIGHT_PIXELS_MIN = 2  # one sum at a time is slower than a loop over taps (21x21: 1.8 times)
_BYTE_STEPS_MAX = 700


def lower_depthwise(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are (image, every output axis but the last)."""
    anchored = AnchoredGroup(group)
    x, w, shape = anchored.operand(0), anchored.operand(1), anchored.result.shape
    is_byte = x.type.dtype in BYTES
    conv = ConvShape.of(anchored.node, x, anchored.method.weight_shape)
    pixels = choose_pixels(shape[-1], conv.kernel, target)
    if is_byte:
        pixels = min(pixels, _byte_pixels(conv.kernel))
    outer_axes = (0, *range(2, len(shape) - 1))
    outer_shape = tuple(shape[axis] for axis in outer_axes)
    runs = (
        Run(outer_axes, symbol("p")),
        Run((len(shape) - 1,), symbol("x")),
        Run((1,), symbol("channel")),
    )
    statement = Depthwise(
        "x", shape[-1], "channel", shape[1], tuple(zip(TAP_NAMES, conv.kernel, strict=False)),
        anchored.number(0), _image_index(conv, x, outer_shape),
        anchored.number(1), _weight_index(w, together=is_byte), sum_dtype(x.type.dtype),
        ACCUMULATOR, anchored.epilogue(Space(shape, runs)),
        pixels,
    )  # fmt: skip
    work = dim_mul(dim_mul(shape[-1], shape[1]), dim_product(conv.kernel))
    grain = grain_for(work // 8)
    return finish_program(anchored.buffers, (statement,), dim_product(outer_shape), grain)


def _image_index(conv: ConvShape, x: Operand, outer_shape: Shape) -> Dim:
    *outer_strides, step_x = conv.pixel_strides(x)
    return (
        conv.origin(x)
        + flat_offset(symbol("p"), outer_shape, outer_strides)
        + dim_mul(step_x, symbol("x"))
        + conv.tap_offset(x)
        + dim_mul(x.view.strides[1], symbol("channel"))
    )


def _byte_pixels(kernel: Shape) -> int:
    """How many sums of bytes a block has room for: of all steps, or where these are many, of those
    along the first axis."""
    together = BLOCK_CHAINS_MAX // byte_steps(kernel)
    return (
        together if together >= _STRAIGHT_PIXELS_MIN else BLOCK_CHAINS_MAX // _first_steps(kernel)
    )


def byte_steps(kernel: Shape) -> int:
    """Steps of a sum of bytes: four taps of the first axis at a time."""
    return _first_steps(kernel) * math.prod(ints(kernel)[1:])


def has_byte_blocks(kernel: Shape) -> bool:
    """Whether blocks of code have room for a sum of bytes, and for the sum of all its weights."""
    return _first_steps(kernel) <= BLOCK_CHAINS_MAX and byte_steps(kernel) <= _BYTE_STEPS_MAX


def _first_steps(kernel: Shape) -> int:
    return -(-ints(kernel)[0] // rows_together("i8"))


def _weight_index(w: Operand, *, together: bool) -> Dim:
    """[kernel.., C], or [kernel.. / 4, C, 4] of bytes."""
    taps: list[Dim] = list(map(symbol, TAP_NAMES))
    point = [*taps[: w.type.rank - 1], symbol("channel")]
    if together:
        count, first = w.type.shape[-1], taps[0]
        inner = taps[1 : w.type.rank - 2]
        point = [dim_floordiv(first, count), *inner, symbol("channel"), dim_mod(first, count)]
    index = w.view.offset
    for place, stride in zip(point, w.view.strides, strict=True):
        index = index + dim_mul(stride, place)
    return index


def is_depthwise(facts: ProductFacts) -> bool:
    """Whether a convolution has one input and one output channel per group, and weights known to
    the build."""
    groups, (channels, own) = facts.node.integer("groups"), facts.weights.shape[:2]
    return groups != 1 and channels == groups and own == 1 and facts.has_constant_weights


def _offer(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """Offer the method for a depthwise convolution of floats, or of bytes with no more taps than a
    block of code can hold."""
    del wishes, target
    if facts.x.dtype in BYTES:
        serves = has_byte_blocks(facts.weights.shape[2:])
    else:
        serves = facts.x.dtype in FLOATS
    if not serves or not is_depthwise(facts):
        return None
    return Method(_NAME, weight_shape=facts.weights.shape)


_NAME = "depthwise"
DEPTHWISE = Algorithm(
    (Kind(_NAME, one_kernel(lower_depthwise), ResultLayout.CHANNELS_LAST),), _offer
)

"""Equal layers are one group, whatever numbers a model gives to what they read."""

from dataclasses import replace

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.canonical_group import canonical_group
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.views import dense_view

_VECTOR = TensorType("f32", (8,))


def _layer(x: int, scale: int, product: int, result: int, buffers: tuple[int, int, int]) -> Group:
    """``x * scale + x``."""
    operands = [
        Operand(value, _VECTOR, buffer, dense_view((8,)))
        for value, buffer in zip((x, scale, result), buffers, strict=True)
    ]
    nodes = (Node("mul", (x, scale), (product,)), Node("add", (product, x), (result,)))
    types = tuple((value, _VECTOR) for value in sorted((x, scale, product, result)))
    return Group(Method("pointwise"), nodes, tuple(operands[:2]), tuple(operands[2:]), types)


def test_a_layer_whose_constant_comes_before_its_input_is_the_same_group() -> None:
    """The optimiser merges equal constants, so that a later layer's may have the lower number."""
    first = _layer(x=0, scale=1, product=2, result=3, buffers=(5, 7, 9))
    second = _layer(x=12, scale=1, product=13, result=14, buffers=(9, 7, 2))
    assert canonical_group(first) == canonical_group(second)


def test_a_layer_that_reads_one_value_twice_is_another_group() -> None:
    """What a kernel reads from one buffer is not what it reads from two."""
    first = _layer(x=0, scale=1, product=2, result=3, buffers=(5, 7, 9))
    twice = _layer(x=0, scale=0, product=2, result=3, buffers=(5, 5, 9))
    assert canonical_group(first) != canonical_group(twice)


def test_the_place_in_the_model_is_no_part_of_it() -> None:
    """Sources, the device and the reason to stop are said of one layer alone."""
    layer = _layer(x=0, scale=1, product=2, result=3, buffers=(5, 7, 9))
    placed = replace(layer, source=(4, 5), device=1, stop_reason="a reason")
    assert canonical_group(placed) == canonical_group(layer)

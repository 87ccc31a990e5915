"""The decisions of fusion, each alone: layouts, taking in an operand, the choice of a kind,
requirements, storage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.precision import F32, SPEED
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.kernels.machines import TEAM_MACHINE
from ingot_compiler.kernels.products.algorithm import ProductFacts, Wishes
from ingot_compiler.kernels.products.choose import choose_product
from ingot_compiler.lowering.fusion.deferred import Deferred, join
from ingot_compiler.lowering.fusion.grouping import FUSED_NODES_MAX, refusal
from ingot_compiler.lowering.fusion.layout import Halo, ImageDemands, image_demands, natural_order
from ingot_compiler.lowering.fusion.narrow import NarrowTail, narrow_tail
from ingot_compiler.lowering.fusion.requirements import Requirements
from ingot_compiler.lowering.fusion.run_time_symbols import RunTimeSymbols
from ingot_compiler.lowering.fusion.storage import Storage, Stored
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.groups.fused import Operand, View
from ingot_compiler.lowering.groups.method import Method, method_language
from ingot_compiler.lowering.groups.views import dense_view, transpose_view
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.cumsum import CUMSUM
from ingot_compiler.lowering.kinds.kind import ResultLayout
from ingot_compiler.lowering.kinds.reduce import REDUCE
from ingot_compiler.lowering.loops.loop_parts import StrassenTile
from ingot_compiler.lowering.loops.strassen import StrassenShape
from ingot_compiler.targets.target import parse_target

IMAGE = TensorType("f32", (1, 8, 4, 5))
CHANNELS_LAST = (0, 2, 3, 1)
NO_DEMANDS = ImageDemands(frozenset(), {})


@pytest.mark.parametrize(
    ("layout", "is_image", "expected"),
    [
        (ResultLayout.ROW_MAJOR, False, (0, 1, 2, 3)),
        (ResultLayout.ROW_MAJOR, True, CHANNELS_LAST),
        (ResultLayout.CHANNELS_LAST, False, CHANNELS_LAST),
        (ResultLayout.HEADS_INSIDE, False, (0, 2, 1, 3)),
        (ResultLayout.LIKE_OPERAND, False, (0, 1, 2, 3)),
    ],
)
def test_order_of_a_result_without_operands(
    layout: ResultLayout, *, is_image: bool, expected: tuple[int, ...]
) -> None:
    """A user that reads an image decides; then the kind; without either a result is row-major."""
    assert natural_order(IMAGE, layout, [], is_image=is_image) == expected


def test_a_matrix_has_no_channels_to_put_last() -> None:
    """A result of two axes of a kind whose lanes are channels lies like its operand."""
    kind = TensorType("f32", (3, 4))
    operand = (kind, dense_view((3, 4), (1, 0)))
    assert natural_order(kind, ResultLayout.CHANNELS_LAST, [operand], is_image=False) == (1, 0)


def test_a_result_lies_like_its_first_operand_that_repeats_nothing() -> None:
    """Operands of other shapes, and those that are broadcast, say nothing of the order."""
    kind = TensorType("f32", (3, 4))
    other, repeated = (TensorType("f32", (4,)), View((1,))), (kind, View((0, 1)))
    operand = (kind, dense_view((3, 4), (1, 0)))
    operands = [other, repeated, operand]
    assert natural_order(kind, ResultLayout.LIKE_OPERAND, operands, is_image=False) == (1, 0)
    assert natural_order(kind, ResultLayout.LIKE_OPERAND, operands[:2], is_image=False) == (0, 1)


def test_a_resized_image_lies_like_the_image() -> None:
    """Whatever their sizes are."""
    source = TensorType("f32", (1, 8, 2, 2)), transpose_view(dense_view((1, 2, 2, 8)), (0, 3, 1, 2))
    assert (
        natural_order(IMAGE, ResultLayout.LIKE_FIRST_OPERAND, [source], is_image=False)
        == CHANNELS_LAST
    )


def conv_node(
    before: tuple[int, int], after: tuple[int, int], **more: int | tuple[int, ...]
) -> Node:
    """A convolution of value 0 by value 1 as value 2."""
    table = {
        "pads_before": before,
        "pads_after": after,
        "strides": (1, 1),
        "dilations": (1, 1),
        "groups": 1,
        **more,
    }
    return Node("conv", (0, 1), (2,), make_attributes(table))


def test_the_halo_of_a_value_is_enough_for_all_who_read_it() -> None:
    """Along each side the largest pad counts; a pool reads the image and no zeros; without pads
    there is no halo."""
    one, two = conv_node((1, 0), (1, 2)), conv_node((0, 3), (0, 0))
    pool = Node("max_pool", (5,), (6,))
    demands = image_demands([(one, True), (two, True), (pool, False)])
    assert demands.channels_last == {0, 5}
    assert demands.halos == {0: Halo((0, 0, 1, 3), (0, 0, 1, 2))}
    assert image_demands([(conv_node((0, 0), (0, 0)), True)]).halos == {}


ANCHORED = Deferred((0,), (), REDUCE, 0)


@pytest.mark.parametrize(
    ("tree", "use_count", "same_shape", "anchor_allowed", "reason"),
    [
        (Deferred((0,), ()), 1, True, False, ""),
        (Deferred((0,), ()), 1, False, False, ""),
        (ANCHORED, 1, True, True, ""),
        (Deferred((0,), ()), 2, True, True, "the value has 2 users"),
        (replace(ANCHORED, kind=CUMSUM), 1, True, True, "cumsum stores what it computes"),
        (
            Deferred(tuple(range(FUSED_NODES_MAX)), ()),
            1,
            True,
            True,
            "a kernel has at most 48 operations",
        ),
        (
            Deferred((0, 1, 2), ()),
            1,
            False,
            True,
            "its user has another shape and would compute it again",
        ),
        (ANCHORED, 1, False, True, "its user has another shape and would compute it again"),
        (ANCHORED, 1, True, False, "its user has loops of its own"),
    ],
)
def test_why_a_kernel_does_not_take_in_an_operand(
    tree: Deferred, use_count: int, *, same_shape: bool, anchor_allowed: bool, reason: str
) -> None:
    """One reason each, and none where the operand may be computed inside."""
    assert refusal(tree, use_count, same_shape=same_shape, anchor_allowed=anchor_allowed) == reason


def test_a_joined_tree_has_the_loops_of_its_anchor() -> None:
    """Nodes in their order, each leaf once, the kind of the part that has loops; or of the node
    itself."""
    leaf, other = (7, Stored(0, View(()))), (8, Stored(1, View(())))
    tree = join(5, [Deferred((3,), (leaf,), REDUCE, 3), Deferred((1,), (leaf, other))], [other])
    assert tree == Deferred((1, 3, 5), (leaf, other), REDUCE, 3)
    assert join(5, [Deferred((1,), ())], [], (CUMSUM, 5, None)) == Deferred((1, 5), (), CUMSUM, 5)


DEPTHWISE = ProductFacts(
    conv_node((1, 1), (1, 1), groups=8),
    IMAGE,
    TensorType("f32", (8, 1, 3, 3)),
    IMAGE,
    has_constant_weights=True,
    x_view=dense_view(IMAGE.shape),
    becomes_output=True,
)
SSE, AVX, AVX512 = map(parse_target, ("x86-64-v2", "x86-64-v3", "x86-64-v4"))


def kind_of(
    facts: ProductFacts,
    target: KernelTarget = SSE,
    **more: int | tuple[int, ...],
) -> str:
    """The kind of a convolution with pads of 1 and eight groups."""
    facts = replace(facts, node=conv_node((1, 1), (1, 1), **{"groups": 8, **more}))
    method = choose_product(facts, Wishes(F32, SPEED), target)
    return method.kind if method else "conv"


def test_the_kind_of_a_convolution() -> None:
    """Planes need a row-major image whose result is returned, of known sizes or masks that are not;
    depthwise needs weights that the build knows."""
    assert kind_of(DEPTHWISE) == "depthwise_plane"
    assert kind_of(replace(DEPTHWISE, x_view=None)) == "depthwise"
    assert kind_of(replace(DEPTHWISE, x_view=dense_view(IMAGE.shape, CHANNELS_LAST))) == "depthwise"
    assert kind_of(replace(DEPTHWISE, becomes_output=False)) == "depthwise"
    high = replace(DEPTHWISE, x=TensorType("f32", (1, 8, symbol("h"), 5)))
    assert kind_of(high) == "depthwise"
    assert kind_of(high, AVX) == "depthwise_plane"
    assert kind_of(DEPTHWISE, strides=(1, 3)) == "depthwise"
    assert kind_of(replace(DEPTHWISE, has_constant_weights=False)) == "conv"
    assert kind_of(replace(DEPTHWISE, x=TensorType("i32", IMAGE.shape))) == "conv"
    assert kind_of(replace(DEPTHWISE, weights=TensorType("f32", (16, 1, 3, 3)))) == "conv"
    full = replace(DEPTHWISE, weights=TensorType("f32", (8, 8, 3, 3)))
    assert kind_of(full, AVX512, groups=1) == "conv"
    assert kind_of(full, AVX, groups=1) == "conv_rows"
    assert kind_of(full, TEAM_MACHINE, groups=1) == "conv"
    assert kind_of(full, AVX, groups=1, dilations=(6, 1)) == "conv"
    assert kind_of(replace(full, becomes_output=False), AVX, groups=1) == "conv"


def test_a_laid_out_image_changes_no_earlier_decision() -> None:
    """An image of one channel that lies row-major is channels-last, too. Where that is known only
    once the convolution has asked for channels-last, it stays one that reads them so."""
    plane = TensorType("f32", (1, 1, 4, 5))
    weights, node = TensorType("f32", (1, 1, 3, 3)), conv_node((0, 0), (0, 0))
    facts = ProductFacts(node, plane, weights, plane, has_constant_weights=True)
    seen = replace(facts, x_view=dense_view(plane.shape), becomes_output=True)
    assert kind_of(seen, AVX, groups=1) == "conv_rows"
    laid_out = replace(seen, image=Operand(0, plane, 0, dense_view(plane.shape)))
    method = choose_product(laid_out, Wishes(F32, SPEED), AVX)
    assert method
    assert method.kind == "conv"


def test_a_method_reads_what_it_prints() -> None:
    """Every field of one that has all of them, and of one that has none."""
    shape = StrassenShape(24, 48, StrassenTile(2, 64), 20)
    full = Method("conv", "panels", (8, symbol("n") + 1, 3), 2, True, (2, 4), shape, 3)
    for method in (full, Method("conv")):
        assert method_language().read(Method, Reader("method", f"{method} anchor 0")) == method


def sliced(size: str) -> tuple[FusionValues, Node, Node]:
    """Two slices of a vector of 4 to a size that may be negative."""
    builder = GraphBuilder([TensorType("f32", (4,))])
    cuts = [
        builder.add("slice", (0,), {"starts": (0,), "sizes": (symbol(size) - 1,), "steps": (1,)})
        for _ in range(2)
    ]
    graph = builder.finish(cuts)
    first, second = graph.nodes
    return FusionValues(graph, [0] * len(graph.types), (), NO_DEMANDS), first, second


def test_a_size_is_required_once() -> None:
    """The second node of a size asks for nothing; behind a region what was checked inside is
    forgotten."""
    values, first, second = sliced("n")
    requirements = Requirements(values, (0,))
    before = requirements.checked()
    assert [str(item.what) for item in requirements.of_sizes(first)] == [
        "a size is negative: n - 1"
    ]
    assert requirements.of_sizes(second) == []
    requirements.forget_since(before)
    assert len(requirements.of_sizes(second)) == 1


def test_a_count_that_an_operand_has_is_possible() -> None:
    """Elements that memory never holds are counted, unless an operand or an input has as many."""
    values, first, _ = sliced("n")
    requirements = Requirements(values, (0,))
    (found,) = requirements.of_counts(first)
    assert str(found.what).endswith("got n - 1")
    assert requirements.of_counts(first) == []


def test_storage_forgets_what_a_region_stored_and_keeps_its_buffers() -> None:
    """A value of a region lies nowhere behind it, nor does an image made there; the region's steps
    still name the buffers."""
    storage = Storage([(0, IMAGE)])
    before = storage.places()
    place = storage.workspace(IMAGE, CHANNELS_LAST, 0, Halo((0, 0, 1, 1), (0, 0, 1, 1)))
    storage.put(1, place)
    storage.put_image(0, place)
    storage.forget_since(before)
    assert storage.find(0) == Stored(0, dense_view(IMAGE.shape))
    assert (storage.find(1), storage.find_image(0)) == (None, None)
    assert [spec.element_count for spec in storage.buffers] == [160, 8 * 6 * 7]


def test_equal_constants_of_a_device_share_a_buffer() -> None:
    """Two devices that read one expression have it twice."""
    builder = GraphBuilder([])
    expression = builder.finish(
        [builder.add("literal", (), {"dtype": "i64", "shape": (2,), "value": (1, 2)})]
    )
    storage = Storage([])
    places = [storage.constant(expression, device) for device in (0, 0, 1)]
    assert [place.buffer for place in places] == [0, 0, 1]
    assert len(storage.constants) == 2


def test_new_symbols_have_no_name_of_a_size() -> None:
    """What a shape calls a size is no name for a condition; what was bound is only known while main
    runs."""
    symbols = RunTimeSymbols()
    assert symbols.new(frozenset({"control1"})) == "control2"
    symbols.bind(["n"])
    assert symbols.are_in(symbol("n") + 1)
    assert not symbols.are_in(symbol("m"))


def dequantized(dtype: DType = "u8", scale_shape: tuple[int, ...] = ()) -> tuple[Graph, int]:
    """A graph of ``(relu(x) as integers - 3) * scale`` and that value."""
    builder = GraphBuilder([IMAGE, TensorType("f32", scale_shape)])
    integers = builder.add("cast", (builder.add("relu", (0,)),), {"dtype": dtype})
    wide = builder.add("cast", (integers,), {"dtype": "f32"})
    zero = builder.add("literal", (), {"dtype": "f32", "shape": (), "value": (3.0,)})
    result = builder.add("mul", (builder.add("sub", (wide, zero)), 1))
    return builder.finish([result]), result


def tail_of(graph: Graph, value: int) -> NarrowTail | None:
    """Of a tree of all nodes."""
    values = FusionValues(graph, [0] * len(graph.types), (), NO_DEMANDS)
    return narrow_tail(values, Deferred(tuple(range(len(graph.nodes))), ()), value)


def test_a_dequantized_value_is_computed_from_its_integers() -> None:
    """Behind the cast: all nodes but those that make the integers; the scale is another leaf."""
    graph, value = dequantized()
    assert tail_of(graph, value) == NarrowTail(3, (2, 3, 4, 5), (1,))
    assert tail_of(*dequantized("i16")) is not None


def test_what_is_not_narrow_is_stored_as_it_is() -> None:
    """Integers as wide as the result, a second tensor as large, a function that costs more."""
    assert tail_of(*dequantized("i32")) is None
    assert tail_of(*dequantized(scale_shape=(1, 8, 4, 5))) is None
    builder = GraphBuilder([TensorType("u8", (4, 4))])
    result = builder.add("exp", (builder.add("cast", (0,), {"dtype": "f32"}),))
    assert tail_of(builder.finish([result]), result) is None

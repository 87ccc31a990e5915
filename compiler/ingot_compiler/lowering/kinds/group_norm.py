"""``group_norm``: statistics over the channels of a group and all positions of an image.

In: a group anchored by ``group_norm``. Out: its loop program: units are (image, group). Not done here: fusion before it.
"""

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduce import nested_reduce
from ingot_compiler.lowering.loops import Apply, Constant, For, FromIndex, Let, Load, Local, LoopProgram, Store, Value
from ingot_compiler.lowering.space import Run, Space
from ingot_compiler.targets.target import Target


def lower_group_norm(group: Group, target: Target) -> LoopProgram:
    """Sum, sum of squared deviations, then one pass that stores."""
    del target
    anchor = group.nodes[group.anchor]
    types = dict(group.types)
    operands = {operand.value: operand for operand in group.operands}
    x, scale, bias = (operands[value] for value in anchor.operands)
    count_groups, epsilon = anchor.attribute("groups"), anchor.attribute("epsilon")
    assert isinstance(count_groups, int)
    assert isinstance(epsilon, float)
    shape = x.type.shape
    spatial = tuple(range(2, len(shape)))
    channels = dim_floordiv(shape[1], count_groups)
    positions = dim_product(tuple(shape[axis] for axis in spatial))
    image = dim_floordiv(symbol("p"), count_groups)
    first = dim_mul(dim_mod(symbol("p"), count_groups), channels)
    dtype = types[anchor.results[0]].dtype
    buffers = GroupBuffers(group)

    def space(channel: str, position: str) -> Space:
        runs = (Run((0,), image), Run((1,), first + symbol(channel)), Run(spatial, symbol(position)))
        return Space(shape, runs)

    def load(channel: str, position: str) -> Value:
        return Load(buffers.number(x), space(channel, position).offset(x.view))

    # The axis that lies together is innermost, so that lanes run along it.
    channels_inner = x.view.strides[1] == 1

    def axes(name: str) -> list[tuple[str, Dim]]:
        order = [(f"{name}_s", positions), (f"{name}_c", channels)]
        return order if channels_inner else order[::-1]

    def apply(function: str, *arguments: Value) -> Value:
        return Apply(function, arguments, dtype)

    size = FromIndex(dim_mul(channels, positions), dtype)
    total = nested_reduce("total", "sum", axes("total"), dtype, ((), load("total_c", "total_s")), lanes=True)
    mean = Local("mean", dtype)
    deviation = apply("sub", load("squares_c", "squares_s"), mean)
    squares = nested_reduce(
        "squares", "sum", axes("squares"), dtype, ((), apply("mul", deviation, deviation)), lanes=True
    )
    variance = apply("div", Local("squares", dtype), size)
    inverse = apply("reciprocal", apply("sqrt", apply("add", variance, Constant(epsilon, dtype))))
    at = space("c", "s")
    channel = first + symbol("c")

    def parameter(position: int) -> Value:
        operand = (x, scale, bias)[position]
        return Load(buffers.number(operand), operand.view.offset + dim_mul(channel, operand.view.strides[0]))

    scaled = apply("mul", apply("mul", apply("sub", load("c", "s"), mean), Local("inverse", dtype)), parameter(1))
    elements = Elements(group, buffers)
    elements.given[anchor.results[0]] = elements.let(apply("add", scaled, parameter(2)), dtype)
    result = group.results[0]
    value = elements.value(result.value, at)
    store = Store(buffers.number(result), at.offset_of(result.view, result.type.shape), value)
    inner, outer = (("c", channels), ("s", positions)) if channels_inner else (("s", positions), ("c", channels))
    loop = For(outer[0], outer[1], "serial", (For(inner[0], inner[1], "vector", (*elements.take(), store)),))
    body = (total, Let("mean", apply("div", Local("total", dtype), size)), squares, Let("inverse", inverse), loop)
    return finish_program(buffers, body, dim_mul(shape[0], count_groups), grain_for(dim_mul(channels, positions)))

"""What a node gives by ``onnx.reference``, and how far a right answer may lie from that.

In: a node, operands with bounds. Out: results with bounds. Not done here: comparing (``rules``).

Running error analysis by trial: every operand is moved by its own bound (at least by a unit in the
last place where the op rounds), at random, several times; how far the result moves is its bound. So
an op that amplifies errors gets what it deserves, and one that moves elements gets none.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import ml_dtypes
import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator
from tests.fuzz.program import (
    HALVES,
    IR_VERSION,
    OPSETS,
    Array,
    Program,
    element,
    is_float,
)
from tests.fuzz.resized import resized

# Results are operands, or parts of them: no rounding.
EXACT = frozenset(
    [
        "Abs",
        "ArrayFeatureExtractor",
        "Clip",
        "Compress",
        "Concat",
        "ConstantOfShape",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "GlobalMaxPool",
        "Identity",
        "Max",
        "MaxPool",
        "Min",
        "Neg",
        "OneHot",
        "Pad",
        "ReduceMax",
        "ReduceMin",
        "Relu",
        "Range",
        "Reshape",
        "ScatterElements",
        "ScatterND",
        "Shape",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "TopK",
        "Transpose",
        "Trilu",
        "Unique",
        "Unsqueeze",
        "Where",
    ]
)
# Results jump: operands must be far from the edge.
JUMPS = frozenset(
    [
        "ArgMax",
        "ArgMin",
        "Cast",
        "Ceil",
        "Equal",
        "Floor",
        "Greater",
        "GreaterOrEqual",
        "Hardmax",
        "IsInf",
        "IsNaN",
        "Less",
        "LessOrEqual",
        "Mod",
        "QLinearMatMul",
        "QuantizeLinear",
        "Round",
        "Shrink",
        "Sign",
        "ThresholdedRelu",
    ]
)
# Functions whose body subtracts numbers of the operand's size: their rounding is relative to that.
CANCELS = frozenset(["Gelu", "Mish", "LogSoftmax", "Celu", "Elu", "Selu", "Softplus", "HardSwish"])
# Those that subtract 1, or take the logarithm of a number near 1.
NEAR_ONE = frozenset(["Celu", "Elu", "LogSoftmax", "Selu"])
# One divided by a zero is an infinity of its sign.
DIVIDES = frozenset(["Div", "Pow", "Reciprocal"])
# onnx.reference computes these in f64 with constants or results of f32.
SINGLE = frozenset(["Erf", "Gelu", "HardSwish"])
# Of f16 and bf16, these are computed in f32 and rounded once.
ROUNDED_ONCE = frozenset(["Add", "Cos", "Div", "Exp", "Log", "Mul", "Sin", "Sqrt", "Sub", "Tanh"])
FACTOR = 32.0  # of a bound is what an answer may be off by
DIVISORS = {"Div": 1, "Reciprocal": 0}
_JUMP_FACTOR = 64.0
_SIGNS = (1.0, -1.0, 0.0, 0.0)  # all up, all down, each as it comes
_SINGLE_EPSILON = 2.0**-24
_THREE_ROUNDINGS = Fraction(1, 1 << 22)
_OWN_ROUNDING_ULPS = 4.0


class UndefinedError(Exception):
    """ONNX does not say what this node gives on these operands."""


@dataclass(slots=True)
class Value:
    """``bound``: float64, of the array's shape; None means exact. ``computed``: by a node, so that
    its zeros may have either sign (rule 3)."""

    array: Array
    bound: Array | None = None
    computed: bool = False


def evaluate(program: Program, inputs: Mapping[str, Array]) -> dict[str, Value]:
    """Every value of the program.

    Raises:
        UndefinedError: ONNX does not define the result. Anything: the reference's own complaint
            about sizes.
    """
    values = {"": Value(np.zeros(0))} | {
        name: Value(array) for name, array in {**inputs, **program.constants}.items()
    }
    for node in program.nodes:
        results = run_node(node, [values[name] for name in node.input])
        values.update(zip(node.output, results, strict=True))
    return values


def run_node(node: NodeProto, operands: Sequence[Value]) -> list[Value]:
    """One node's results with their bounds."""
    arrays = [operand.array for operand in operands]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _refuse_undefined(node, arrays)
        evaluator = ReferenceEvaluator(_model(node, arrays))
        base = _run(evaluator, node, arrays)
        op = _op_of(node)
        moves = [_amount(op, operand) for operand in operands]
        bounds = [np.zeros(array.shape) for array in base]
        generator = np.random.default_rng(len(node.op_type))
        for position, amount in enumerate(moves):
            for sign in _SIGNS if amount is not None else ():
                moved = list(arrays)
                moved[position] = _moved(arrays[position], amount, generator, sign)
                for bound, before, after in zip(
                    bounds, base, _run(evaluator, node, moved), strict=True
                ):
                    np.maximum(bound, _distance(before, after), out=bound)
        if op in ROUNDED_ONCE and arrays[0].dtype in HALVES:
            bounds = [bound / FACTOR for bound in bounds]
        if op == "Cast" and arrays[0].dtype in HALVES and is_float(base[0]):
            bounds = bounds if operands[0].bound is None else [operands[0].bound]
        for others in _other_divisors(op, operands):
            bounds = [
                np.maximum(bound, _distance(*both))
                for bound, *both in zip(bounds, base, _run(evaluator, node, others), strict=True)
            ]
        if op == "ReduceProd" and is_float(arrays[0]):
            bounds = [np.maximum(bounds[0], _order_decides(evaluator, node, arrays))]
        if op == "QLinearMatMul" and (middles := near_middles(arrays)).any():
            bounds = [np.maximum(bound, middles) for bound in bounds]
        elif all(amount is None for amount in moves) and (op in EXACT or op in JUMPS):
            return [Value(array, computed=True) for array in base]
        if node.op_type in CANCELS:
            size = np.abs(arrays[0].astype(np.float64)) + (1.0 if node.op_type in NEAR_ONE else 0.0)
            bounds = [
                bound
                + _OWN_ROUNDING_ULPS
                * _own_epsilon(node.op_type, arrays[0])
                * np.where(np.isfinite(size), size, 0)
                for bound in bounds
            ]
        terms = _OWN_ROUNDING_ULPS * _SINGLE_EPSILON * _tree_magnitude(node)
        bounds = [bound + terms if terms else bound for bound in bounds]
        return [_rounded(op, array, bound) for array, bound in zip(base, bounds, strict=True)]


def _order_decides(evaluator: Any, node: NodeProto, arrays: Sequence[Array]) -> Array:
    """Rule 4: infinite where the factors overflow or vanish in one order and not in another one."""
    size = np.abs(arrays[0])
    size = np.where(np.isfinite(size) & (size > 0), size, np.ones_like(size))
    one = size.dtype.type(1)
    (large,), (small,) = (
        _run(evaluator, node, [kept(size, one), *arrays[1:]]) for kept in (np.maximum, np.minimum)
    )
    is_lost = ~np.isfinite(large) | (small < _limits(size.dtype).smallest_normal)
    return np.where(is_lost, np.inf, 0.0)


def near_middles(arrays: Sequence[Array]) -> Array:
    """1.0 where the quotient of a QLinearMatMul with one scale each is so near to the middle of two
    integers that three roundings to f32 (the factor of the scales, the product) decide; else 0.0.

    ONNX says what is divided, and not how it is rounded on the way: its reference has the factor in
    f32 and the product in f64, ONNX Runtime both in f32. Computed exactly.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale = (array for array in arrays[:7])
    sums = np.matmul(
        a.astype(np.int64) - a_zero.astype(np.int64), b.astype(np.int64) - b_zero.astype(np.int64)
    )
    own, other, result = (Fraction(float(scale.item())) for scale in (a_scale, b_scale, y_scale))
    found = np.zeros(sums.shape)
    for at, total in np.ndenumerate(sums):
        quotient = abs(int(total) * own * other / result)
        middle = quotient.__floor__() + Fraction(1, 2)
        found[at] = abs(quotient - middle) <= quotient * _THREE_ROUNDINGS
    return found


def _tree_magnitude(node: NodeProto) -> float:
    """The largest sum that the leaves of an ensemble may make, all signs alike: what its sum is
    rounded to on the way. 0 for another node."""
    lists = {each.name: list(each.floats) or list(each.ints) for each in node.attribute}
    prefix = next((name for name in ("target", "class") if f"{name}_weights" in lists), "")
    if not prefix:
        return 0.0
    largest: dict[int, float] = {}
    pairs = zip(lists[f"{prefix}_treeids"], lists[f"{prefix}_weights"], strict=True)
    for tree, weight in pairs:
        largest[int(tree)] = max(abs(weight), largest.get(int(tree), 0.0))
    return sum(largest.values()) + max(map(abs, lists.get("base_values", [])), default=0.0)


def _op_of(node: NodeProto) -> str:
    """The op's name; one that scatters sums or products moves no elements alone."""
    combines = any(
        attribute.name == "reduction" and attribute.s != b"none" for attribute in node.attribute
    )
    return (
        f"{node.op_type} combining"
        if combines and node.op_type.startswith("Scatter")
        else node.op_type
    )


def _rounded(op: str, array: Array, bound: Array) -> Value:
    if not is_float(array):
        return Value(array, bound if bound.any() else None, computed=True)
    if op in ROUNDED_ONCE and array.dtype in HALVES:
        size = np.abs(array.astype(np.float64))
        bound = bound + (2 * _epsilon(array) * size + _tiny(op, array)) / FACTOR
    elif op not in EXACT and op not in JUMPS:
        finite = np.where(np.isfinite(array), np.abs(array.astype(np.float64)), 0.0)
        bound = bound + _OWN_ROUNDING_ULPS * _own_epsilon(op, array) * finite + _tiny(op, array)
    return Value(array, bound if bound.any() else None, computed=True)


def _amount(op: str, operand: Value) -> Array | None:
    """How far to move an operand."""
    if not is_float(operand.array) or operand.array.size == 0:
        return None
    if op in JUMPS:
        return None if operand.bound is None else _JUMP_FACTOR * operand.bound
    if op in EXACT:
        return operand.bound
    if op in ROUNDED_ONCE and operand.array.dtype in HALVES:
        return None if operand.bound is None else FACTOR * operand.bound
    own = _epsilon(operand.array) * np.abs(operand.array.astype(np.float64))
    return own if operand.bound is None else np.maximum(own, operand.bound)


def _other_divisors(op: str, operands: Sequence[Value]) -> Iterator[list[Array]]:
    """Operands whose computed zeros have the other sign, and those whose divisor is 0 where it may
    be."""
    if op in DIVIDES and any(_has_zeros(operand) for operand in operands):
        yield [_zeros_turned(operand) for operand in operands]
    divisor = operands[DIVISORS[op]] if op in DIVISORS else None
    if divisor is not None and divisor.bound is not None and is_float(divisor.array):
        is_near = np.abs(divisor.array) <= FACTOR * divisor.bound
        arrays = [operand.array for operand in operands]
        arrays[DIVISORS[op]] = np.where(is_near, np.zeros_like(divisor.array), divisor.array)
        if is_near.any():
            yield arrays


def _has_zeros(operand: Value) -> bool:
    return operand.computed and is_float(operand.array) and not operand.array.all()


def _zeros_turned(operand: Value) -> Array:
    array = operand.array
    return np.where(array == 0, -array, array) if _has_zeros(operand) else array


def _moved(
    array: Array, amount: Array | None, generator: np.random.Generator, sign: float
) -> Array:
    """Move every element, by one unit in the last place at least: half of it would round back."""
    direction = generator.uniform(0.5, 1.5, array.shape) * (
        sign or generator.choice([-1.0, 1.0], array.shape)
    )
    moved = np.asarray(array.astype(np.float64) + direction * np.asarray(amount)).astype(
        array.dtype
    )
    beside = np.nextafter(array, np.copysign(np.inf, direction).astype(array.dtype))
    return np.where((moved == array) & (np.asarray(amount) > 0), beside, moved)


def _distance(before: Array, after: Array) -> Array:
    """How far each element moved; infinite where it stopped or began to be finite."""
    if before.shape != after.shape:
        raise UndefinedError("the shape depends on rounding")
    wide, other = before.astype(np.float64), after.astype(np.float64)
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    apart = np.where(same, 0.0, np.abs(other - wide))
    return np.where(np.isnan(apart), np.inf, apart)


def _epsilon(array: Array) -> float:
    return float(_limits(array.dtype).eps) / 2


def _own_epsilon(op: str, array: Array) -> float:
    return _SINGLE_EPSILON if op in SINGLE and array.dtype == np.float64 else _epsilon(array)


def _tiny(op: str, array: Array) -> float:
    dtype = np.dtype(np.float32) if op in SINGLE else array.dtype
    return float(_limits(dtype).smallest_subnormal)


def _limits(dtype: np.dtype[Any]) -> Any:
    finfo = cast("Callable[[np.dtype[Any]], Any]", ml_dtypes.finfo)  # half typed
    return finfo(dtype)


def _quotients(arrays: Sequence[Array]) -> Array:
    """What a QuantizeLinear rounds, up to the sign of its least and greatest scale."""
    least = np.abs(arrays[1].astype(np.float64)).min(initial=np.inf)
    return arrays[0].astype(np.float64) / least if least else np.zeros(1)


def _refuse_undefined(node: NodeProto, arrays: Sequence[Array]) -> None:
    if node.op_type in ("Div", "Mod") and arrays[0].dtype.kind in "iu":
        if (arrays[1] == 0).any():
            raise UndefinedError("integer division by zero")
        if arrays[0].dtype.kind == "i" and (arrays[1] == -1).any():
            raise UndefinedError("the least integer divided by -1")
    if node.op_type == "QuantizeLinear" and not np.all(np.abs(_quotients(arrays)) < 2.0**31):
        raise UndefinedError(
            "a quotient that is none, or beyond i32, which onnx.reference wraps before it saturates"
        )
    if node.op_type == "Slice" and len(arrays) == 5:
        sizes = [arrays[0].shape[axis] for axis in arrays[3]]
        starts = zip(arrays[1], sizes, arrays[4], strict=True)
        if any(step < 0 and start + size < 0 for start, size, step in starts):
            raise UndefinedError(
                "a backward slice from before the first element: ONNX begins at 0, numpy is empty"
            )
    if node.op_type in ("LayerNormalization", "PRelu") and any(
        np.broadcast_shapes(arrays[0].shape, array.shape) != arrays[0].shape for array in arrays[1:]
    ):
        raise UndefinedError("a parameter that is larger than the tensor")
    if node.op_type in ("BatchNormalization", "InstanceNormalization") and any(
        array.shape != arrays[0].shape[1:2] for array in arrays[1:]
    ):
        raise UndefinedError("a parameter for another number of channels")
    if node.op_type == "Split" and arrays[1].sum() != arrays[0].shape[_axis(node)]:
        raise UndefinedError("parts that do not add up")
    if node.op_type == "ScatterND" and arrays[2].shape != (
        *arrays[1].shape[:-1],
        *arrays[0].shape[arrays[1].shape[-1] :],
    ):
        raise UndefinedError("updates of another shape")
    if node.op_type in ("AveragePool", "LpPool", "MaxPool") and 0 in arrays[0].shape[2:]:
        raise UndefinedError("a window that lies in the padding alone")
    if node.op_type in ("Gather", "GatherElements") and arrays[1].size:
        size = arrays[0].shape[_axis(node)]
        if arrays[1].max() >= size or arrays[1].min() < -size:
            raise UndefinedError("an index out of range, which numpy may wrap around")
    if node.op_type == "BitShift" and (arrays[1] >= arrays[0].dtype.itemsize * 8).any():
        raise UndefinedError("a shift by the whole width")
    if node.op_type == "Cast" and is_float(arrays[0]):
        target = helper.tensor_dtype_to_np_dtype(node.attribute[0].i)
        wide = arrays[0].astype(np.float64)
        if target == np.uint32 and not ((wide > -(2.0**31)) & (wide < 2.0**32)).all():
            raise UndefinedError(
                "a number that numpy makes one u32 or another of, by its place in the array"
            )
    if node.op_type == "Pow" and _powers_of_integers(arrays) == "undefined":
        raise UndefinedError("a negative power of an integer, or one that numpy takes f64 for")


def _powers_of_integers(arrays: Sequence[Array]) -> str:
    base, exponent = arrays
    if base.dtype.kind == "f" or exponent.dtype.kind == "f":
        return "defined"
    mixed = np.result_type(base, exponent).kind == "f"
    return "undefined" if mixed or (exponent < 0).any() else "defined"


def _axis(node: NodeProto) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)


def _model(node: NodeProto, arrays: Sequence[Array]) -> ModelProto:
    typed = {name: array for name, array in zip(node.input, arrays, strict=True) if name}
    inputs = [
        helper.make_tensor_value_info(name, element(array.dtype), array.shape)
        for name, array in typed.items()
    ]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in node.output if name]
    graph = helper.make_graph([node], "node", inputs, outputs)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=IR_VERSION)


def _run(evaluator: Any, node: NodeProto, arrays: Sequence[Array]) -> list[Array]:
    if node.op_type == "Resize":
        return [resized(node, arrays)]
    feeds = {name: array for name, array in zip(node.input, arrays, strict=True) if name}
    results = [np.asarray(result) for result in evaluator.run(None, feeds)]
    if node.op_type == "ReduceLogSumExp" and np.isinf(arrays[0]).any():
        return [_of_infinities(evaluator, feeds, node, results[0])]
    if node.op_type == "AveragePool" and np.isnan(arrays[0]).any():
        return [_beside_nan(evaluator, feeds, node, results[0])]
    return results


def _beside_nan(evaluator: Any, feeds: dict[str, Array], node: NodeProto, found: Array) -> Array:
    """Rule 14: NaN where a window has one."""
    x = feeds[node.input[0]]
    (part,) = evaluator.run(None, {**feeds, node.input[0]: np.isnan(x).astype(x.dtype)})
    return np.where(part > 0, np.nan, found).astype(found.dtype)


def _of_infinities(evaluator: Any, feeds: dict[str, Array], node: NodeProto, found: Array) -> Array:
    """Rule 11: the logarithm of a sum of infinities or of zeros, by the greatest finite numbers in the
    place of infinities; NaN stays where a NaN is added."""
    x = feeds[node.input[0]]
    large = np.copysign(np.finfo(x.dtype).max / 4, x).astype(x.dtype)
    (again,) = evaluator.run(None, {**feeds, node.input[0]: np.where(np.isinf(x), large, x)})
    only_infinities = np.isnan(found) & ~np.isnan(again)
    return np.where(only_infinities, np.copysign(np.inf, again), found).astype(found.dtype)

"""Values that are no tensors, through the frontend and the interpreter, packed as the loader packs them.

In: a typed model, its names, values. Out: values. Not done here: machine code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ingot_compiler.frontend.infer_types import TypedModel
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.types import TensorType, dtype_code
from ingot_compiler.ir.value_forms import count_of, of_tensors
from ingot_compiler.oracles.interpret import interpret
from ingot_runtime.executor.values import packed, unpacked
from ingot_runtime.format.plan import BundlePlan, TensorPlan, ValuePlan


def interpret_values(
    typed: TypedModel, names: Names, values: Sequence[object], read: ConstantReader
) -> list[Any]:
    """The outputs of a model with values that are no tensors."""
    plan, given = plan_of(typed, names), iter(values)
    assert plan.values is not None
    arrays = packed(plan, {value.name: next(given) for value in plan.values[0]})
    tensors = [arrays[tensor.name] for tensor in plan.inputs]
    results = interpret(typed.graph, tensors, read)
    made = {tensor.name: result for tensor, result in zip(plan.outputs, results, strict=True)}
    return list(unpacked(plan, made).values())


def plan_of(typed: TypedModel, names: Names) -> BundlePlan:
    """The plan that a bundle of the model would have, as far as values need it."""
    graph, called = typed.graph, of_tensors(names, typed.forms)

    def plans(tensors: Sequence[str], values: Sequence[int]) -> tuple[TensorPlan, ...]:
        types = [graph.types[value] for value in values]
        return tuple(
            TensorPlan(name, *_signed(kind)) for name, kind in zip(tensors, types, strict=True)
        )

    own = plans(called.inputs, graph.inputs), plans(called.outputs, graph.outputs)
    plan = BundlePlan("m", (), (), (), *own, ())
    at, given = 0, list[ValuePlan]()
    for form in typed.forms[0]:
        given.append(ValuePlan(names.inputs[at], form))
        at += count_of(form)
    plan.values = tuple(given), tuple(map(ValuePlan, names.outputs, typed.forms[1]))
    return plan


def _signed(kind: TensorType) -> tuple[int, tuple[int, ...]]:
    return dtype_code(kind.dtype), tuple(dim if isinstance(dim, int) else -1 for dim in kind.shape)

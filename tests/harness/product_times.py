"""Cycles that a product takes by each of its methods: the ports' work by a model of them, for the
code that a class of processors gets, and memory by the class's row.

In: sizes, a row, perhaps a model. Out: cycles of direct code and of Strassen's algorithm. Not done
here: which one is chosen (``strassen``), measuring (``bench_port_model``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.harness.loop_code import LoopCode, hottest
from tests.harness.port_models import PortModel
from tests.harness.product_loops import loops_in, product

from ingot_compiler.kernels.products.product_cost import (
    ProductSizes,
    direct_cycles,
    strassen_cycles,
)
from ingot_compiler.kernels.products.strassen import StrassenFacts, strassen_shape
from ingot_compiler.kernels.products.tuned import MATRIX_DIRECT, MATRIX_STRASSEN
from ingot_compiler.lowering.loops.strassen import PRODUCTS
from ingot_compiler.targets.processors import ProcessorClass
from ingot_compiler.targets.target import Target, parse_target

_SUMS_OF_B = sum(len(side) - 1 for _, side in PRODUCTS) / len(PRODUCTS)


def class_target(row: ProcessorClass) -> Target:
    """The level of a class, tuned for it."""
    return parse_target(f"{row.level}:{row.tunings[0]}")


def facts_of(sizes: ProductSizes) -> StrassenFacts:
    """A product of dense inputs, as networks of transformers have them."""
    return StrassenFacts(sizes.rows, sizes.depth, sizes.columns, is_dense=True, allows_more=False)


def product_times(
    sizes: ProductSizes, row: ProcessorClass, model: PortModel | None
) -> tuple[float, float | None]:
    """Directly, and by Strassen's algorithm (None: it cannot be), in cycles; without a model, the
    row says how busy ports are."""
    target = class_target(row)
    direct = direct_cycles(sizes, row, _of_method(MATRIX_DIRECT, sizes, target, model))
    shape = strassen_shape(facts_of(sizes), target, is_asked_for=True)
    if shape is None:
        return direct, None
    ports = _of_method(MATRIX_STRASSEN, sizes, target, model)
    return direct, strassen_cycles(shape, sizes, row, ports)


def _of_method(
    method: str, sizes: ProductSizes, target: Target, model: PortModel | None
) -> float | None:
    if model is None:
        return None
    programs = product(method, sizes.rows, sizes.depth, sizes.columns)(target)
    return vector_cycles(model, representatives(loops_in(programs, target)), target)


def representatives(loops: Sequence[LoopCode]) -> list[LoopCode]:
    """One of each kind among the hottest that store nothing."""
    found = hottest([loop for loop in loops if not loop.stores])
    return list({(loop.multiply_adds, loop.adds, loop.loads): loop for loop in found}.values())


def vector_cycles(model: PortModel, loops: Sequence[LoopCode], target: Target) -> float:
    """Cycles of one multiply-add: the mean of products with and without sums of B."""
    cycles = {
        bool(loop.adds): model.cycles(loop.text, target.arch) / loop.multiply_adds for loop in loops
    }
    plain = cycles[False]
    return plain + (cycles.get(True, plain) - plain) * _SUMS_OF_B

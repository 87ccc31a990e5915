"""What the table of classes of processors says, and what is chosen by it, beside models of each
instruction's ports, llvm-mca's and OSACA's: the proof where nobody has the processor.

A model that this machine lacks has no cases, and without any this file has no tests.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.harness.loop_code import LoopCode
from tests.harness.port_models import (
    ADDS,
    BYTES,
    LOADS,
    LOOPS,
    MULTIPLY_ADDS,
    STORES,
    PortModel,
    models_here,
)
from tests.harness.product_loops import loops_of
from tests.harness.product_times import (
    facts_of,
    product_times,
    representatives,
    vector_cycles,
)

from ingot_compiler.kernels.products.product_cost import ProductSizes
from ingot_compiler.kernels.products.strassen import strassen_shape
from ingot_compiler.targets.processors import PROCESSORS, ProcessorClass
from ingot_compiler.targets.target import Target, parse_target

pytestmark = pytest.mark.ports
MODELS = models_here()
__test__ = bool(MODELS)

TOLERANCE = 0.05
"""Of a rate, and of what a choice may lose."""
LOOP_TOLERANCE = 0.12
"""Of a loop: no row says how many instructions of any kind begin in a cycle, four on Haswell."""
FEW, SOME = 4, 12
"""Additions beside multiply-adds; instructions of the other kinds."""
WIDE = "x86-64-v4"
WITH_LOOPS = tuple(model for model in MODELS if model.knows(LOOPS))
ROWS: Mapping[str, ProcessorClass] = {row.name: row for row in PROCESSORS}
WIDE_MODELS = tuple(model for model in WITH_LOOPS if ROWS[model.row].level == WIDE)
CASES = (
    "direct", "one row", "Strassen", "Winograd 2x2", "convolution 3x3", "attention",
    "bytes, i8 by i8",
)  # fmt: skip
SIZES = ((128, 768, 768), (128, 3072, 768), (784, 512, 512), (1024, 1024, 1024))
"""Rows, depth and columns."""
_X86 = {
    MULTIPLY_ADDS: "vfmadd231ps %{r}14, %{r}15, %{r}{n}",
    ADDS: "vaddps %{r}14, %{r}15, %{r}13",
    LOADS: "vmovups {far}(%rax), %{r}{n}",
    STORES: "vmovups %{r}{n}, {far}(%rax)",
}
_ARM = {
    MULTIPLY_ADDS: "fmla v{n}.4s, v30.4s, v31.s[1]",
    ADDS: "fadd v29.4s, v30.4s, v31.4s",
    LOADS: "ldr q{n}, [x0, #{near}]",
    STORES: "str q{n}, [x0, #{near}]",
}


def named(model: PortModel) -> str:
    """The name of a case."""
    return f"{model.program} {model.name} for {model.row}"


def target_of(row: ProcessorClass) -> Target:
    """The class, with what multiplies bytes where all of its level's later processors do."""
    more = {WIDE: "+avx512vnni", "aarch64": "+asimddp"}.get(row.level, "")
    return parse_target(f"{row.level}:{row.tunings[0]}{more}")


def beside_one_another(rate: str, target: Target) -> str:
    """Instructions of a kind, none of which waits for another one."""
    forms, register = (_ARM, "v") if target.arch == "aarch64" else (_X86, "ymm")
    register = "zmm" if target.vector_bits == 512 else register
    lines = [
        forms[MULTIPLY_ADDS if rate == ADDS else rate].format(
            r=register, n=number, far=64 * number, near=16 * number
        )
        for number in range(SOME)
    ]
    lines += [forms[ADDS].format(r=register)] * (FEW if rate == ADDS else 0)
    return "".join(f"\t{line}\n" for line in lines)


def row_cycles(loop: LoopCode, row: ProcessorClass, model: PortModel) -> float:
    """Cycles of a turn by what the row says and the model knows as well."""
    adds = 0 if row.adds_apart else loop.adds
    return max(
        (loop.multiply_adds + adds) / row.multiply_adds,
        loop.loads / row.loads if model.knows(LOADS) else 0.0,
        loop.stores / row.stores if model.knows(STORES) else 0.0,
    )


KNOWN_RATES = [
    pytest.param(model, rate, id=f"{named(model)}, {rate}")
    for model in MODELS
    for rate in (MULTIPLY_ADDS, ADDS, LOADS, STORES)
    if model.knows(rate)
]


@pytest.mark.parametrize(("model", "rate"), KNOWN_RATES)
def test_rates_of_the_row_are_those_of_the_model(model: PortModel, rate: str) -> None:
    """Multiply-adds, some additions beside them, loads and stores of vectors."""
    row, target = ROWS[model.row], target_of(ROWS[model.row])
    count = SOME + (FEW if rate == ADDS and not row.adds_apart else 0)
    told = {LOADS: row.loads, STORES: row.stores}.get(rate, float(row.multiply_adds))
    found = model.cycles(beside_one_another(rate, target), target.arch)
    assert found == pytest.approx(count / told, rel=TOLERANCE)


def multiplies_bytes(model: PortModel) -> bool:
    """Whether the processor does, and its model knows how fast."""
    return target_of(ROWS[model.row]).multiplies_bytes and model.knows(BYTES)


KNOWN_LOOPS = [
    pytest.param(model, case, id=f"{named(model)}, {case}")
    for model in WITH_LOOPS
    for case in CASES
    if not case.startswith("bytes") or multiplies_bytes(model)
]


@pytest.mark.parametrize(("model", "case"), KNOWN_LOOPS)
def test_inner_loops_take_the_cycles_of_the_row(model: PortModel, case: str) -> None:
    """The loops of whole tiles, as machine code has them."""
    row, target = ROWS[model.row], target_of(ROWS[model.row])
    for loop in representatives(loops_of(case, target)):
        found = model.cycles(loop.text, target.arch)
        assert found == pytest.approx(row_cycles(loop, row, model), rel=LOOP_TOLERANCE), loop


@pytest.mark.parametrize("case", ["weights of f16", "weights of bf16"])
@pytest.mark.parametrize("model", WIDE_MODELS, ids=named)
def test_elements_come_from_where_the_model_says(model: PortModel, case: str) -> None:
    """Beside widened weights, elements of the other factor come from memory on Zen 4 and from
    registers elsewhere; the other form is not faster."""
    own, plain, zen4 = map(
        parse_target, (f"{WIDE}:{ROWS[model.row].tunings[0]}", WIDE, f"{WIDE}:znver4")
    )
    cycles = [
        vector_cycles(model, representatives(loops_of(case, target)), target)
        for target in (own, plain, zen4)
    ]
    assert cycles[0] <= min(cycles) * (1 + TOLERANCE)


def times(model: PortModel, sizes: tuple[int, int, int]) -> tuple[float, float]:
    """Cycles directly and by Strassen's algorithm."""
    direct, strassen = product_times(ProductSizes(*sizes), ROWS[model.row], model)
    assert strassen is not None
    return direct, strassen


def is_strassen(target: str, sizes: tuple[int, int, int]) -> bool:
    """What is chosen for a target."""
    return strassen_shape(facts_of(ProductSizes(*sizes)), parse_target(target)) is not None


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("model", WIDE_MODELS, ids=named)
def test_a_class_gets_the_method_that_its_model_calls_fastest(
    model: PortModel, sizes: tuple[int, int, int]
) -> None:
    """Within the tolerance."""
    found = times(model, sizes)
    chosen = is_strassen(f"{WIDE}:{ROWS[model.row].tunings[0]}", sizes)
    assert found[chosen] <= min(found) * (1 + TOLERANCE)


@pytest.mark.parametrize("sizes", SIZES if WIDE_MODELS else [], ids=str)
def test_processors_that_nobody_has_lose_little_by_the_default(sizes: tuple[int, int, int]) -> None:
    """A target without a class: the method is within the tolerance on all processors that nobody
    has measured, or the other one loses more on one of them."""
    unknown = [
        times(model, sizes)
        for model in WIDE_MODELS
        if not ROWS[model.row].source.startswith("measured on")
    ]
    losses = [max(found[method] / min(found) for found in unknown) for method in (0, 1)]
    chosen = is_strassen(WIDE, sizes)
    assert losses[chosen] <= max(1 + TOLERANCE, losses[not chosen])

"""One random program for each seed.

In: a seed. Out: a ``Program``, the same on every machine. Not done here: running it (``check``).
"""

from __future__ import annotations

import contextlib

import numpy as np
from tests.fuzz.drawing import Drawing, NotNowError
from tests.fuzz.ml_ops import ML_OPS
from tests.fuzz.patterns import PATTERNS
from tests.fuzz.program import Array, Program
from tests.fuzz.quantized import QUANTIZED
from tests.fuzz.single_ops import (
    EDGES,
    ELEMENTWISE,
    MOVEMENT,
    PRODUCTS,
    ROWS,
    SAFE_WITH_SPECIAL_NUMBERS,
)

_SIZES = (1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 16, 17)
_DTYPES = ("float32",) * 8 + ("float64", "float16", "int64", "int32", "int8", "uint8", "bool")
_SCALES = (1.0,) * 12 + (1e-3, 1e3, 1e15, 1e-15)
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 3e38, -3e38)
_OUTPUTS_MAX = 4
SYMBOL_SIZES = (0, 1, 2, 3, 5, 8, 17)
_LINEAR = frozenset(
    (
        "Add", "AveragePool", "Concat", "Conv", "ConvTranspose", "CumSum",
        "DepthToSpace", "Einsum", "Expand", "Flatten", "Gather",
        "Gemm", "GlobalAveragePool", "Identity", "MatMul", "Neg", "Pad",
        "ReduceMean", "ReduceSum", "Reshape", "Slice", "SpaceToDepth",
        "Split", "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Unsqueeze",
    )
)  # fmt: skip
"""Ops whose results are infinite or NaN where an infinite operand reaches them, and numbers
elsewhere."""


def generate(seed: int) -> Program:
    """A program of one to a dozen steps; about four in ten have symbolic sizes."""
    random = np.random.default_rng(seed)
    special = bool(random.random() < 0.08)
    drawing = Drawing(random, special=special)
    scale = drawing.one_of(_SCALES)
    symbolic = drawing.chance(0.4)
    for _ in range(drawing.integer(1, 3)):
        _add_input(drawing, scale, symbolic=symbolic)
    groups = (
        ELEMENTWISE, MOVEMENT, ROWS, PRODUCTS, PATTERNS, PATTERNS, QUANTIZED, EDGES, ML_OPS,
    )  # fmt: skip
    for _ in range(drawing.integer(1, 8)):
        steps = SAFE_WITH_SPECIAL_NUMBERS if special else drawing.one_of(groups)
        with contextlib.suppress(NotNowError):
            drawing.one_of(steps)(drawing)
    return _finish(drawing)


def other_call(program: Program, seed: int) -> dict[str, Array]:
    """Inputs of other sizes, where some are symbolic; of the same sizes otherwise."""
    random = np.random.default_rng([seed, 1])
    sizes = (0, 1) if random.random() < 0.25 else SYMBOL_SIZES  # nothing meets one of something
    shared = {name.split("_", 1)[0] for name in program.symbols()}
    chosen = {name: int(random.choice(sizes)) for name in sorted(shared)}
    symbols = {name: chosen[name.split("_", 1)[0]] for name in program.symbols()}
    symbols |= {name: 1 for name in sorted(symbols.keys() - shared) if random.random() < 0.3}
    inputs: dict[str, Array] = {}
    for name, array in program.inputs.items():
        shape = [symbols[dim] if isinstance(dim, str) else dim for dim in program.shapes[name]]
        source = array.reshape(-1) if array.size else np.zeros(1, array.dtype)
        inputs[name] = source[random.integers(0, source.size, shape)]
    return inputs


def call_with_infinity(program: Program, seed: int) -> dict[str, Array] | None:
    """The inputs that made the program with an infinity or NaN in one place; None where other ops
    than linear ones, or no place, would hide what it touches, and for kernels with gaps, which the
    reference fills with zeros."""
    floats = [
        name for name, array in program.inputs.items() if array.dtype.kind == "f" and array.size
    ]
    gaps = (
        each.ints for node in program.nodes for each in node.attribute if each.name == "dilations"
    )
    is_linear = {node.op_type for node in program.nodes} <= _LINEAR
    if not floats or not is_linear or any(size > 1 for sizes in gaps for size in sizes):
        return None
    random = np.random.default_rng([seed, 2])
    name = str(random.choice(floats))
    changed = program.inputs[name].copy()
    changed.reshape(-1)[random.integers(changed.size)] = random.choice(_SPECIAL[:3])
    return {**program.inputs, name: changed}


def _add_input(d: Drawing, scale: float, *, symbolic: bool) -> None:
    dtype = d.one_of(("float32", "float64", "int32", "bool")) if d.special else d.one_of(_DTYPES)
    rank = d.one_of((0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5))
    shape = [0 if d.chance(0.015) else d.one_of(_SIZES) for _ in range(rank)]
    while np.prod(shape) > 1024:
        shape[d.integer(0, rank - 1)] = d.integer(1, 3)
    if d.values and d.chance(0.5):
        shape = list(d.shape(d.one_of(list(d.values))))
    array = d.numbers(shape, dtype, 1.0 if dtype == "float16" else scale)
    if d.special and array.dtype.kind == "f" and array.size:
        places = d.random.random(array.shape) < 0.3
        array = np.where(places, d.random.choice(_SPECIAL, array.shape), array).astype(array.dtype)
    own = (
        f"_{len(d.program.inputs)}" if d.chance(0.2) else ""
    )  # what broadcasts, only the call tells
    declared = [f"n{size}{own}" if symbolic and d.chance(0.5) else size for size in shape]
    d.input(array, declared)


def _finish(d: Drawing) -> Program:
    """Outputs: what nothing uses, late ones first, and now and then something between."""
    program = d.program
    used = {name for node in program.nodes for name in node.input}
    made = [name for name in d.values if name not in program.inputs]
    sinks = [name for name in made if name not in used][-_OUTPUTS_MAX:]
    if made and d.chance(0.3):
        sinks.append(d.one_of(made))
    if not sinks:
        sinks = [d.add("Identity", next(iter(program.inputs)))]
    program.outputs = {name: d.array(name).dtype for name in dict.fromkeys(sinks)}
    return program.without_dead_parts()

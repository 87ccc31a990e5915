"""A random program while it grows: every step is checked with the reference before it is kept.

In: a numpy generator. Out: a ``Program`` whose values are all defined, moderate and well
conditioned. Not done here: which nodes to try (``single_ops``, ``patterns``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper
from tests.fuzz.program import OPSET, Array, Program, is_float
from tests.fuzz.reference import FACTOR, Value, run_node

ELEMENTS_MAX = 2048
RANK_MAX = 6
_RELATIVE_MAX = {2: 0.05, 4: 2e-3, 8: 1e-4}  # of the largest magnitude, by element size in bytes
Choice = TypeVar("Choice")


class NotNowError(Exception):
    """This step does not fit; the program stays as it was before the node that failed."""


class Drawing:
    """``values``: all that can become an operand. ``special``: NaN and infinities are welcome.
    ``rough``: so are floats that were rounded to a narrow type."""

    def __init__(self, random: np.random.Generator, *, special: bool = False) -> None:
        self.random = random
        self.special = special
        self.rough = False
        self.program = Program()
        self.values: dict[str, Value] = {}
        self._constants: dict[str, Value] = {}

    # ---- draws -----------------------------------------------------------------------------------

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return int(self.random.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        """True as often as that."""
        return bool(self.random.random() < probability)

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        """One of them; no step where there is none."""
        if not choices:
            raise NotNowError
        return choices[self.integer(0, len(choices) - 1)]

    def pick(self, wanted: Callable[[Array], bool] = lambda _: True) -> str:
        """A value of a wanted kind, late ones more often."""
        fitting = [name for name, value in self.values.items() if wanted(value.array)]
        if len(fitting) > 3 and self.chance(0.5):
            fitting = fitting[-3:]
        return self.one_of(fitting)

    def pick_float(self, rank: int | None = None) -> str:
        """A float of some rank."""
        return self.pick(lambda array: array.dtype.kind == "f" and rank in (None, array.ndim))

    def array(self, name: str) -> Array:
        """What a value or constant is in this call."""
        return (self.values.get(name) or self._constants[name]).array

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a value in this call."""
        return self.array(name).shape

    def numbers(self, shape: Sequence[int], dtype: Any, scale: float = 1.0) -> Array:
        """Random numbers of any element type."""
        kind = np.dtype(dtype)
        if kind.kind == "b":
            return self.random.random(shape) < 0.5
        if kind.kind == "f":
            return np.asarray(
                np.round(self.random.standard_normal(shape) * 64) / 64 * scale
            ).astype(kind)
        if self.chance(0.1):
            limits = np.iinfo(kind)
            return self.random.integers(limits.min, limits.max, shape, kind, endpoint=True)
        return self.random.integers(-5 if kind.kind == "i" else 0, 6, shape).astype(kind)

    # ---- growing ---------------------------------------------------------------------------------

    def input(self, array: Array, shape: Sequence[int | str]) -> str:
        """A new input."""
        name = f"x{len(self.program.inputs)}"
        self.program.inputs[name] = array
        self.program.shapes[name] = tuple(shape)
        self.values[name] = Value(array)
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        """A new constant; now and then an input instead, where it is not one that decides about
        shapes."""
        name = f"c{len(self.program.constants)}"
        self.program.constants[name] = np.asarray(array, dtype)
        self._constants[name] = Value(self.program.constants[name])
        return name

    def ints(self, *numbers: int) -> str:
        """A constant of i64."""
        return self.constant(np.array(numbers, np.int64))

    def weights(self, shape: Sequence[int], dtype: Any, scale: float = 1.0) -> str:
        """A constant of random numbers."""
        return self.constant(self.numbers(shape, dtype, scale))

    def add(
        self, op: str, *operands: str, results: int = 1, keep: bool = True, **attributes: Any
    ) -> str:
        """Add a node and return its first result; all results become operands where ``keep``."""
        return self.add_all(op, *operands, results=results, keep=keep, **attributes)[0]

    def add_all(
        self, op: str, *operands: str, results: int = 1, keep: bool = True, **attributes: Any
    ) -> list[str]:
        """Add a node and return its results.

        Raises:
            NotNowError: the reference refuses it, ONNX does not define it, or its result is of no
                use to the test.
        """
        names = [
            f"v{len(self.program.nodes)}" + (f"_{index}" if results > 1 else "")
            for index in range(results)
        ]
        if any(name and self.array(name).dtype == np.float64 for name in operands):
            attributes = {
                name: _dyadic(number)
                for name, number in {**_float_defaults(op), **attributes}.items()
            }
        node = helper.make_node(op, list(operands), names, **attributes)
        known = [
            Value(np.zeros(0)) if not name else self.values.get(name) or self._constants[name]
            for name in operands
        ]
        try:
            values = run_node(node, known)
        except Exception as error:
            raise NotNowError from error
        for value in values:
            self._check(value)
        self.program.nodes.append(node)
        for name, value in zip(names, values, strict=True):
            (self.values if keep else self._constants)[name] = value
        return names

    def _check(self, value: Value) -> None:
        array = value.array
        if array.size > ELEMENTS_MAX or array.ndim > RANK_MAX:
            raise NotNowError
        if not is_float(array) and array.dtype.kind not in "iub":
            raise NotNowError
        if not is_float(array):
            if value.bound is not None:
                raise NotNowError  # it jumps where rounding decides
            return
        finite = np.isfinite(array)
        if not self.special and not finite.all():
            raise NotNowError
        if value.bound is not None:
            size = np.abs(array[finite].astype(np.float64)).max(initial=0.0)
            most = _RELATIVE_MAX[2 if self.rough else array.dtype.itemsize]
            if (FACTOR * value.bound).max(initial=0.0) > most * size + 1e-30:
                raise NotNowError


def _float_defaults(op: str) -> dict[str, float]:
    attributes = onnx.defs.get_schema(op, OPSET, "").attributes
    return {
        name: attribute.default_value.f
        for name, attribute in attributes.items()
        if attribute.type == onnx.defs.OpSchema.AttrType.FLOAT and attribute.default_value.name
    }


def _dyadic(number: Any) -> Any:
    """A float attribute that f32, double and its decimal digits agree on: in f64 it would matter
    who reads it how."""
    return max(round(number * 64), 1) / 64 if isinstance(number, float) else number

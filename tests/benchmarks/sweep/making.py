"""Models of a few nodes whose arrays are drawn when they are wanted, with open sizes or fixed ones.

In: nodes, how each of their values is drawn, which values are stored. Out: ``Case``s by name. Not
done here: which ops (the modules of ``families``), measuring (``bench_algorithms``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper
from tests.benchmarks.single_node import Array, Case

Drawn = Callable[[np.random.Generator], Array]
Named = tuple[str, Callable[[], Case]]
Family = Callable[[], Iterator[Named]]
DTYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
    "i32": np.int32, "i64": np.int64, "bool": np.bool_,
}  # fmt: skip
OPENINGS = ("", "open")
MICROSOFT = "com.microsoft"
_VERSIONS = {"": 20, MICROSOFT: 1}


def numbers(*shape: int, dtype: str = "f32") -> Drawn:
    """Floats around 0, integers of both signs where there are such, truths."""
    return partial(_numbers, shape, dtype)


def below(most: int, *shape: int, dtype: str = "i64") -> Drawn:
    """Integers from 0."""
    return partial(_below, most, shape, dtype)


def exactly(*values: float, dtype: str = "i64") -> Drawn:
    """These numbers, as a vector."""
    return partial(_given, np.array(values, DTYPES[dtype]))


def scalar(value: float, dtype: str = "i64") -> Drawn:
    """One number."""
    return partial(_given, np.array(value, DTYPES[dtype]))


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> NodeProto:
    """Names stand between blanks; a single dot is an input that is left out."""
    names = ["" if name == "." else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), domain=domain, **attributes)


def graph(
    nodes: Sequence[NodeProto],
    values: Mapping[str, Drawn],
    outputs: str = "y",
    known: str = "",
    opening: str = "",
) -> Callable[[], Case]:
    """Several nodes. ``known``: the names of values that are stored, the others come with a call.

    ``opening``: "" for fixed sizes; "open": sizes above 4, of which equal ones have one name;
    "apart": all sizes, each with a name of its own; "batch": the first of each input; "image": all
    but the second axis of the first input.
    """

    def case() -> Case:
        generator = np.random.default_rng(zlib.crc32(" ".join(values).encode()))
        arrays = {name: draw(generator) for name, draw in values.items()}
        stored = {name: arrays.pop(name) for name in known.split()}
        made = helper.make_graph(
            nodes, "sweep", _declared(arrays, opening),
            [ValueInfoProto(name=name) for name in outputs.split()],
            [numpy_helper.from_array(array, name) for name, array in stored.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid(name, version) for name, version in _VERSIONS.items()]
        return helper.make_model(made, opset_imports=opsets, ir_version=10), arrays

    return case


def single(
    op: str,
    values: Mapping[str, Drawn],
    known: str = "",
    opening: str = "",
    outputs: str = "y",
    inputs: str = "",
    domain: str = "",
    **attributes: Any,
) -> Callable[[], Case]:
    """One node of the values in their order, unless ``inputs`` names them."""
    made = node(op, inputs or " ".join(values), outputs, domain, **attributes)
    return graph([made], values, outputs, known, opening)


def sizes(shape: Iterable[int]) -> str:
    """A shape as names of cases have it."""
    return "x".join(map(str, shape))


def named(*words: object) -> str:
    """The words of a name that are not empty."""
    return " ".join(word for word in map(str, words) if word)


def _numbers(shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> Array:
    drawn = generator.standard_normal(shape)
    if dtype == "bool":
        return np.asarray(drawn > 0)
    return (drawn if dtype.startswith("f") else np.abs(20 * drawn)).astype(DTYPES[dtype])


def _below(most: int, shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> Array:
    return generator.integers(0, most, shape).astype(DTYPES[dtype])


def _given(array: Array, _: np.random.Generator) -> Array:
    return array


def _declared(arrays: Mapping[str, Array], opening: str) -> list[ValueInfoProto]:
    return [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [_size(opening, at, name, axis, size) for axis, size in enumerate(array.shape)],
        )
        for at, (name, array) in enumerate(arrays.items())
    ]


def _size(opening: str, at: int, name: str, axis: int, size: int) -> int | str:
    """The size of one axis of an input, or its name."""
    if opening == "open" and size > 4:
        return f"n{size}"
    if opening == "apart" or (opening == "image" and at == 0 and axis != 1):
        return f"{name}{axis}"
    if opening == "batch" and axis == 0:
        return "batch"
    return size

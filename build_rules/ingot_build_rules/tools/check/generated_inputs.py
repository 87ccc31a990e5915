"""Inputs for a check of a model whose user gave none: the same numbers for everyone.

In: the graph's input types. Out: arrays. Not done here: running.

For input number t (of call c of a model with n inputs: t + c * n) and element number e, let i = t * 2**32 + e + 1 and, modulo 2**64, z = i *
0x9E3779B97F4A7C15;
z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9; z = (z ^ z >> 27) * 0x94D049BB133111EB; z = z ^ z >> 31
(SplitMix64). A float is (z >> 40) / 2**23 - 1, in [-1, 1); an integer or boolean is z >> 63, 0 or
1, since it may be an index or a mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.dims import Dim, evaluate, symbols_of
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES, f32_to_bf16
from ingot_compiler.ir.types import FLOATS, TensorType

# Open dimensions: first each its own small size, then all the same, until the model accepts them.
_EQUAL_SIZES = (1, 4, 8, 16, 32, 64, 128, 224)


def generated_inputs(graph: Graph, call: int = 0) -> Iterator[tuple[dict[str, int], list[Array]]]:
    """Yield (size of each open dimension, arrays in the order of the inputs), the preferred sizes
    first.

    Sizes that leave nothing to compute (a tensor of the graph would have no elements) are left out.
    """
    types = [graph.types[value] for value in graph.inputs]
    for sizes in _sizes(types):
        if all(
            _is_positive(dim, sizes) for tensor_type in graph.types for dim in tensor_type.shape
        ):
            yield (
                sizes,
                [
                    _generated(number, tensor_type, sizes)
                    for number, tensor_type in enumerate(types, call * len(types))
                ],
            )


def _sizes(types: list[TensorType]) -> Iterator[dict[str, int]]:
    names = tuple(
        dict.fromkeys(
            name for tensor_type in types for dim in tensor_type.shape for name in symbols_of(dim)
        )
    )
    if not names:
        yield {}
        return
    yield {name: 2 + position for position, name in enumerate(names)}
    for size in _EQUAL_SIZES:
        yield dict.fromkeys(names, size)


def _is_positive(dim: Dim, sizes: Mapping[str, int]) -> bool:
    try:
        return evaluate(dim, sizes) > 0
    except KeyError:  # only known at run time
        return True


def _generated(number: int, tensor_type: TensorType, sizes: Mapping[str, int]) -> Array:
    shape = [evaluate(dim, sizes) for dim in tensor_type.shape]
    bits = splitmix(number, int(np.prod(shape, dtype=np.int64))).reshape(shape)
    if tensor_type.dtype not in FLOATS:
        return np.asarray((bits >> np.uint64(63)).astype(STORAGE_DTYPES[tensor_type.dtype]))
    numbers = (bits >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0
    if tensor_type.dtype == "bf16":
        return f32_to_bf16(numbers.astype(np.float32))
    return np.asarray(numbers.astype(STORAGE_DTYPES[tensor_type.dtype]))


def splitmix(number: int, count: int) -> npt.NDArray[np.uint64]:
    """The bits for ``count`` elements of input ``number``."""
    z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(number << 32)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))

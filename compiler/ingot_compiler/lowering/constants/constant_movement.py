"""Data movement on constants: views wherever numpy can, copies where it must.

In: arrays, attributes, the result's shape. Out: an array, often a view of an operand. Not done
here: arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attribute,
    Attributes,
    attribute_dtype,
    attribute_int,
    attribute_ints,
    attribute_str,
)
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES

Movement = Callable[[Sequence[Array], Attributes, tuple[int, ...]], Array]

_TILE = 32  # rows and columns of a tile of a transposed copy: both sides stay in the first cache


def dense(array: Array) -> Array:
    """A row-major array with the same elements, itself when it already is one."""
    if array.flags.c_contiguous:
        return array
    if array.ndim < 2 or array.size < _TILE * _TILE:
        return array.copy(order="C")
    result: Array = np.empty(array.shape, array.dtype)
    _copy_tiled(result, array)
    return result


def _copy_tiled(target: Array, source: Array) -> None:
    """Copy in tiles over the two axes where source and target are contiguous: a plain copy strides
    through one."""
    fast = min(range(source.ndim), key=lambda axis: (abs(source.strides[axis]) or 1 << 62, -axis))
    if fast == source.ndim - 1:
        target[...] = source
        return
    moved_source, moved_target = (np.moveaxis(array, fast, -2) for array in (source, target))
    for row in range(0, moved_source.shape[-2], _TILE):
        for column in range(0, moved_source.shape[-1], _TILE):
            tile = (..., slice(row, row + _TILE), slice(column, column + _TILE))
            moved_target[tile] = moved_source[tile]


def _reshape(operands: Sequence[Array], _attributes: Attributes, shape: tuple[int, ...]) -> Array:
    return dense(operands[0]).reshape(shape)


def _transpose(operands: Sequence[Array], attributes: Attributes, _shape: tuple[int, ...]) -> Array:
    return operands[0].transpose(attribute_ints(attributes, "permutation"))


def _slice(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    starts, steps = attribute_ints(attributes, "starts"), attribute_ints(attributes, "steps")
    return operands[0][tuple(_range(*item) for item in zip(starts, shape, steps, strict=True))]


def _range(start: int, count: int, step: int) -> slice:
    end = start + count * step
    return slice(start, end if end >= 0 else None, step) if count else slice(0, 0)


def _concat(operands: Sequence[Array], attributes: Attributes, _shape: tuple[int, ...]) -> Array:
    return np.concatenate(operands, axis=attribute_int(attributes, "axis"))


def _pad(operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]) -> Array:
    widths = list(
        zip(attribute_ints(attributes, "before"), attribute_ints(attributes, "after"), strict=True)
    )
    if not widths:
        return operands[0]
    mode: Attribute = attribute_str(attributes, "mode")
    if mode == "constant":
        result: Array = np.full(shape, operands[1], operands[0].dtype)
        result[
            tuple(
                slice(low, low + dim)
                for (low, _), dim in zip(widths, operands[0].shape, strict=True)
            )
        ] = operands[0]
        return result
    return np.pad(
        operands[0],
        widths,
        "edge" if mode == "edge" else "reflect" if mode == "reflect" else "wrap",
    )


def _broadcast_to(
    operands: Sequence[Array], _attributes: Attributes, shape: tuple[int, ...]
) -> Array:
    return np.broadcast_to(operands[0], shape)


def _gather(operands: Sequence[Array], attributes: Attributes, _shape: tuple[int, ...]) -> Array:
    axis = attribute_int(attributes, "axis")
    return np.take(operands[0], _checked(operands[1], operands[0].shape[axis]), axis)


def _checked(indices: Array, length: int) -> Array:
    """Indices counted from the front."""
    if indices.size and not (-length <= int(indices.min()) and int(indices.max()) < length):
        raise ModelError(
            "a constant index is out of range",
            where="gather of constants",
            why=f"expected -{length} <= index < {length}, got {indices.min()} to {indices.max()}",
            do="correct the indices in the model",
        )
    wide = indices.astype(np.int64)
    return np.where(wide < 0, wide + length, wide)


def _gather_elements(
    operands: Sequence[Array], attributes: Attributes, shape: tuple[int, ...]
) -> Array:
    axis = attribute_int(attributes, "axis")
    x = operands[0]
    kept = tuple(
        slice(None) if position == axis else slice(size) for position, size in enumerate(shape)
    )
    return np.take_along_axis(x[kept], _checked(operands[1], x.shape[axis]), axis)


def _select(operands: Sequence[Array], _attributes: Attributes, _shape: tuple[int, ...]) -> Array:
    return np.where(operands[0], operands[1], operands[2])


def _copy(operands: Sequence[Array], _attributes: Attributes, _shape: tuple[int, ...]) -> Array:
    return operands[0]


def _bit_cast(operands: Sequence[Array], attributes: Attributes, _shape: tuple[int, ...]) -> Array:
    return operands[0].view(STORAGE_DTYPES[attribute_dtype(attributes)])


def _argsort(operands: Sequence[Array], _attributes: Attributes, shape: tuple[int, ...]) -> Array:
    order = np.argsort(operands[0], axis=-1, kind="stable").astype(np.int64)
    return order[..., : shape[-1]]


MOVEMENT: Mapping[str, Movement] = {
    "argsort": _argsort,
    "bit_cast": _bit_cast,
    "copy": _copy,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "broadcast_to": _broadcast_to,
    "gather": _gather,
    "gather_elements": _gather_elements,
    "select": _select,
}

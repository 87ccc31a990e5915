"""The graph under construction, and what the frontend has learnt of its values.

In: a builder, a reader of constants. Out: ``Translation``, which all nodes of a model share. Not
done here: what is made of one node (``context``), what follows from known values
(``known_values``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from ingot_compiler.frontend.build.custom_op import CustomOp
from ingot_compiler.frontend.build.known_values import DeferredValue, KnownValues, as_known_values
from ingot_compiler.frontend.build.values import Value
from ingot_compiler.frontend.inputs.same_names import SameNames
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.types import LOW_BITS, DType, TensorType, dtype_size_bytes
from ingot_runtime.lazy_dataclass import dataclass

_VALUE_MAX = -2  # greatest id of a value that is no tensor; -1 is an absent result


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """A dequantized matrix: its numbers, scales and zero points, one for ``block`` numbers along
    ``axis`` of the matrix as it is stored, or, where ``block`` is 0, one for each place of ``axis``
    or for all; ``is_turned``: it was transposed since."""

    numbers: int
    scale: int
    zero: int | None
    axis: int
    block: int
    is_turned: bool = False


@dataclass(slots=True)
class Translation:
    """The graph built so far, what is known of its values, and where constants are read.

    ``stored``: constants of integers, which may be indices or zero points; ``local``: constants of
    function bodies, by a name of their own; ``makers``: a size that is known at run time only ->
    the nodes that compute it; ``block_weights``: matrices that are scaled in blocks
    or columns; ``dequantized``: floats made of 8-bit integers;
    ``same_names``: which dimensions of inputs are one size; ``seed``: the input from which random
    numbers come; ``values``: those that are no tensors; ``custom_ops``: definitions of the user by
    domain and name; ``declared``: sizes that the file gives of tensors, by their
    ordinals; ``inferred``: the result of an op without attributes, or of a cast, for
    operands of some types that need no change.
    """

    builder: GraphBuilder
    read: ConstantReader
    known_values: dict[int, KnownValues | DeferredValue] = field(
        default_factory=dict[int, KnownValues | DeferredValue]
    )
    dims_read: dict[tuple[int, int], Dim] = field(default_factory=dict[tuple[int, int], Dim])
    stored: dict[int, ConstantSource] = field(default_factory=dict[int, ConstantSource])
    local: dict[str, memoryview] = field(default_factory=dict[str, memoryview])
    block_weights: dict[int, BlockWeights] = field(default_factory=dict[int, BlockWeights])
    dequantized: set[int] = field(default_factory=set[int])
    same_names: SameNames = field(default_factory=SameNames)
    custom_ops: Mapping[tuple[str, str], CustomOp] = field(
        default_factory=dict[tuple[str, str], CustomOp]
    )
    declared: Mapping[int, tuple[int | None, ...]] = field(
        default_factory=dict[int, tuple[int | None, ...]]
    )
    seed: int | None = None
    values: dict[int, Value] = field(default_factory=dict[int, Value])
    makers: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    inferred: dict[tuple[object, ...], TensorType] = field(
        default_factory=dict[tuple[object, ...], TensorType]
    )

    def fresh_symbols(self, count: int, source: tuple[int, ...]) -> tuple[str, ...]:
        """Names that no other size of the graph or of a region has; ``source``: the nodes that
        compute the sizes."""
        # Not s.., the sizes of inputs, nor a letter and a number, which loop programs call their
        # variables.
        names = tuple(f"size{len(self.makers) + number}" for number in range(count))
        self.makers.update(dict.fromkeys(names, source))
        return names

    def add_value(self, value: Value) -> int:
        """The id of a value that is no tensor."""
        number = _VALUE_MAX - len(self.values)
        self.values[number] = value
        return number

    def elements(self, source: ConstantSource) -> npt.NDArray[np.generic]:
        """The elements of a constant of the model or of a function body, flat; bf16 as f32."""
        local = self.local.get(source.weight)
        return decode(self.read(source.weight) if local is None else local, source.type.dtype)

    def known_floats(self, source: ConstantSource) -> KnownValues:
        """The elements of a constant of floats, in its shape."""
        shape = tuple(dim for dim in source.type.shape if isinstance(dim, int))
        return as_known_values([float(item) for item in self.elements(source).tolist()], shape)


def decode(data: memoryview, dtype: DType) -> npt.NDArray[np.generic]:
    """The elements of a dense little-endian tensor, flat; bf16 as f32, low-bit types as their
    bits."""
    if dtype == "bf16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype in LOW_BITS:
        return np.frombuffer(data, np.uint8)
    kind = {"f": "f", "i": "i", "u": "u", "b": "u"}[dtype[0]]
    return np.frombuffer(data, np.dtype(f"<{kind}{dtype_size_bytes(dtype)}"))

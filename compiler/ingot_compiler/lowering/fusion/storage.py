"""Buffers, and the value that each holds: the part of fusion that owns them.

In: types, orders of axes, views. Out: ``Stored``, the buffers and constants of the fused graph. Not
done here: which layout (``layout``), kernels and copies (``fuser``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fusion.layout import Halo
from ingot_compiler.lowering.groups.fused import BufferSpec, View
from ingot_compiler.lowering.groups.views import dense_view, haloed_view
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Stored:
    """A value in a buffer."""

    buffer: int
    view: View


@dataclass(frozen=True, slots=True)
class Places:
    """What is stored where at one moment; ``images``: values of which a channels-last form is
    there; ``copies``: values of which a row-major copy is."""

    values: dict[int, Stored]
    images: dict[int, Stored]
    copies: dict[int, Stored]


class Storage:
    """Buffers, in order, and the places of values."""

    def __init__(self, inputs: Sequence[tuple[int, TensorType]]) -> None:
        """Inputs are buffers already: (value, type) of each."""
        self._buffers: list[BufferSpec] = []
        self._constants: list[Graph] = []
        self._constant_buffers: dict[tuple[Graph, int], int] = {}
        self._grown: set[int] = set()
        self._places = Places({}, {}, {})
        for position, (value, tensor_type) in enumerate(inputs):
            buffer = self.add(
                BufferSpec("input", tensor_type.dtype, tensor_type.element_count, position)
            )
            self.put(value, Stored(buffer, dense_view(tensor_type.shape)))

    @property
    def buffers(self) -> tuple[BufferSpec, ...]:
        """All buffers so far."""
        return tuple(self._buffers)

    @property
    def constants(self) -> tuple[Graph, ...]:
        """The expressions that fill the constant buffers."""
        return tuple(self._constants)

    def spec(self, buffer: int) -> BufferSpec:
        """One buffer."""
        return self._buffers[buffer]

    def add(self, spec: BufferSpec, *, grows: bool = False) -> int:
        """Append a buffer; the room of one that ``grows`` is made by a step."""
        self._buffers.append(spec)
        if grows:
            self._grown.add(len(self._buffers) - 1)
        return len(self._buffers) - 1

    def grows(self, buffer: int) -> bool:
        """Whether a step makes the buffer's room."""
        return buffer in self._grown

    def become_output(self, buffer: int, position: int) -> None:
        """Let a workspace buffer be the graph's output at ``position``."""
        spec = self._buffers[buffer]
        self._buffers[buffer] = BufferSpec("output", spec.dtype, spec.element_count, position)

    def workspace(
        self, tensor_type: TensorType, order: Sequence[int], device: int, halo: Halo | None = None
    ) -> Stored:
        """A new workspace buffer on a device for a tensor stored in ``order``."""
        none = (0,) * tensor_type.rank
        before, after = (halo.before, halo.after) if halo else (none, none)
        view, count = haloed_view(tensor_type.shape, order, before, after)
        return Stored(
            self.add(BufferSpec("workspace", tensor_type.dtype, count, device=device)), view
        )

    def constant(self, expression: Graph, device: int) -> Stored:
        """A folded expression, dense; equal expressions on one device share a buffer."""
        tensor_type = expression.types[expression.outputs[0]]
        key = expression, device
        if key not in self._constant_buffers:
            spec = BufferSpec(
                "constant",
                tensor_type.dtype,
                tensor_type.element_count,
                len(self._constants),
                device,
            )
            self._constants.append(expression)
            self._constant_buffers[key] = self.add(spec)
        return Stored(self._constant_buffers[key], dense_view(tensor_type.shape))

    # ---- places of values ------------------------------------------------------------------------

    def find(self, value: int) -> Stored | None:
        """Where a value lies, if it does."""
        return self._places.values.get(value)

    def put(self, value: int, stored: Stored) -> None:
        """Say where a value lies."""
        self._places.values[value] = stored

    def find_image(self, value: int) -> Stored | None:
        """Where the value lies channels-last with the zeros that its users need, if it does."""
        return self._places.images.get(value)

    def put_image(self, value: int, stored: Stored) -> None:
        """Say where the channels-last form of a value lies."""
        self._places.images[value] = stored

    def find_copy(self, value: int) -> Stored | None:
        """Where a row-major copy of the value lies, if there is one."""
        return self._places.copies.get(value)

    def put_copy(self, value: int, stored: Stored) -> None:
        """Say where a row-major copy of a value lies."""
        self._places.copies[value] = stored

    def places(self) -> Places:
        """What is stored where now."""
        places = self._places
        return Places(dict(places.values), dict(places.images), dict(places.copies))

    def forget_since(self, places: Places) -> None:
        """Go back to what was stored where at an earlier moment."""
        self._places = places

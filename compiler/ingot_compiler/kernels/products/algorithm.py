"""An algorithm for products, and the facts by which one is chosen.

In: nothing. Out: ``ProductFacts``, ``Wishes``, ``Algorithm``. Not done here: finding the facts (``facts``),
the algorithms (a file each), the choice among them (``choose``).
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Operand, View
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_runtime.lazy_dataclass import dataclass

PANELS, BYTE_PANELS, TURNED, ONE_COLUMN = "panels", "byte_panels", "turned", "one_column"
"""How a second factor lies: packed, one that the compiler knows; packed, of products of bytes; in
columns, as somebody made it; in one column, by which rows are multiplied."""


@dataclass(frozen=True, slots=True)
class ProductFacts:
    """A matrix product or convolution: its node, the types of its factors and result.

    ``x_view``: how the first factor lies if it is stored, and in no channels-last form;
    ``w_view``: how the second one does if it is stored.
    ``is_dense``: few of its elements can be zero. ``becomes_output``: nothing but elementwise ops
    and blocks of pixels stands between the result and the graph's outputs. ``has_byte_weights``: the second factor is
    bytes that are widened and shifted. ``image``: how the first factor was laid out for those
    that ask; ``lies_alone``: all memory from its first pixel to the last one is its own.
    """

    node: Node
    x: TensorType
    weights: TensorType
    result: TensorType
    has_constant_weights: bool
    x_view: View | None = None
    is_dense: bool = False
    becomes_output: bool = False
    has_byte_weights: bool = False
    image: Operand | None = None
    lies_alone: bool = False
    w_view: View | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user allows for a product: its precision, speed or size; the method that was
    measured to be best for this layer, or the one that is requested for all layers that can use
    it."""

    precision: str
    optimize: str
    of_layer: str | None = None
    of_all: str | None = None


Offer = Callable[[ProductFacts, Wishes, KernelTarget], Method | None]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One way to compute products: the kinds of its kernels, and the method that it offers; None
    where it cannot serve or costs more than those behind it. ``reads_layout``: how the first factor
    lies decides, which must be laid out before."""

    kinds: tuple[Kind, ...]
    offer: Offer
    reads_layout: bool = False

    def __contains__(self, kind: str) -> bool:
        """Whether a kind of kernel is one of its own."""
        return any(each.name == kind for each in self.kinds)


def widens_bytes(facts: ProductFacts, target: KernelTarget) -> bool:
    """Whether kernels read a matrix of bytes; units that share memory bring it there in f32."""
    return facts.has_byte_weights and target.team_units == 1

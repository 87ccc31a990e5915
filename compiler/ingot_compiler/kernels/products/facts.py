"""The facts that decide how a product is computed, as fusion knows them.

In: a node, the fuser. Out: ``ProductFacts``, ``Wishes``. Not done here: the choice (``choose``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.kernels.packing import packing
from ingot_compiler.kernels.products.algorithm import ProductFacts, Wishes
from ingot_compiler.kernels.products.dense_values import is_dense
from ingot_compiler.kernels.products.tuned import METHODS_OF, no_method_error
from ingot_compiler.kernels.tiles import sum_dtype
from ingot_compiler.lowering.fusion.deferred import Leaf
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.layout import channels_last
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.groups.fused import Operand
from ingot_compiler.lowering.groups.views import dense_view
from ingot_compiler.lowering.kernel_target import KernelTarget


def facts_of(fuser: Fuser, node: Node, weights: int = 1) -> ProductFacts:
    """The facts of a product whose second factor is operand ``weights``."""
    values, x, w, result = fuser.values, node.operands[0], node.operands[weights], node.results[0]
    stored = fuser.storage.find(x) if fuser.storage.find_image(x) is None else None
    stored_w = fuser.storage.find(w)
    return ProductFacts(
        node,
        values.type_of(x),
        values.type_of(w),
        values.type_of(result),
        values.is_constant(w),
        stored.view if stored else None,
        is_dense(values, x),
        _becomes_output(values, result),
        node.op == "matmul" and _has_byte_weights(values, node),
        w_view=stored_w.view if stored_w else None,
    )


def with_image(facts: ProductFacts, fuser: Fuser, image: Leaf) -> ProductFacts:
    """The facts of a convolution whose first factor is laid out as ``image``."""
    lies_alone = _lies_alone(fuser, facts.node.operands[0], image[1])
    return replace(facts, image=operand_of(fuser.values, image), lies_alone=lies_alone)


def wishes_of(fuser: Fuser, node: Node) -> Wishes:
    """What the user wants of it; a method that is wanted for all layers concerns those of its op.

    Raises:
        UserError: a method that is for another op.
    """
    known, of_all = METHODS_OF.get(node.op, ()), fuser.methods.of_all
    of_layer = fuser.methods.of(node)
    if of_layer is not None and known and of_layer not in known:
        raise no_method_error(node, of_layer, known)
    return Wishes(
        fuser.precision,
        fuser.optimize,
        of_layer if known else None,
        of_all if of_all in known else None,
    )


def target_of(fuser: Fuser, node: Node) -> KernelTarget:
    """What computes a node."""
    return fuser.targets[fuser.values.device_of(node.results[0])]


def operand_of(values: FusionValues, leaf: Leaf) -> Operand:
    """A leaf as the kernel reads it."""
    value, stored = leaf
    return Operand(value, values.type_of(value), stored.buffer, stored.view)


def _becomes_output(values: FusionValues, value: int) -> bool:
    """Whether all that comes of a value are graph outputs, through elementwise ops and reshapes,
    and transposes of axes that a reshape made of its own, as of blocks of pixels."""
    rank, seen, waiting = values.type_of(value).rank, {value}, [value]
    while waiting:
        for user in values.users(waiting.pop()):
            is_split = values.type_of(user.operands[0]).rank > rank
            is_moved = user.op == "reshape" or (user.op == "transpose" and is_split)
            if not is_moved and Trait.ELEMENTWISE not in OPS_BY_NAME[user.op].traits:
                return False
            waiting += [result for result in user.results if result not in seen]
            seen.update(user.results)
    return True


def _has_byte_weights(values: FusionValues, node: Node) -> bool:
    """Whether a product in f32 is by a matrix of bytes."""
    x, w = node.operands[:2]
    if not values.is_constant(w) or values.type_of(w).rank != 2:
        return False
    if sum_dtype(values.type_of(x).dtype) != "f32":
        return False
    return packing.bytes_and_addends(values.expression(w)) is not None


def _lies_alone(fuser: Fuser, value: int, image: Stored) -> bool:
    """Whether all memory from the first pixel of an image to the last one is the image's own, so
    that it has been written when the image has."""
    if fuser.storage.find_image(value) == image:
        return True
    shape = fuser.values.type_of(value).shape
    wanted = dense_view(shape, channels_last(len(shape))).strides
    strides = zip(shape, image.view.strides, wanted, strict=True)
    return all(size == 1 or have == want for size, have, want in strides)

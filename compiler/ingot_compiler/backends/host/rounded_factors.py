"""Which products round their factors to bf16, and the rounded values.

In: a node, the fuser. Out: whether it rounds, a value of bf16. Not done here: weights
(``packed_weights``), the products themselves (``kinds``).

With ``--precision bf16`` the products of f32 by constant weights do that, by matrices and in
convolutions. Those by Winograd's algorithm are of f32, where they are faster, and so are depthwise
ones, whose time goes elsewhere.
"""

from __future__ import annotations

from ingot_compiler.backends.host.method_of_conv import winograd_shape
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.precision import BF16
from ingot_compiler.lowering.fusion.fuser import Fuser

_ROUNDED = ("f32", "bf16")


def rounds_factors(fuser: Fuser, node: Node) -> bool:
    """Whether the products of a node are of bf16."""
    values = fuser.values
    if fuser.precision != BF16 or node.op not in ("matmul", "conv"):
        return False
    (x, w), (result,) = node.operands[:2], node.results
    is_fit = values.is_constant(w) and values.type_of(x).dtype in _ROUNDED
    if not is_fit or not fuser.targets[values.device_of(result)].multiplies_bf16:
        return False
    if node.op == "matmul":
        return values.type_of(w).rank == 2
    is_depthwise = node.integer("groups") != 1 and values.type_of(w).shape[1] == 1
    return not is_depthwise and winograd_shape(fuser, node) is None


def rounded(fuser: Fuser, index: int, value: int) -> int:
    """The value in bf16, made once for all products that round it, and by the kernel that computes
    the value where nobody else reads it."""
    values = fuser.values
    if values.type_of(value).dtype == "bf16":
        return value
    made = values.converted(value, "bf16")
    if made is not None and (fuser.deferred(made) or fuser.storage.find(made)):
        return made
    users = sum(rounds_factors(fuser, user) for user in values.users(value))
    result = values.add_converted(value, "bf16", users)
    attributes, source = make_attributes({"dtype": "bf16"}), values.node(index).source
    cast = values.add_node(Node("cast", (value,), (result,), attributes, (), source))
    part = fuser.absorb(value, values.type_of(value).shape, anchor_allowed=True)
    if part is None:
        fuser.defer(cast, [], [fuser.leaf(value)])
    else:
        fuser.defer(cast, [part], [])
    return result

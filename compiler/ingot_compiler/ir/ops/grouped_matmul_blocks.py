"""``grouped_matmul_blocks(a, groups, q, scale[, zero]){bits, block, signed, rounded}``: each row by
the matrix that its group names, of 4- or 8-bit integers that are scaled in blocks (QMoE of ONNX
Runtime).

In: a f32 [P, K]; groups i64 [P] as in ``grouped_matmul``; of q, scale and zero those of
``matmul_blocks`` for each group: [G, N, ..]. Out: f32 [P, N]. Not done here: lowering; a K that
blocks do not divide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.ops.grouped_matmul import GROUPS, nearest_group
from ingot_compiler.ir.ops.matmul_blocks import OP as MATMUL_BLOCKS
from ingot_compiler.ir.rules.make_shape_constraints import elements_along, equal, sizes_of
from ingot_compiler.ir.rules.typing_rules import require_dtype, require_operands, require_rank
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_operands(types, 4, 5)
    a, groups, *weights = types
    require_dtype(groups, GROUPS)
    require_rank(a, 2)
    require_rank(groups, 1)
    for tensor in weights:
        require_rank(tensor, 3)
    counts = {tensor.shape[0] for tensor in weights}
    require(len(counts) == 1, "as many groups of each", weights[0])
    matrices = [TensorType(tensor.dtype, tensor.shape[1:]) for tensor in weights]
    found = MATMUL_BLOCKS.infer((a, *matrices), attributes)
    rows = equal("rows and groups", sizes_of(types, 0)[0], sizes_of(types, 1)[0])
    picked = elements_along(weights[0].shape[0], found.results[0].shape)
    return Inferred(found.results, (rows, *picked))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    a, groups, *weights = operands
    of_rows = nearest_group(groups, len(weights[0]))
    result = np.zeros((len(a), weights[0].shape[1]), np.float32)
    for group in np.unique(of_rows):
        own = [a[of_rows == group], *(tensor[group] for tensor in weights)]
        result[of_rows == group] = MATMUL_BLOCKS.reference(own, attributes)[0]
    return (result,)


OP = CoreOp("grouped_matmul_blocks", _infer, _reference, traits=Trait.DENSE)

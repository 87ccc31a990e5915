"""The core ops: the only ops of a graph. One file per op; ``op_names`` lists them, one line each.

In: the names. Out: ``OPS``, ``OPS_BY_NAME``. Not done here: lowering (``lowering/ops``),
translation from ONNX.
"""

from importlib import import_module
from keyword import iskeyword

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.op_names import OP_NAMES, OpName


def _load(name: OpName) -> CoreOp:
    op: CoreOp = import_module(f"{__name__}.{name}{'_' if iskeyword(name) else ''}").OP
    assert op.name == name
    return op


OPS: tuple[CoreOp, ...] = tuple(map(_load, OP_NAMES))
OPS_BY_NAME: dict[OpName, CoreOp] = {op.name: op for op in OPS}

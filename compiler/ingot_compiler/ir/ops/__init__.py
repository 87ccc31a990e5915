"""The core ops: the only ops of a graph. One file per op; ``op_names`` lists them, one line each.

In: the names. Out: ``OPS_BY_NAME``. Not done here: lowering (``lowering/ops``), translation from
ONNX.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from keyword import iskeyword

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.op_names import OP_NAMES, OpName


class _Ops(Mapping[OpName, CoreOp]):
    """Each op is loaded when it is first asked for: a graph has few of them."""

    def __getitem__(self, name: OpName) -> CoreOp:
        return _load(name)

    def __iter__(self) -> Iterator[OpName]:
        return iter(OP_NAMES)

    def __len__(self) -> int:
        return len(OP_NAMES)


@cache
def _load(name: OpName) -> CoreOp:
    if name not in OP_NAMES:
        raise KeyError(name)
    op: CoreOp = import_module(f"{__name__}.{name}{'_' if iskeyword(name) else ''}").OP
    assert op.name == name
    return op


OPS_BY_NAME: Mapping[OpName, CoreOp] = _Ops()

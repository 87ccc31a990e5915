"""The core ops: the only ops of a graph. Ops that one reads together are rows of one module, and an
op with much of its own has a module; ``op_names`` lists them, one line each.

In: the names. Out: ``OPS_BY_NAME``. Not done here: lowering (``lowering/ops``), translation from
ONNX.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.op_names import MODULES, OP_NAMES, OpName


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
    return _rows_of(MODULES[name])[name]


@cache
def _rows_of(module: str) -> dict[str, CoreOp]:
    ops: tuple[CoreOp, ...] = import_module(f"{__name__}.{module}").OPS
    return {op.name: op for op in ops}


OPS_BY_NAME: Mapping[OpName, CoreOp] = _Ops()

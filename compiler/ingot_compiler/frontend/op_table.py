"""Every op that Ingot translates, by its domain and name.

In: the lists of the folders of ops. Out: ``OPS``, ``NEWEST``. Not done here: what a node must look
like (``op_schemas``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from ingot_compiler.frontend import ops
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops import microsoft, ml, training

OpKey = tuple[str, str]
"""Domain ("" is ONNX's) and name."""

_TRAINING = "ai.onnx.preview.training"
NEWEST = {"com.microsoft": 1, "ai.onnx.ml": 5, _TRAINING: 1}
"""Domain beside ONNX's -> its newest opset whose ops are known."""

_MODULES = (
    {("", name): file for name, file in ops.FILES.items()}
    | {
        ("" if name in microsoft.IN_ONNX_DOMAIN else "com.microsoft", name): f"microsoft.{file}"
        for name, file in microsoft.FILES.items()
    }
    | {("ai.onnx.ml", name): f"ml.{file}" for name, file in ml.FILES.items()}
    | {(_TRAINING, name): f"training.{file}" for name, file in training.FILES.items()}
)


class _Ops(Mapping[OpKey, OnnxOp]):
    """A module of ops is loaded when one of them is first asked for: a model has few."""

    def __getitem__(self, key: OpKey) -> OnnxOp:
        return _rows_of(_MODULES[key])[key[1]]

    def __iter__(self) -> Iterator[OpKey]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


@cache
def _rows_of(module: str) -> dict[str, OnnxOp]:
    ops: tuple[OnnxOp, ...] = import_module(f"ingot_compiler.frontend.ops.{module}").OPS
    return {op.name: op for op in ops}


OPS: Mapping[OpKey, OnnxOp] = _Ops()


def names_of(domain: str) -> list[str]:
    """The ops of one domain that are translated, in the order of their list."""
    return [name for own, name in OPS if own == domain]

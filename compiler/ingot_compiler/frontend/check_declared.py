"""What the file says of the model's outputs, against what its nodes compute.

In: an ``ImportedModel``, the types of its outputs. Out: nothing, or ``ModelError``. Not done here:
the types (``infer_types``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.imported import DeclaredType, ImportedModel
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.message import NodeRef, OutputRef, message
from ingot_compiler.ir.types import TensorType


def check_declared(model: ImportedModel, types: Sequence[TensorType]) -> None:
    """Raise ModelError for the first output whose declared type contradicts its computed one."""
    makers = {
        result: ordinal for ordinal, node in enumerate(model.nodes) for result in node.results
    }
    outputs = zip(model.outputs, model.declared, types, strict=True)
    for position, (ordinal, declared, type_) in enumerate(outputs):
        if _contradicts(declared, type_):
            of_node = (" of ", NodeRef(makers[ordinal])) if ordinal in makers else ()
            where = message(OutputRef(position), *of_node)
            expected = f"expected {_declared_text(declared)} as the model declares, got "
            what, do = "an output contradicts its declared type", "export the model again"
            raise ModelError(what, where, message(expected, type_), do)


def _declared_text(declared: DeclaredType) -> str:
    sizes = (
        None if declared.shape is None else ["?" if dim is None else dim for dim in declared.shape]
    )
    return f"{declared.dtype or 'any type'} {'any shape' if sizes is None else sizes}"


def _contradicts(declared: DeclaredType, type_: TensorType) -> bool:
    if declared.dtype not in (None, type_.dtype):
        return True
    if declared.shape is None:
        return False
    if len(declared.shape) != type_.rank:
        return True
    pairs = zip(declared.shape, type_.shape, strict=True)
    return any(
        isinstance(size, int) and isinstance(got, int) and size != got for size, got in pairs
    )

"""What the file says of types, against what its nodes compute.

In: an ``ImportedModel``, the types of its tensors. Out: what the file contradicts, as texts for
warnings, or ``ModelError`` for an output of another element type. Not done here: the types
(``infer_types``), the names in the texts (``in_names``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ingot_compiler.frontend.model.imported import DeclaredType, ImportedModel
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.message import NodeRef, OutputRef, Text, message
from ingot_compiler.ir.types import TensorType


def check_declared(model: ImportedModel, types: Mapping[int, TensorType]) -> Iterator[Text]:
    """Yield one text for each output, and one for all tensors inside whose shape is not the declared
    one; ``types``: tensor ordinal -> computed type.

    Raises:
        ModelError: an output has another element type than the file declares: who calls the model
            relies on that.
    """
    makers = {
        result: NodeRef(ordinal)
        for ordinal, node in enumerate(model.nodes)
        for result in node.results
    }
    for position, (ordinal, declared) in enumerate(zip(model.outputs, model.declared, strict=True)):
        if ordinal not in types:
            continue  # no tensor
        maker = makers.get(ordinal)
        where = message(OutputRef(position), *((" of ", maker) if maker else ()))
        _check_dtype(declared, types[ordinal], where)
        if _contradicts(declared, types[ordinal]):
            yield message(where, _both(declared, types[ordinal]), _GOES_ON)
    inside = [
        (ordinal, declared)
        for ordinal, declared in model.declared_inside
        if ordinal in types and _contradicts(declared, types[ordinal])
    ]
    if inside:
        ordinal, declared = inside[0]
        others = f" (and so of {len(inside) - 1} more tensors)" if len(inside) > 1 else ""
        where = message("a result of ", makers[ordinal])
        yield message(where, _both(declared, types[ordinal]), others, _GOES_ON)


_GOES_ON = "; the model runs by what is computed"


def _check_dtype(declared: DeclaredType, type_: TensorType, where: Text) -> None:
    if declared.dtype not in (None, type_.dtype):
        expected = f"expected {_declared_text(declared)} as the model declares, got "
        what, do = "an output contradicts its declared type", "export the model again"
        raise ModelError(what, where, message(expected, type_), do)


def _both(declared: DeclaredType, type_: TensorType) -> Text:
    return message(f": the model declares {_declared_text(declared)}, its nodes compute ", type_)


def _declared_text(declared: DeclaredType) -> str:
    sizes = (
        ".."
        if declared.shape is None
        else ", ".join("?" if dim is None else str(dim) for dim in declared.shape)
    )
    return f"{declared.dtype or 'any type '}[{sizes}]"


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

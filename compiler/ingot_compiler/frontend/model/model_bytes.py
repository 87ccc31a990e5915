"""A changed model as bytes: with further outputs, without what nothing reads.

In: ``ModelProto``s. Out: bytes. Not done here: the changes (``quantize_model``, ``calibrated``).
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import ModelProto, helper

from ingot_compiler.frontend.model.sort_nodes import regions_of
from ingot_compiler.ir.errors import ModelError

_SIZE_BYTES_MAX = (1 << 31) - 1


def with_outputs(model: ModelProto, names: Iterable[str]) -> bytes:
    """The model with further outputs, by the names of tensors."""
    probe = ModelProto()
    probe.CopyFrom(model)
    known = {value.name for value in probe.graph.output}
    for name in dict.fromkeys(names):
        if name not in known:
            probe.graph.output.append(helper.make_empty_tensor_value_info(name))
    return model_bytes(probe)


def drop_unread(model: ModelProto) -> None:
    """Leave out the initializers that nothing reads any more."""
    graph = model.graph
    if any(map(regions_of, graph.node)):
        return  # a branch may read them
    read = {name for node in graph.node for name in node.input}
    read |= {value.name for value in graph.output}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def model_bytes(model: ModelProto) -> bytes:
    """Serialise a model, equal models to equal bytes; ModelError where a file cannot have so
    many."""
    if model.ByteSize() > _SIZE_BYTES_MAX:
        why = f"expected at most {_SIZE_BYTES_MAX} bytes, got {model.ByteSize()}"
        raise ModelError("a model file cannot be so large", "the new model", why)
    data: bytes = model.SerializeToString(deterministic=True)
    return data

"""Sparse tensors of a model file become dense ones.

In: a graph, a reader of external data. Out: it, with initializers in the place of sparse ones, and
tensors in that of sparse attributes. Not done here: storing (``weights``), element types that Ingot
has not (what becomes of a tensor without elements is refused there).
"""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto

from ingot_compiler.frontend.model.sort_nodes import describe_node, regions_of
from ingot_compiler.frontend.model.tensor_data import (
    PACKED_BITS,
    ExternalReader,
    UnsupportedDtype,
    tensor_bytes,
)
from ingot_compiler.ir.errors import LimitError, ModelError
from ingot_compiler.ir.types import DType, dtype_size_bytes

_SIZE_BYTES_MAX = 1 << 30  # of one tensor: a few bytes of a file name as many as they like


def expand_sparse(graph: GraphProto, read_external: ExternalReader) -> None:
    """Write all sparse tensors of ``graph`` and of graphs inside it out.

    Raises:
        ModelError: an index outside of its tensor, or not as many as values.
        LimitError: a tensor that is too large.
    """
    for sparse in graph.sparse_initializer:
        where = f"initializer {sparse.values.name!r}"
        graph.initializer.append(_dense(sparse, read_external, where))
    del graph.sparse_initializer[:]
    for node in graph.node:
        _expand_attributes(node, read_external)
        for region in regions_of(node):
            expand_sparse(region, read_external)


def _expand_attributes(node: NodeProto, read_external: ExternalReader) -> None:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.SPARSE_TENSOR and node.op_type == "Constant":
            dense = _dense(attribute.sparse_tensor, read_external, describe_node(node))
            attribute.CopyFrom(AttributeProto(name="value", type=AttributeProto.TENSOR, t=dense))


def _dense(sparse: SparseTensorProto, read_external: ExternalReader, where: str) -> TensorProto:
    values = sparse.values
    if any(size < 0 for size in sparse.dims):
        raise _wrong(where, f"expected sizes >= 0, got {list(sparse.dims)}")
    dense = TensorProto(name=values.name, data_type=values.data_type, dims=sparse.dims)
    try:
        tensor_type, data = tensor_bytes(values, None, read_external, where)
    except UnsupportedDtype:
        return dense
    count, width = prod(sparse.dims), dtype_size_bytes(tensor_type.dtype)
    if count * width > _SIZE_BYTES_MAX:
        what, do = "a sparse tensor is too large", "store it dense, as external data"
        why = f"expected at most {_SIZE_BYTES_MAX} bytes, got {list(sparse.dims)} elements"
        raise LimitError(what, where, why, do)
    places = _places(sparse, read_external, where)
    written = np.zeros((count, width), np.uint8)
    written[places] = np.frombuffer(data, np.uint8).reshape(len(places), width)
    dense.raw_data = _packed(written, tensor_type.dtype)
    return dense


def _places(
    sparse: SparseTensorProto, read_external: ExternalReader, where: str
) -> npt.NDArray[np.int64]:
    """Where each value goes, row-major: one number, or one for each axis."""
    _, data = tensor_bytes(sparse.indices, None, read_external, where)
    indices = np.frombuffer(data, np.int64)
    sizes, count = np.array(sparse.dims, np.int64), prod(sparse.values.dims)
    if list(sparse.indices.dims) == [count]:
        columns, limits = indices.reshape(-1, 1), np.array([prod(sparse.dims)], np.int64)
    elif list(sparse.indices.dims) == [count, len(sizes)]:
        columns, limits = indices.reshape(count, len(sizes)), sizes
    else:
        shape = f"[{count}] or [{count}, {len(sizes)}]"
        raise _wrong(where, f"expected indices of shape {shape}, got {list(sparse.indices.dims)}")
    outside = columns[((columns < 0) | (columns >= limits)).any(axis=1)]
    if len(outside):
        raise _wrong(where, f"expected indices below {limits.tolist()}, got {outside[0].tolist()}")
    steps = np.append(np.cumprod(limits[:0:-1])[::-1], 1)
    places: npt.NDArray[np.int64] = (columns * steps).sum(axis=1)
    return places


def _packed(written: npt.NDArray[np.uint8], dtype: DType) -> bytes:
    """The elements in the format of a file: several in a byte where they are narrow."""
    bits = PACKED_BITS.get(dtype)
    if bits is None:
        return written.tobytes()
    together = 8 // bits
    padded = np.pad(written.reshape(-1), (0, -written.size % together)).reshape(-1, together)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed: npt.NDArray[np.uint8] = np.bitwise_or.reduce(padded << shifts, axis=1)
    return packed.astype(np.uint8).tobytes()


def _wrong(where: str, why: str) -> ModelError:
    what = "a sparse tensor contradicts itself"
    return ModelError(what, where, why, "export the model again; the file was written wrongly")

"""Checksums that a model states of the files beside it: checked where there is one.

In: a tensor with external data, a reader of files, what was found so far. Out: nothing, or an
error. Not done here: which files may be read (``external_data``).

ONNX, "External Data": the key ``checksum`` is the SHA1 digest of the whole file, as hex digits.
"""

from __future__ import annotations

import hashlib

from onnx import TensorProto

from ingot_compiler.frontend.model.tensor_data import ExternalReader, external_entries
from ingot_compiler.ir.errors import ModelError


def check_checksum(
    tensor: TensorProto, read_external: ExternalReader, known: dict[str, str], where: str
) -> None:
    """Compare the file of an external tensor with the checksum that the tensor states, if any.

    ``known`` holds the sha1 of each location that was read before, and takes this one: files have
    many tensors.

    Raises:
        ModelError: another checksum.
    """
    entries = external_entries(tensor)
    stated, location = entries.get("checksum", ""), entries.get("location", "")
    if tensor.data_location != TensorProto.EXTERNAL or not stated:
        return
    if location not in known:
        data = read_external(location, 0, None)
        known[location] = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    if stated.lower() != known[location]:
        raise _contradiction(f"{where}, location {location!r}", stated, known[location])


def _contradiction(where: str, stated: str, found: str) -> ModelError:
    return ModelError(
        "external data has another checksum than the model states",
        where,
        f"expected sha1 {stated}, got {found}",
        "copy the data file again, complete, or export the model again",
    )

"""Checksums that a model states of the files beside it: checked where there is one.

In: a tensor with external data, a reader of files, what was found so far. Out: nothing, or an
error. Not done here: which files may be read (``external_data``).

ONNX, "External Data": the key ``checksum`` is the SHA1 digest of the whole file, as hex digits.
"""

from __future__ import annotations

import hashlib

from onnx import TensorProto

from ingot_compiler.frontend.tensor_data import ExternalReader
from ingot_compiler.ir.errors import ModelError


def check_checksum(
    tensor: TensorProto, read_external: ExternalReader, known: dict[str, str], where: str
) -> None:
    """Compare the file of an external tensor with the checksum that the tensor states, if it states
    one.

    ``known`` holds the sha1 of each location that was read before, and takes this one: files have
    many tensors.

    Raises:
        ModelError: another checksum.
    """
    entries = {str(entry.key): str(entry.value) for entry in tensor.external_data}
    stated = entries.get("checksum", "")
    if tensor.data_location != TensorProto.EXTERNAL or not stated:
        return
    location = entries.get("location", "")
    if location not in known:
        known[location] = hashlib.sha1(
            read_external(location, 0, None), usedforsecurity=False
        ).hexdigest()
    if stated.lower() != known[location]:
        raise ModelError(
            "external data has another checksum than the model states",
            f"{where}, location {location!r}",
            f"expected sha1 {stated}, got {known[location]}",
            "copy the data file again, complete, or export the model again",
        )

"""What a library has and needs, for programs: its tensors, its pools, its functions.

In: facts. Out: a dict, its JSON. Not done here: the same for people (``library_header``).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ingot_build_rules.tools.export.c_tensors import CTensor
from ingot_build_rules.tools.export.library_facts import LibraryFacts

VERSION = 1


def library_metadata(facts: LibraryFacts) -> str:
    """Return the JSON: ASCII, keys sorted."""
    return json.dumps(metadata_of(facts), indent=1, sort_keys=True)


def metadata_of(facts: LibraryFacts) -> dict[str, Any]:
    """Return ``version``, ``model``, ``digest``, ``target``, ``features``, ``inputs``, ``outputs``,
    ``pools``, ``functions``.

    ``main`` of the functions has the bytes of all: of its pools that are written to, of constants,
    of inputs and outputs; a kernel its number in the bundle and how often it is launched.
    """
    written = sum(pool.size_bytes for pool in facts.pools if not pool.is_constant)
    tensors = (*facts.inputs, *facts.outputs)
    main = {
        "workspace_bytes": written,
        "constants_bytes": facts.constants_bytes,
        "tensor_bytes": sum(tensor.size_bytes for tensor in tensors),
        "code_bytes": facts.code_bytes,
        "frame_bytes": facts.frame_bytes,
        "scratch_bytes": facts.scratch_bytes,
    }
    counts = Counter(step.kernel for step in facts.launches)
    kernels = [{"kernel": number, "launches": counts[number]} for number in sorted(counts)]
    pools = [
        {
            "name": pool.name,
            "identifier": pool.identifier,
            "size_bytes": pool.size_bytes,
            "is_constant": pool.is_constant,
            "from_caller": pool.from_caller,
        }
        for pool in facts.pools
    ]
    return {
        "version": VERSION,
        "model": facts.model,
        "digest": facts.digest,
        "target": facts.target,
        "features": list(facts.features),
        "inputs": [_tensor(tensor) for tensor in facts.inputs],
        "outputs": [_tensor(tensor) for tensor in facts.outputs],
        "pools": pools,
        "functions": {"main": main, "kernels": kernels},
    }


def _tensor(tensor: CTensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "identifier": tensor.identifier,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "size_bytes": tensor.size_bytes,
    }

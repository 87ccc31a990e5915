"""What an archive of models says of them: the metadata of the Model Library Format, and the
launches of each as a graph.

In: facts, open bundles. Out: JSON, ASCII, with sorted keys. Not done here: the archive
(``module_archive``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ingot_build_rules.tools.export.c_tensors import CTensor
from ingot_build_rules.tools.export.library_facts import LibraryFacts
from ingot_build_rules.tools.export.library_metadata import metadata_of
from ingot_runtime.format.debug import kernel_names
from ingot_runtime.format.dtypes import DTYPE_CODES, ML_DTYPES, NUMPY_NAMES
from ingot_runtime.format.source import Source, read_plan

VERSION = 7  # of the format
_CPU = 1  # kind of device, as the format numbers them
# The format wants a time. This one is nobody's: the same bundle gives the same bytes.
_NO_TIME = "1970-01-01 00:00:00Z"


def metadata_text(facts: Sequence[LibraryFacts], sources: Sequence[Source]) -> str:
    """Return ``metadata.json``: the version, and of each module what ``_module`` says."""
    modules = {
        fact.model: _module(fact, source) for fact, source in zip(facts, sources, strict=True)
    }
    return _json({"version": VERSION, "modules": modules})


def graph_text(facts: LibraryFacts, source: Source) -> str:
    """Return the launches of a call in their order: kernel, where each buffer lies, units."""
    names = _kernel_names(facts, source)
    steps = [
        {
            "kernel": names[step.kernel],
            "buffers": [
                {
                    "in": _place(facts, span.origin, span.device),
                    "offset": span.offset,
                    "size_bytes": span.size_bytes,
                }
                for span in step.buffers
            ],
            "scalars": list(step.scalars),
            "units": step.extent,
        }
        for step in facts.launches
    ]
    return _json({"version": 1, "model": facts.model, "launches": steps})


def _place(facts: LibraryFacts, origin: str, device: int) -> str:
    """The pool of a buffer, or the list of tensors that its offset is a number in."""
    written = [pool.name for pool in facts.pools if not pool.is_constant]
    return {"weights": "constants", "workspace": written[device]}.get(origin, f"{origin}s")


def _module(facts: LibraryFacts, source: Source) -> dict[str, Any]:
    own = metadata_of(facts)
    main = own["functions"]["main"]
    device = {
        "device": _CPU,
        "workspace_size_bytes": main["workspace_bytes"],
        "constants_size_bytes": main["constants_bytes"],
        "io_size_bytes": main["tensor_bytes"],
        "inputs": _sizes(facts.inputs),
        "outputs": _sizes(facts.outputs),
    }
    # What the kernels of one call take beside their buffers is one scratch: as large for each.
    workspace = [{"device": _CPU, "workspace_size_bytes": facts.scratch_bytes}]
    names = _kernel_names(facts, source)
    used = sorted({step.kernel for step in facts.launches})
    kernels = [{"function_name": names[kernel], "workspace": workspace} for kernel in used]
    return {
        "model_name": facts.model,
        "export_datetime": _NO_TIME,
        "executors": ["aot"],
        "style": "full-model",
        "target": [facts.target],
        "external_dependencies": [],
        "memory": {
            "functions": {"main": [device], "operator_functions": kernels},
            "pools": own["pools"],
        },
        "bundle_digest": facts.digest,
        "features": own["features"],
    }


def _sizes(tensors: Sequence[CTensor]) -> dict[str, dict[str, object]]:
    return {
        tensor.identifier: {
            "name": tensor.name,
            "size": tensor.size_bytes,
            "dtype": ML_DTYPES.get(tensor.dtype, NUMPY_NAMES[DTYPE_CODES[tensor.dtype]]),
            "shape": list(tensor.shape),
        }
        for tensor in tensors
    }


def _kernel_names(facts: LibraryFacts, source: Source) -> list[str]:
    """The symbols of a variant's kernels."""
    count = read_plan(source).variants[facts.variant].kernel_count
    return kernel_names(source, facts.target, count)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"

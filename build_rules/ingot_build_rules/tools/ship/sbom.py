"""What a bundle is made of, as a bill of materials: CycloneDX 1.6, in JSON.

In: an open bundle, its licence. Out: plain values. Not done here: signing, looking into models for
data they were trained on.

It holds no time and no random number, so the same bundle gives the same bytes.
"""

from __future__ import annotations

from typing import Any

from ingot_runtime.format import header as head
from ingot_runtime.format.debug import read_record
from ingot_runtime.format.source import Source, read_plan

_TOOLS = {
    "ingot": "compiled the bundle",
    "llvmlite": "generated its machine code",
    "ziglang": "linked its images, and compiled the functions that every image carries",
}


def bill_of_materials(source: Source, licence: str | None) -> dict[str, Any]:
    """Return the document; ``licence``: an SPDX expression for the bundle."""
    plan, lock = read_plan(source), read_record(source, head.LOCK)
    root = source.root_digest.hex()
    bundle: dict[str, Any] = {
        "type": "machine-learning-model",
        "bom-ref": f"bundle:{root}",
        "name": plan.model,
        "version": root[:16],
        "properties": [
            {"name": "ingot:root-digest", "value": root},
            {"name": "ingot:targets", "value": ", ".join(each.target for each in plan.variants)},
        ],
    }
    if licence is not None:
        bundle["licenses"] = [{"expression": licence}]
    components = [*_sections(source), *_materials(lock)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": bundle, "tools": {"components": _tools(lock)}},
        "components": components,
        "dependencies": [
            {"ref": bundle["bom-ref"], "dependsOn": [each["bom-ref"] for each in components]}
        ],
    }


def _sections(source: Source) -> list[dict[str, Any]]:
    """The files in the file; weights have no digest of their own: the tree of the same number has."""
    return [
        _file(
            f"section:{head.kind_name(row.kind)}:{row.id}",
            f"{head.kind_name(row.kind)} {row.id}",
            row.digest.hex(),
        )
        for row in source.sections
        if row.kind != head.WEIGHTS
    ]


def _materials(lock: dict[str, Any]) -> list[dict[str, Any]]:
    """What it was made from, by the digests of the lock."""
    graph, weights = lock.get("graph"), lock.get("weights", [])
    named = [("graph", graph)] if isinstance(graph, str) else []
    named += [(f"weights {at}", digest) for at, digest in enumerate(weights)]
    return [_file(f"source:{name.replace(' ', ':')}", name, digest) for name, digest in named]


def _file(reference: str, name: str, digest: str) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": digest}]
    return {"type": "file", "bom-ref": reference, "name": name, "hashes": hashes}


def _tools(lock: dict[str, Any]) -> list[dict[str, Any]]:
    versions = lock.get("toolchain", {})
    return [
        {"type": "application", "name": name, "version": versions[name], "description": what}
        for name, what in _TOOLS.items()
        if name in versions
    ]

"""A bundle described in plain values: sections, devices, variants, inputs and outputs.

In: a checked source. Out: a dict of str, int, list, dict; or lines. Not done here: kernels and
their source nodes (``ingot_artifacts.inspect``).
"""

from .header import VERSION_MAJOR, VERSION_MINOR
from .manifest import manifest_dict
from .source import Source, read_plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def describe_source(source: Source) -> "dict[str, Any]":
    """Return ``format``, ``root_digest``, ``size_bytes``, ``sections`` and the manifest's
    entries."""
    sections: list[dict[str, object]] = [
        {
            "kind": row.kind_name,
            "id": row.id,
            "offset": row.offset,
            "size_bytes": row.size_bytes,
            "sha256": row.digest.hex() if any(row.digest) else "",
        }
        for row in source.sections
    ]
    return {
        "format": f"{VERSION_MAJOR}.{VERSION_MINOR}",
        "root_digest": source.root_digest.hex(),
        "size_bytes": source.size_bytes,
        "sections": sections,
        **manifest_dict(read_plan(source)),
    }


def lines_of(described: "dict[str, Any]") -> list[str]:
    """Return a few lines for people."""
    lines = [
        f"model {described['model']}, format {described['format']}, {described['size_bytes']} bytes"
    ]
    lines.append(f"root digest {described['root_digest']}")
    for group, form in (
        ("inputs", "  {name}: {dtype}{shape}"),
        ("outputs", "  {name}: {dtype}{shape}"),
        ("devices", "  {name}: {kind}:{id}"),
        ("libraries", "  {kind} {target}: {kernels} kernels, needs {features}"),
        (
            "variants",
            "  {target}: {kernels} kernels, workspace {workspace_bytes} bytes, needs {features}",
        ),
        ("sections", "  {kind} {id}: {size_bytes} bytes at {offset}"),
    ):
        if not described[group]:
            continue
        lines.append(f"{group}:")
        lines += [
            form.format(**{**row, "shape": _shape_text(row.get("shape", ()))})
            for row in described[group]
        ]
    return lines


def _shape_text(shape: "list[object]") -> str:
    return f"[{', '.join(map(str, shape))}]"

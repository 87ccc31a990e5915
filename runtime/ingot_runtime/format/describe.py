"""A bundle described in plain values: sections, devices, variants, inputs and outputs.

In: a checked source. Out: a dict of str, int, list, dict; or lines. Not done here: kernels and
their source nodes (``ingot_artifacts.inspect``).
"""

from .header import VERSION_MAJOR, VERSION_MINOR, Section
from .manifest import manifest_dict
from .source import Source, read_plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# How a row of each group is printed.
_FORMS = {
    "inputs": "  {name}: {dtype}{shape}",
    "outputs": "  {name}: {dtype}{shape}",
    "devices": "  {name}: {kind}:{id}",
    "libraries": "  {kind} {target}: {kernels} kernels, needs {features}",
    "variants": "  {target}: {kernels} kernels, workspace {workspace_bytes} bytes, "
    "needs {features}",
    "sections": "  {kind} {id}: {size_bytes} bytes at {offset}",
}


def describe_source(source: Source) -> "dict[str, Any]":
    """Return ``format``, ``root_digest``, ``size_bytes``, ``sections``, and the manifest."""
    return {
        "format": f"{VERSION_MAJOR}.{VERSION_MINOR}",
        "root_digest": source.root_digest.hex(),
        "size_bytes": source.size_bytes,
        "sections": [_section(row) for row in source.sections],
        **manifest_dict(read_plan(source)),
    }


def _section(row: Section) -> "dict[str, object]":
    digest = row.digest.hex() if any(row.digest) else ""
    place = {"offset": row.offset, "size_bytes": row.size_bytes}
    return {"kind": row.kind_name, "id": row.id, **place, "sha256": digest}


def lines_of(described: "dict[str, Any]") -> list[str]:
    """Return a few lines for people."""
    lines = [
        "model {model}, format {format}, {size_bytes} bytes".format(**described),
        f"root digest {described['root_digest']}",
    ]
    for group, form in _FORMS.items():
        if described[group]:
            lines.append(f"{group}:")
            lines += [form.format(**_printed(row)) for row in described[group]]
    return lines


def _printed(row: "dict[str, Any]") -> "dict[str, Any]":
    """Return the row with its shape, if it has one, as a text: no name is in quotes."""
    return {**row, "shape": f"[{', '.join(map(str, row.get('shape', ())))}]"}
